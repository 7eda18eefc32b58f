/* A clock. C11 / C++17, and on Linux _GNU_SOURCE, as in threads.h. */
#ifndef TILECORE_CLOCK_H
#define TILECORE_CLOCK_H

#include "config.h"

#if defined(_WIN32)
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#else
#include <time.h>
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

#endif /* TILECORE_CLOCK_H */
