/* The workers by themselves: jobs of many callers at once, forks between them and in the midst of them.
 *
 *     workers run CALLERS JOBS FORKS    JOBS jobs in all, each iteration of each written exactly once, a quarter of
 *                                       them in steps, as between checks for signals; meanwhile FORKS forks
 *     workers wait FORKS                each of three threads waits for the others in a job; FORKS 1: also in a child,
 *                                       of a process in which a thread waits for an end of workers
 *     workers                           which calls are serial after gains and losses
 *
 * Prints what was done; the exit status is 0 if nothing was wrong. FORKS is 0 for ThreadSanitizer, which
 * cannot follow a child's threads, and on Windows, where this takes MinGW's threads for the callers.
 */
#define _GNU_SOURCE
#define __USE_MINGW_ANSI_STDIO 1 /* %td */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#if !defined(_WIN32)
#include <sys/wait.h>
#endif

#include "runtime/learn_threads.c"
#include "runtime/system.c"
#include "runtime/workers.c"

#define MAX_CALLERS 16
#define MAX_ITERATIONS 3000
#define THE_END (-1000000000)
#define ITERATION_BYTES 16384 /* as the workers are told: 47 MB at most */

typedef struct {
    pthread_t thread;
    unsigned seed;
    unsigned char times[MAX_ITERATIONS]; /* that each iteration has been written */
} caller_state;

static caller_state callers[MAX_CALLERS];
static int number_of_callers;
static ptrdiff_t jobs_left, jobs_done, wrong, forks, seen_at_fork, callers_here;

