/* For workers.h, arena.h and some modules: atomic counters, locks, threads, a clock, processors, handlers of fork().
 * C11 / C++17, and on Linux _GNU_SOURCE: Python.h defines it, so it must precede the C library's headers. */
#ifndef TILECORE_THREADS_H
#define TILECORE_THREADS_H

#include "../config.h"

#if defined(_WIN32)
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#include <process.h>
#else
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#endif
#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* Atomic counters are of type ptrdiff_t, in relaxed order. `add` returns the value before. `replace` is for pointers:
 * it orders all accesses, and returns whether `before` was there. */
#if defined(_MSC_VER) && !defined(__clang__)
#define tilecore_atomic_add(counter, n) \
    ((ptrdiff_t)InterlockedExchangeAddSizeT((volatile size_t *)(counter), (size_t)(n)))
#define tilecore_atomic_load(counter) (*(const volatile ptrdiff_t *)(counter))
#define tilecore_atomic_store(counter, n) ((void)(*(volatile ptrdiff_t *)(counter) = (n)))
#define tilecore_atomic_replace(place, before, n) \
    (InterlockedCompareExchangePointer((void *volatile *)(place), (void *)(n), (void *)(before)) == (void *)(before))
#else
#define tilecore_atomic_add(counter, n) __atomic_fetch_add(counter, n, __ATOMIC_RELAXED)
#define tilecore_atomic_load(counter) __atomic_load_n(counter, __ATOMIC_RELAXED)
#define tilecore_atomic_store(counter, n) __atomic_store_n(counter, n, __ATOMIC_RELAXED)
#define tilecore_atomic_replace(place, before, n) __sync_bool_compare_and_swap(place, before, n)
#endif

/* The thread that acquired a lock releases it, and holds it when it waits. Locks are not recursive. */
#if defined(_WIN32)
typedef SRWLOCK tilecore_lock;
typedef CONDITION_VARIABLE tilecore_condition;
#define TILECORE_LOCK_INIT SRWLOCK_INIT
#define TILECORE_CONDITION_INIT CONDITION_VARIABLE_INIT
#define tilecore_wait(condition, lock) SleepConditionVariableSRW(condition, lock, INFINITE, 0)
#define tilecore_wake_one WakeConditionVariable
#define tilecore_wake_all WakeAllConditionVariable
TILECORE_UNUSED static void tilecore_acquire(tilecore_lock *lock) { AcquireSRWLockExclusive(lock); }
TILECORE_UNUSED static void tilecore_release(tilecore_lock *lock) { ReleaseSRWLockExclusive(lock); }
#else
typedef pthread_mutex_t tilecore_lock;
typedef pthread_cond_t tilecore_condition;
#define TILECORE_LOCK_INIT PTHREAD_MUTEX_INITIALIZER
#define TILECORE_CONDITION_INIT PTHREAD_COND_INITIALIZER
#define tilecore_wait pthread_cond_wait
#define tilecore_wake_one pthread_cond_signal
#define tilecore_wake_all pthread_cond_broadcast
TILECORE_UNUSED static void tilecore_acquire(tilecore_lock *lock) { pthread_mutex_lock(lock); }
TILECORE_UNUSED static void tilecore_release(tilecore_lock *lock) { pthread_mutex_unlock(lock); }
#endif

/* A thread's stack: a task takes a few kilobytes, and a handler of SIGSEGV may need more. Unused stack is only
 * reserved, but it counts if pages are locked or addresses are limited. */
#define TILECORE_STACK_BYTES ((size_t)256 << 10)

/* `tilecore_thread_new` begins a thread, or returns 0 if the system refuses. Until the thread has ended, `*thread` must
 * not move, and serve no other. */
#if defined(_WIN32)
typedef struct tilecore_thread {
    HANDLE handle;
    void (*run)(void);
} tilecore_thread;

TILECORE_UNUSED static unsigned __stdcall tilecore_thread_run(void *thread)
{
    ((tilecore_thread *)thread)->run();
    return 0;
}

TILECORE_UNUSED static int tilecore_thread_new(tilecore_thread *thread, void (*run)(void))
{
    thread->run = run;
    thread->handle = (HANDLE)_beginthreadex(NULL, (unsigned)TILECORE_STACK_BYTES, tilecore_thread_run, thread,
                                            STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
    return thread->handle != NULL;
}
#else
typedef struct tilecore_thread {
    pthread_t handle;
    void (*run)(void);
    long id; /* on Linux */
} tilecore_thread;

TILECORE_UNUSED static void *tilecore_thread_run(void *argument)
{
    tilecore_thread *thread = (tilecore_thread *)argument;
#if defined(__linux__)
    thread->id = syscall(SYS_gettid);
#endif
    thread->run();
    return NULL;
}

/* The thread inherits the signal mask of its creator. SIGBUS and SIGSEGV stay unblocked: reads and writes may raise
 * them, for instance if a mapped file was truncated, and a blocked one would end the program without its handler. */
TILECORE_UNUSED static int tilecore_thread_new(tilecore_thread *thread, void (*run)(void))
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

/* Waits until the system no longer counts a thread, which was joined, or is about to return and holds no lock of ours.
 * pthread_join returns a moment earlier, or much earlier if a virtual processor is descheduled just then. This function
 * waits at most two seconds, because another thread may have got the id by now. */
TILECORE_UNUSED static void tilecore_await_end(tilecore_thread *thread)
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
#endif

/* Nanoseconds since some fixed moment, or of this thread's processor time; on Windows exact to some milliseconds. */
TILECORE_UNUSED static long long tilecore_nanoseconds(int of_thread)
{
#if defined(_WIN32)
    (void)of_thread;
    return (long long)GetTickCount64() * 1000000;
#else
    struct timespec now;
    clock_gettime(of_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
#endif
}

/* Reads which processors the calling thread may run on now. Returns their number, or 0 if the system does not tell. */
#if defined(__linux__)
typedef struct tilecore_affinity {
    long bytes;        /* in use, of `part` */
    cpu_set_t part[8]; /* 8192 processors, the most that Linux may be built for */
} tilecore_affinity;

TILECORE_UNUSED static int tilecore_read_affinity(tilecore_affinity *now)
{
    /* sched_getaffinity() does not return the size. */
    now->bytes = syscall(SYS_sched_getaffinity, 0L, sizeof now->part, now->part);
    return now->bytes < 0 ? 0 : CPU_COUNT_S((size_t)now->bytes, now->part);
}
#else
typedef int tilecore_affinity;
TILECORE_UNUSED static int tilecore_read_affinity(tilecore_affinity *now) { return *now = 0; }
#endif

#if !defined(_WIN32)
/* Registers `before` to run before every fork(), `parent` and `child` after it. Returns 0, or an error number. Further
 * calls in one module do nothing: its import may be repeated after a failure. Of several modules, the `before` that was
 * registered last runs first. All that happens at a fork(), in any order of the modules:
 *
 *     before    workers.h           the workers end
 *               arena.h             the watcher ends, most idle pages go back; the lock is held until after it
 *     parent    workers.h, arena.h  jobs may have workers again; the lock is released
 *     child     likewise            and locks and conditions are made anew; no pages are idle
 *               process_state.pyx   by Python: the processors are forgotten, and this thread is the main one
 *               measure.py          by Python: profiles end, and their lock is made anew */
TILECORE_UNUSED static int tilecore_at_fork(void (*before)(void), void (*parent)(void), void (*child)(void))
{
    static int registered;
    int status = registered ? 0 : pthread_atfork(before, parent, child);
    registered = !status;
    return status;
}
#endif

#endif /* TILECORE_THREADS_H */
