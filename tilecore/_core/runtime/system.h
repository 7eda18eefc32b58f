/* What other C files and some modules need of the system: locks, threads, a clock, processors, handlers of fork().
 * C11 / C++17. */
#pragma once

#include "atomic.h"

#if !defined(_WIN32)
#include <pthread.h>
#include <time.h>
#endif
#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* The thread that acquired a lock releases it, and holds it when it waits. Locks are not recursive. */
#if defined(_WIN32)
typedef SRWLOCK tilecore_mutex;
typedef CONDITION_VARIABLE tilecore_condition;
#define TILECORE_MUTEX_INIT SRWLOCK_INIT
#define TILECORE_CONDITION_INIT CONDITION_VARIABLE_INIT
#define tilecore_lock AcquireSRWLockExclusive
#define tilecore_unlock ReleaseSRWLockExclusive
#define tilecore_wait(condition, lock) SleepConditionVariableSRW(condition, lock, INFINITE, 0)
#define tilecore_wake_one WakeConditionVariable
#define tilecore_wake_all WakeAllConditionVariable
#else
typedef pthread_mutex_t tilecore_mutex;
typedef pthread_cond_t tilecore_condition;
#define TILECORE_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER
#define TILECORE_CONDITION_INIT PTHREAD_COND_INITIALIZER
#define tilecore_lock pthread_mutex_lock
#define tilecore_unlock pthread_mutex_unlock
#define tilecore_wait pthread_cond_wait
#define tilecore_wake_one pthread_cond_signal
#define tilecore_wake_all pthread_cond_broadcast
#endif

typedef struct tilecore_thread {
#if defined(_WIN32)
    HANDLE handle;
#else
    pthread_t handle;
    long id; /* on Linux */
#endif
    void (*run)(void);
} tilecore_thread;

/* Begins a thread, or returns 0 if the system refuses. Until the thread has ended, `*thread` must not move, and serve
 * no other. All signals are blocked in it but SIGBUS and SIGSEGV. */
int tilecore_thread_new(tilecore_thread *thread, void (*run)(void));

/* Nanoseconds since some fixed moment, or of this thread's processor time. On Windows the former in both cases, exact
 * to some milliseconds. */
TILECORE_INLINE long long tilecore_nanoseconds(int of_thread)
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

typedef struct tilecore_affinity {
#if defined(__linux__)
    cpu_set_t part[8]; /* 8192 processors, the most that Linux may be built for */
#endif
    long bytes; /* in use, of `part` */
} tilecore_affinity;

/* Reads which processors the calling thread may run on now. Returns their number, or 0 if the system does not tell. */
TILECORE_INLINE int tilecore_read_affinity(tilecore_affinity *now)
{
#if defined(__linux__)
    /* sched_getaffinity() does not return the size. */
    now->bytes = syscall(SYS_sched_getaffinity, 0L, sizeof now->part, now->part);
    return now->bytes < 0 ? 0 : CPU_COUNT_S((size_t)now->bytes, now->part);
#else
    return (int)(now->bytes = 0);
#endif
}

#if !defined(_WIN32)
/* Waits until the system no longer counts a thread, which was joined, or is about to return and holds no lock of ours.
 * It waits at most two seconds, because another thread may have got the id by now. */
void tilecore_await_end(tilecore_thread *thread);

/* Registers `before` to run before every fork(), `parent` and `child` after it. Returns 0, or an error number. Further
 * calls in one module do nothing: its import may be repeated after a failure. Of several modules, the `before` that was
 * registered last runs first. All that happens at a fork(), in any order of the modules:
 *
 *     before    workers.c           the workers end
 *               arena.c             the watcher ends, most idle pages go back; the lock is held until after it
 *     parent    workers.c, arena.c  jobs may have workers again; the lock is released
 *     child     likewise            and locks and conditions are made anew; no pages are idle
 *               process_state.pyx   by Python: the processors are forgotten, and this thread is the main one
 *               measure.py          by Python: profiles end, and their lock is made anew */
int tilecore_at_fork(void (*before)(void), void (*parent)(void), void (*child)(void));
#endif
