/* Threads that live for one call: created, run, joined. No pool, so nothing is left to break at
 * fork() or at exit. Plain C11 / C++17; no Python.h.
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

#define TILECORE_MAX_THREADS 256

/* Does part `index` of `count` of a job. Must not fail. */
typedef void (*tilecore_task)(void *job, int index, int count);

typedef struct tilecore_part {
    tilecore_task task;
    void *job;
    int index, count;
} tilecore_part;

#if defined(_WIN32)
static unsigned __stdcall tilecore_run_part(void *argument)
{
    const tilecore_part *part = (const tilecore_part *)argument;
    part->task(part->job, part->index, part->count);
    return 0;
}
#else
static void *tilecore_run_part(void *argument)
{
    const tilecore_part *part = (const tilecore_part *)argument;
    part->task(part->job, part->index, part->count);
    return NULL;
}
#endif

/* Runs task(job, i, count) for every i below count, the last part in the calling thread; returns
 * when all are done. A part whose thread cannot be created runs in the calling thread too. */
TILECORE_UNUSED static void tilecore_parallel(tilecore_task task, void *job, int count)
{
    tilecore_part part[TILECORE_MAX_THREADS];
    int i, created = 0;
#if defined(_WIN32)
    HANDLE thread[TILECORE_MAX_THREADS];
#else
    pthread_t thread[TILECORE_MAX_THREADS];
    sigset_t all, old;
#endif
    if (count > TILECORE_MAX_THREADS) count = TILECORE_MAX_THREADS;
#if !defined(_WIN32)
    /* Signals stay with the threads of the program: the workers start with all of them blocked. */
    if (count > 1) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
    }
#endif
    for (i = 0; i < count - 1; i++) {
        part[i].task = task, part[i].job = job, part[i].index = i, part[i].count = count;
#if defined(_WIN32)
        thread[i] = (HANDLE)_beginthreadex(NULL, 0, tilecore_run_part, &part[i], 0, NULL);
        if (!thread[i]) break;
#else
        if (pthread_create(&thread[i], NULL, tilecore_run_part, &part[i])) break;
#endif
        created++;
    }
#if !defined(_WIN32)
    if (count > 1) pthread_sigmask(SIG_SETMASK, &old, NULL);
#endif
    for (i = created; i < count; i++) task(job, i, count);
    for (i = 0; i < created; i++) {
#if defined(_WIN32)
        WaitForSingleObject(thread[i], INFINITE);
        CloseHandle(thread[i]);
#else
        pthread_join(thread[i], NULL);
#endif
    }
}

#endif /* TILECORE_THREADS_H */
