#include "system.h"

#if defined(_WIN32)
#include <process.h>
#else
#include <errno.h>
#include <signal.h>
#endif

/* A thread's stack: a task takes a few kilobytes, and a handler of SIGSEGV may need more. Unused stack is only
 * reserved, but it counts if pages are locked or addresses are limited. */
#define TILECORE_STACK_BYTES ((size_t)256 << 10)

#if defined(_WIN32)
static unsigned __stdcall tilecore_thread_run(void *thread)
{
    ((tilecore_thread *)thread)->run();
    return 0;
}

int tilecore_thread_new(tilecore_thread *thread, void (*run)(void))
{
    thread->run = run;
    thread->handle = (HANDLE)_beginthreadex(NULL, (unsigned)TILECORE_STACK_BYTES, tilecore_thread_run, thread,
                                            STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
    return thread->handle != NULL;
}
#else
static void *tilecore_thread_run(void *argument)
{
    tilecore_thread *thread = (tilecore_thread *)argument;
#if defined(__linux__)
    thread->id = syscall(SYS_gettid);
#endif
    thread->run();
    return NULL;
}

/* The thread inherits the signal mask of its creator. Reads and writes may raise SIGBUS and SIGSEGV, for instance if a
 * mapped file was truncated, and a blocked one would end the program without its handler. */
int tilecore_thread_new(tilecore_thread *thread, void (*run)(void))
{
    pthread_attr_t attributes;
    sigset_t blocked, before;
    int status = pthread_attr_init(&attributes);
    thread->run = run;
    sigfillset(&blocked);
    sigdelset(&blocked, SIGBUS);
    sigdelset(&blocked, SIGSEGV);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    if (!status) {
        status = pthread_attr_setstacksize(&attributes, TILECORE_STACK_BYTES);
        if (!status) status = pthread_create(&thread->handle, &attributes, tilecore_thread_run, thread);
        pthread_attr_destroy(&attributes);
    }
    /* EINVAL means that the stack is too small, because the program's libraries have much thread-local storage. */
    if (status == EINVAL) status = pthread_create(&thread->handle, NULL, tilecore_thread_run, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status == 0;
}

/* pthread_join returns a moment before the end, or much earlier if a virtual processor is descheduled just then. */
void tilecore_await_end(tilecore_thread *thread)
{
#if defined(__linux__)
    const struct timespec nap = {0, 50000}; /* timer slack adds as much again */
    int tries;
    for (tries = 0; tries < 20000 && !syscall(SYS_tgkill, getpid(), thread->id, 0); tries++) nanosleep(&nap, NULL);
    thread->id = 0; /* which no thread has: the next call returns at once */
#else
    (void)thread;
#endif
}

int tilecore_at_fork(void (*before)(void), void (*parent)(void), void (*child)(void))
{
    static int registered;
    int status = registered ? 0 : pthread_atfork(before, parent, child);
    registered = !status;
    return status;
}
#endif
