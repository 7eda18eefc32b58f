/* Threads that live for one call: created, run, joined. No pool, so nothing is left to break at
 * fork() or at exit. And what they share: a counter, a lock. C11 / C++17, and on Linux
 * _GNU_SOURCE, which Python.h defines and which must come before the first header of the C library's.
 */
#ifndef TILECORE_THREADS_H
#define TILECORE_THREADS_H

#include "config.h"

#if defined(_WIN32)
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <process.h>
#include <windows.h>
#else
#include <pthread.h>
#include <signal.h>
#endif
#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#define TILECORE_MAX_THREADS 256

/* Adds to a counter that several threads share, and returns what it was. */
TILECORE_INLINE ptrdiff_t tilecore_take(ptrdiff_t *counter, ptrdiff_t n)
{
#if defined(_MSC_VER) && !defined(__clang__)
    return (ptrdiff_t)_InterlockedExchangeAdd64((volatile long long *)counter, (long long)n);
#else
    return __atomic_fetch_add(counter, n, __ATOMIC_RELAXED); /* joining orders all else */
#endif
}

/* ---------------------------------------------------------------- a lock for a few instructions */

#if defined(_WIN32)
typedef SRWLOCK tilecore_lock;
#define TILECORE_LOCK_INIT SRWLOCK_INIT
TILECORE_UNUSED static void tilecore_acquire(tilecore_lock *lock) { AcquireSRWLockExclusive(lock); }
TILECORE_UNUSED static void tilecore_release(tilecore_lock *lock) { ReleaseSRWLockExclusive(lock); }
#else
typedef pthread_mutex_t tilecore_lock;
#define TILECORE_LOCK_INIT PTHREAD_MUTEX_INITIALIZER
TILECORE_UNUSED static void tilecore_acquire(tilecore_lock *lock) { pthread_mutex_lock(lock); }
TILECORE_UNUSED static void tilecore_release(tilecore_lock *lock) { pthread_mutex_unlock(lock); }
#endif

/* Runs `before` ahead of every fork(), `parent` and `child` behind it. 0, or an error number. */
TILECORE_UNUSED static int tilecore_at_fork(void (*before)(void), void (*parent)(void), void (*child)(void))
{
#if defined(_WIN32)
    (void)before, (void)parent, (void)child;
    return 0;
#else
    return pthread_atfork(before, parent, child);
#endif
}

/* ---------------------------------------------------------------- a job for several threads */

/* Takes shares of a job until none is left. Must not fail. */
typedef void (*tilecore_task)(void *job);

typedef struct tilecore_worker {
    tilecore_task task;
    void *job;
    long number; /* of the thread, where the system has one */
} tilecore_worker;

#if defined(_WIN32)
static unsigned __stdcall tilecore_run_worker(void *argument)
{
    const tilecore_worker *worker = (const tilecore_worker *)argument;
    worker->task(worker->job);
    return 0;
}
#else
static void *tilecore_run_worker(void *argument)
{
    tilecore_worker *worker = (tilecore_worker *)argument;
#if defined(__linux__)
    worker->number = syscall(SYS_gettid);
#endif
    worker->task(worker->job);
    return NULL;
}
#endif

/* Waits for a thread's very end. pthread_join returns a moment before the system ceases to count the thread,
 * and Python (3.12 and later) warns at a fork() of a process that has several. Not for long: its number
 * might by then be another's. */
TILECORE_UNUSED static void tilecore_await_end(const tilecore_worker *worker)
{
#if defined(__linux__)
    int patience = 1000;
    while (patience-- && !syscall(SYS_tgkill, getpid(), worker->number, 0)) sched_yield();
#else
    (void)worker;
#endif
}

/* Runs task(job) in the calling thread and in up to `count` - 1 others, and returns when all are done.
 * The calling thread begins at once: another may take a fifth of a millisecond to start. Where a thread
 * cannot be created, the rest do its share. */
TILECORE_UNUSED static void tilecore_parallel(tilecore_task task, void *job, int count)
{
    tilecore_worker worker[TILECORE_MAX_THREADS];
    int i, created = 0;
#if defined(_WIN32)
    HANDLE thread[TILECORE_MAX_THREADS];
#else
    pthread_t thread[TILECORE_MAX_THREADS];
    sigset_t most, old;
    /* Signals stay with the threads of the program: the workers start with all of them blocked, but for
     * those that a thread's own access to memory causes (an input that is a file, and has been cut
     * short, say): blocked, they would end the program without its handler. */
    sigfillset(&most);
    sigdelset(&most, SIGBUS);
    sigdelset(&most, SIGSEGV);
    pthread_sigmask(SIG_SETMASK, &most, &old);
#endif
    if (count > TILECORE_MAX_THREADS) count = TILECORE_MAX_THREADS;
    while (created < count - 1) {
        worker[created].task = task;
        worker[created].job = job;
#if defined(_WIN32)
        thread[created] = (HANDLE)_beginthreadex(NULL, 0, tilecore_run_worker, &worker[created], 0, NULL);
        if (!thread[created]) break;
#else
        if (pthread_create(&thread[created], NULL, tilecore_run_worker, &worker[created])) break;
#endif
        created++;
    }
#if !defined(_WIN32)
    pthread_sigmask(SIG_SETMASK, &old, NULL);
#endif
    task(job);
    for (i = 0; i < created; i++) {
#if defined(_WIN32)
        WaitForSingleObject(thread[i], INFINITE);
        CloseHandle(thread[i]);
#else
        pthread_join(thread[i], NULL);
        tilecore_await_end(&worker[i]);
#endif
    }
}

#endif /* TILECORE_THREADS_H */