static unsigned next_random(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void write_iterations(void *argument, ptrdiff_t first, ptrdiff_t last)
{
    unsigned char *times = (unsigned char *)argument;
    for (ptrdiff_t k = first; k < last; k++) times[k]++;
}

/* 1 if each iteration of a job was written once, and nothing else. */
static int one_job(caller_state *caller)
{
    const ptrdiff_t iterations = 1 + next_random(&caller->seed) % (MAX_ITERATIONS - 2);
    const ptrdiff_t begin = next_random(&caller->seed) % (MAX_ITERATIONS - iterations);
    const int threads = 1 + (int)(next_random(&caller->seed) % 6);
    const long long until = next_random(&caller->seed) % 4 ? LLONG_MAX : 0;
    tilecore_job job = {
        write_iterations, caller->times, begin, begin + iterations, ITERATION_BYTES, 0, 0, 0, 0, 0, 0, 0};
    memset(caller->times, 0, sizeof caller->times);
    while (job.first < job.last)
        tilecore_parallel(&job, threads, next_random(&caller->seed) % 4 ? NULL : tilecore_records[0][0][0], until);
    for (ptrdiff_t k = 0; k < MAX_ITERATIONS; k++)
        if (caller->times[k] != (begin <= k && k < begin + iterations)) return 0;
    return 1;
}

static void *call(void *argument)
{
    caller_state *caller = (caller_state *)argument;
    tilecore_atomic_add(&callers_here, 1);
    while (tilecore_atomic_add(&jobs_left, -1) > 0) {
        if (!one_job(caller)) tilecore_atomic_add(&wrong, 1);
        tilecore_atomic_add(&jobs_done, 1);
    }
    while (tilecore_atomic_load(&jobs_left) > THE_END) sched_yield(); /* counted until the last fork */
    return NULL;
}

/* ---------------------------------------------------------------- fork */

#if defined(_WIN32)
static void fork_in_the_midst(ptrdiff_t jobs, ptrdiff_t wanted) { (void)jobs, (void)wanted; }
#else
static int counts_threads;

/* Registered first, so called last before the fork. Left are the callers, who stay until told, and this thread. The
 * folder has two links, and one more for each thread that the system counts. */
static void look_before_fork(void)
{
    struct stat folder;
    if (!counts_threads || stat("/proc/self/task", &folder)) return;
    tilecore_atomic_add(&seen_at_fork, 1);
    if ((int)folder.st_nlink - 2 != 1 + number_of_callers) {
        fprintf(stderr, "%d threads before a fork, of which %d are callers\n", (int)folder.st_nlink - 2,
                number_of_callers);
        tilecore_atomic_add(&wrong, 1);
    }
}

/* The child makes workers of its own, and at some of the seeds a child of its own. */
static void fork_here(unsigned seed)
{
    int status = 1;
    const pid_t child = fork();
    if (child == 0) {
        caller_state *caller = &callers[MAX_CALLERS - 1];
        caller->seed = seed;
        counts_threads = 0, wrong = 0;
        wrong += !one_job(caller) || !one_job(caller);
        if (seed % 4 == 0) fork_here(seed + 1);
        _exit(wrong || !one_job(caller));
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status) tilecore_atomic_add(&wrong, 1);
    tilecore_atomic_add(&forks, 1);
}

/* Spread over all jobs. */
static void fork_in_the_midst(ptrdiff_t jobs, ptrdiff_t wanted)
{
    unsigned seed = 1;
    counts_threads = 1;
    for (ptrdiff_t k = 0; k < wanted; k++) {
        while (tilecore_atomic_load(&jobs_done) < jobs / (wanted + 1) * (k + 1)) sched_yield();
        fork_here(next_random(&seed));
    }
    counts_threads = 0;
}
#endif

static int run(int count, ptrdiff_t jobs, ptrdiff_t wanted_forks)
{
    number_of_callers = count;
    jobs_left = jobs;
    for (int k = 0; k < count; k++) {
        callers[k].seed = (unsigned)k;
        if (pthread_create(&callers[k].thread, NULL, call, &callers[k])) return 2;
    }
    while (tilecore_atomic_load(&callers_here) < count) sched_yield();
    fork_in_the_midst(jobs, wanted_forks);
    while (tilecore_atomic_load(&jobs_done) < jobs) sched_yield();
    tilecore_atomic_store(&jobs_left, THE_END);
    for (int k = 0; k < count; k++) pthread_join(callers[k].thread, NULL);
    printf("%td jobs of %d callers, %td forks, threads counted at %td, %td wrong\n", jobs_done, count, forks,
           seen_at_fork, wrong);
    return wrong || jobs_done != jobs || forks != wanted_forks;
}

/* ---------------------------------------------------------------- threads that wait */

static ptrdiff_t here, waits;

/* Workers stay longer, so their caller must do more than spin until they leave. */
static void meet(void *argument, ptrdiff_t first, ptrdiff_t last)
{
    (void)argument, (void)last;
    tilecore_atomic_add(&here, 1);
    while (tilecore_atomic_load(&here) < 3) sched_yield();
    if (first) usleep(1000);
}

static void meet_often(void)
{
    for (int k = 0; k < 50; k++) {
        tilecore_job job = {meet, NULL, 0, 3, TILECORE_MAX_CHUNK_BYTES, 0, 0, 0, 0, 0, 0, 0};
        tilecore_atomic_store(&here, 0);
        tilecore_parallel(&job, 3, NULL, LLONG_MAX);
    }
}

static void *wait_as_callers_do(void *unused)
{
    tilecore_lock(&tilecore_workers_lock);
    for (waits = 1; !unused;) tilecore_wait(&tilecore_change, &tilecore_workers_lock);
    return NULL;
}

static int wait_for_others(int wanted_forks)
{
    int status = 0;
#if defined(_WIN32)
    meet_often();
#else
    pthread_t thread;
    alarm(60);
    meet_often();
    if (!wanted_forks) return 0;
    if (pthread_create(&thread, NULL, wait_as_callers_do, NULL)) return 2;
    for (int waiting = 0; !waiting;) {
        tilecore_lock(&tilecore_workers_lock);
        waiting = (int)waits;
        tilecore_unlock(&tilecore_workers_lock);
    }
    const pid_t child = fork();
    if (child == 0) alarm(60), meet_often(), _exit(0);
    if (child < 0 || waitpid(child, &status, 0) != child) return 2;
#endif
    return status;
}

/* ---------------------------------------------------------------- calls that learn */

/* Calls with a pace of 1000 without workers, and these paces with workers; `waking`, if not 0, after a serial one.
 * Prints a letter for each: w with workers, s if serial. */
static void learn(const char *name, int calls, double pace, double pace_of_each_50th, double beside, double waking)
{
    tilecore_record record = {0, 0, 0, 0, 0, 0, 0};
    int before = 0;
    printf("%s: ", name);
    for (int k = 1; k <= calls; k++) {
        const int alone = tilecore_next_is_serial(&record);
        if (alone) tilecore_note_serial(&record, 1000);
        else tilecore_note_parallel(&record, waking && before ? waking : k % 50 ? pace
                                                                                : pace_of_each_50th,
                                    beside, 2);
        putchar((before = alone) ? 's' : 'w');
    }
    printf("\n");
}

int main(int argc, char **argv)
{
#if !defined(_WIN32)
    pthread_atfork(look_before_fork, NULL, NULL);
#endif
    if (tilecore_register_workers() || tilecore_register_workers()) return 2;
    if (argc == 5 && !strcmp(argv[1], "run") && atoi(argv[2]) > 0 && atoi(argv[2]) < MAX_CALLERS)
        return run(atoi(argv[2]), atol(argv[3]), atol(argv[4]));
    if (argc == 3 && !strcmp(argv[1], "wait")) return wait_for_others(atoi(argv[2])) != 0;
    if (argc != 1) return 2;
    if (tilecore_find_record(0, 0, 0, PTRDIFF_MAX) != &tilecore_records[0][0][0][TILECORE_SIZE_CLASSES - 1]) return 3;
    learn("gains", 200, 550, 1300, 1000, 0);        /* seldom serial, and not after a single slow call */
    learn("busy", 500, 9000, 9000, 1000, 0);        /* single calls take nine times the time */
    learn("small losses", 90, 1050, 1050, 1000, 0); /* a little slower each time */
    learn("bandwidth", 60, 1100, 1100, 1900, 0);    /* faster by the caller's part, but slower than serial calls */
    learn("waking", 200, 550, 550, 1000, 2000);     /* workers that wake late after a serial call are no loss */
    return 0;
}
