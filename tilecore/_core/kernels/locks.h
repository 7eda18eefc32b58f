/* Atomic counters, a lock, clocks, the affinity mask, handlers of fork(). C11 / C++17, and on Linux _GNU_SOURCE:
 * Python.h defines it, and must come before the first header of the C library. */
#ifndef TILECORE_LOCKS_H
#define TILECORE_LOCKS_H

#include "config.h"

#if defined(_WIN32)
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#else
#include <pthread.h>
#include <time.h>
#endif
#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* ---------------------------------------------------------------- atomic counters, in relaxed order */

/* `add` returns the value before. */
#if defined(_MSC_VER) && !defined(__clang__)
TILECORE_INLINE ptrdiff_t tilecore_atomic_add(ptrdiff_t *counter, ptrdiff_t n)
{
#if defined(_WIN64)
    return (ptrdiff_t)InterlockedExchangeAdd64((volatile long long *)counter, (long long)n);
#else
    return (ptrdiff_t)InterlockedExchangeAdd((volatile long *)counter, (long)n);
#endif
}
TILECORE_INLINE ptrdiff_t tilecore_atomic_load(const ptrdiff_t *counter)
{
    return *(const volatile ptrdiff_t *)counter;
}
TILECORE_INLINE void tilecore_atomic_store(ptrdiff_t *counter, ptrdiff_t n) { *(volatile ptrdiff_t *)counter = n; }
#else
TILECORE_INLINE ptrdiff_t tilecore_atomic_add(ptrdiff_t *counter, ptrdiff_t n)
{
    return __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}
TILECORE_INLINE ptrdiff_t tilecore_atomic_load(const ptrdiff_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}
TILECORE_INLINE void tilecore_atomic_store(ptrdiff_t *counter, ptrdiff_t n)
{
    __atomic_store_n(counter, n, __ATOMIC_RELAXED);
}
#endif

/* ---------------------------------------------------------------- a lock */

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

/* ---------------------------------------------------------------- a clock */

/* Milliseconds since some fixed moment, exact to a few. */
TILECORE_UNUSED static long long tilecore_milliseconds(void)
{
#if defined(_WIN32)
    return (long long)GetTickCount64();
#else
    struct timespec now;
#if defined(CLOCK_MONOTONIC_COARSE) /* read in a third of the time */
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
#else
    clock_gettime(CLOCK_MONOTONIC, &now);
#endif
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
#endif
}

/* Nanoseconds since some fixed moment, or of this thread's processor time; on Windows exact to some milliseconds. */
TILECORE_UNUSED static long long tilecore_nanoseconds(int of_thread)
{
#if defined(_WIN32)
    (void)of_thread;
    return tilecore_milliseconds() * 1000000;
#else
    struct timespec now;
    clock_gettime(of_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
#endif
}

/* ---------------------------------------------------------------- processors */

/* `tilecore_read_affinity` reads the set of processors that the calling thread may run on now. It returns their number,
 * or 0 if the system has no such sets. */
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

/* ---------------------------------------------------------------- fork */

/* Registers `before` to run before every fork(), `parent` and `child` after it. Returns 0, or an error number. Further
 * calls in one module do nothing: its import may be repeated after a failure. Of several modules, the `before` that was
 * registered last runs first. */
TILECORE_UNUSED static int tilecore_at_fork(void (*before)(void), void (*parent)(void), void (*child)(void))
{
#if defined(_WIN32)
    (void)before, (void)parent, (void)child;
    return 0;
#else
    static int registered;
    int status = registered ? 0 : pthread_atfork(before, parent, child);
    registered = !status;
    return status;
#endif
}

#endif /* TILECORE_LOCKS_H */
