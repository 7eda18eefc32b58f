/* What threads share: a counter, a lock, processors, what happens at fork(). C11 / C++17, and on Linux
 * _GNU_SOURCE, which Python.h defines and which must come before the first header of the C library's.
 */
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
#endif
#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* ---------------------------------------------------------------- counters: atomic, in no order with anything else */

/* Adds to a counter, and returns what it was. */
TILECORE_INLINE ptrdiff_t tilecore_atomic_add(ptrdiff_t *counter, ptrdiff_t n)
{
#if defined(_MSC_VER) && !defined(__clang__) && defined(_WIN64)
    return (ptrdiff_t)InterlockedExchangeAdd64((volatile long long *)counter, (long long)n);
#elif defined(_MSC_VER) && !defined(__clang__)
    return (ptrdiff_t)InterlockedExchangeAdd((volatile long *)counter, (long)n);
#else
    return __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
#endif
}

TILECORE_INLINE ptrdiff_t tilecore_atomic_load(const ptrdiff_t *counter)
{
#if defined(_MSC_VER) && !defined(__clang__)
    return *(const volatile ptrdiff_t *)counter;
#else
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
#endif
}

TILECORE_INLINE void tilecore_atomic_store(ptrdiff_t *counter, ptrdiff_t n)
{
#if defined(_MSC_VER) && !defined(__clang__)
    *(volatile ptrdiff_t *)counter = n;
#else
    __atomic_store_n(counter, n, __ATOMIC_RELAXED);
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

/* ---------------------------------------------------------------- processors */

/* A set of processors: of up to 8192, as many as Linux may be built for; most systems know of few. */
#if defined(__linux__)
typedef struct tilecore_affinity {
    long bytes; /* of the set, that are in use */
    cpu_set_t part[8];
} tilecore_affinity;
#else
typedef int tilecore_affinity;
#endif

/* The set that the calling thread may run on now; their number, or 0 where the system does not tell. */
TILECORE_UNUSED static int tilecore_affinity_now(tilecore_affinity *now)
{
#if defined(__linux__)
    now->bytes = syscall(SYS_sched_getaffinity, 0L, sizeof now->part, now->part); /* sched_getaffinity() tells no size */
    return now->bytes < 0 ? 0 : CPU_COUNT_S((size_t)now->bytes, now->part);
#else
    (void)now;
    return 0;
#endif
}

/* ---------------------------------------------------------------- fork */

/* Runs `before` ahead of every fork(), `parent` and `child` behind it. 0, or an error number. Of several
 * `before` the last to be registered runs first. */
TILECORE_UNUSED static int tilecore_at_fork(void (*before)(void), void (*parent)(void), void (*child)(void))
{
#if defined(_WIN32)
    (void)before, (void)parent, (void)child;
    return 0;
#else
    return pthread_atfork(before, parent, child);
#endif
}

#endif /* TILECORE_LOCKS_H */
