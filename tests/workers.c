/* The workers by themselves: jobs of many callers at once, forks between them and in the midst of them.
 *
 *     workers run CALLERS JOBS FORKS    JOBS jobs in all, each iteration of each written exactly once, a quarter of
 *                                       them in steps, as between checks for signals; meanwhile FORKS forks
 *     workers slow                      forks where the system counts each ended worker for 20 ms more
 *     workers learn                     which calls are alone after gains and losses
 *
 * Prints what was done; the exit status is 0 where nothing was wrong. FORKS is 0 for ThreadSanitizer, which
 * cannot follow a child's threads, and on Windows, where this takes MinGW's threads for the callers.
 */
#define _GNU_SOURCE
#define __USE_MINGW_ANSI_STDIO 1 /* %td */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if !defined(_WIN32)
#include <dirent.h>
#include <sys/wait.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <time.h>

/* The system as the workers see it: for `workers slow` it counts a thread for 20 ms more, once it is asked. */
static int is_slow, seen_off;
static long asked_for;
static struct timespec asked_at;

static long system_call(long number, ...)
{
    struct timespec now;
    va_list arguments;
    int process, signal_number;
    long thread;
    if (number == SYS_gettid) return syscall(number);
    va_start(arguments, number);
    if (number != SYS_tgkill) {
        const long first = va_arg(arguments, long), second = va_arg(arguments, long), third = va_arg(arguments, long);
        va_end(arguments);
        return syscall(number, first, second, third);
    }
    process = va_arg(arguments, int);
    thread = va_arg(arguments, long);
    signal_number = va_arg(arguments, int);
    va_end(arguments);
    if (!is_slow) return syscall(number, process, thread, signal_number);
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (thread != asked_for) asked_for = thread, asked_at = now;
    if ((now.tv_sec - asked_at.tv_sec) * 1000 + (now.tv_nsec - asked_at.tv_nsec) / 1000000 < 20) return 0;
    seen_off++;
    return -1;
}
#define syscall system_call
#endif

#include "kernels/workers.h"

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
    ptrdiff_t k;
    for (k = first; k < last; k++) times[k]++;
}

/* 1 where each iteration of a job was written once, and nothing besides. */
static int one_job(caller_state *caller)
{
    const ptrdiff_t iterations = 1 + next_random(&caller->seed) % (MAX_ITERATIONS - 2);
    const ptrdiff_t begin = next_random(&caller->seed) % (MAX_ITERATIONS - iterations);
    const int threads = 1 + (int)(next_random(&caller->seed) % 6);
    const long long until = next_random(&caller->seed) % 4 ? LLONG_MAX : 0;
    ptrdiff_t k, first = begin, last = begin + iterations;
    memset(caller->times, 0, sizeof caller->times);
    while (first < last)
        tilecore_parallel(write_iterations, caller->times, &first, &last, ITERATION_BYTES, threads,
                          next_random(&caller->seed) % 4 ? NULL : &tilecore_records[0][0], until);
    for (k = 0; k < MAX_ITERATIONS; k++)
        if (caller->times[k] != (begin <= k && k < begin + iterations)) return 0;
    return 1;
}

static void *call(void *argument)
{
    caller_state *caller = (caller_state *)argument;
    tilecore_atomic_add(&callers_here, 1);
    while (tilecore_atomic_add(&jobs_left, -1) > 0) {
        const int right = one_job(caller);
        if (!right) tilecore_atomic_add(&wrong, 1);
        tilecore_atomic_add(&jobs_done, 1);
    }
    return NULL;
}

/* ---------------------------------------------------------------- fork */

static void *wait_for_end(void *argument)
{
    call(argument);
    while (tilecore_atomic_load(&jobs_left) > THE_END) sched_yield(); /* counted until the last fork */
    return NULL;
}

#if defined(_WIN32)
static void fork_in_the_midst(ptrdiff_t jobs, ptrdiff_t wanted) { (void)jobs, (void)wanted; }
#else
static int counts_threads;

static int threads_now(void)
{
    int count = 0;
    const struct dirent *entry;
    DIR *folder = opendir("/proc/self/task");
    if (!folder) return 0;
    while ((entry = readdir(folder)) != NULL) count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

/* The first to be registered, so the last before the fork: the callers, who stay until told, and this thread. */
static void look_before_fork(void)
{
    int count;
    if (!counts_threads || (count = threads_now()) == 0) return;
    tilecore_atomic_add(&seen_at_fork, 1);
    if (count != 1 + number_of_callers) {
        fprintf(stderr, "%d threads before a fork, of which %d are callers\n", count, number_of_callers);
        tilecore_atomic_add(&wrong, 1);
    }
}

static void await_child(pid_t child)
{
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child || status) tilecore_atomic_add(&wrong, 1);
    tilecore_atomic_add(&forks, 1);
}

/* The child makes workers of its own, and a child of its own. */
static void fork_here(unsigned seed)
{
    const pid_t child = fork();
    if (child == 0) {
        caller_state *caller = &callers[MAX_CALLERS - 1];
        int right;
        caller->seed = seed;
        counts_threads = 0;
        right = one_job(caller) && one_job(caller);
        if (right && seed % 4 == 0) {
            const pid_t grandchild = fork();
            int status = 1;
            if (grandchild == 0) _exit(one_job(caller) ? 0 : 1);
            right = waitpid(grandchild, &status, 0) == grandchild && status == 0;
        }
        _exit(right && one_job(caller) ? 0 : 1);
    }
    await_child(child);
}

/* Spread over all jobs. */
static void fork_in_the_midst(ptrdiff_t jobs, ptrdiff_t wanted)
{
    unsigned seed = 1;
    ptrdiff_t k;
    counts_threads = 1;
    for (k = 0; k < wanted; k++) {
        while (tilecore_atomic_load(&jobs_done) < jobs / (wanted + 1) * (k + 1)) sched_yield();
        fork_here(next_random(&seed));
    }
    counts_threads = 0;
}
#endif

static int run(int count, ptrdiff_t jobs, ptrdiff_t wanted_forks)
{
    ptrdiff_t k;
    number_of_callers = count;
    jobs_left = jobs;
    for (k = 0; k < count; k++) {
        callers[k].seed = (unsigned)k;
        if (pthread_create(&callers[k].thread, NULL, wait_for_end, &callers[k])) return 2;
    }
    while (tilecore_atomic_load(&callers_here) < count) sched_yield();
    fork_in_the_midst(jobs, wanted_forks);
    while (tilecore_atomic_load(&jobs_done) < jobs) sched_yield();
    tilecore_atomic_store(&jobs_left, THE_END);
    for (k = 0; k < count; k++) pthread_join(callers[k].thread, NULL);
    printf("%td jobs of %d callers, %td forks, threads counted at %td, %td wrong\n", jobs_done, count, forks,
           seen_at_fork, wrong);
    return wrong || jobs_done != jobs || forks != wanted_forks;
}

/* ---------------------------------------------------------------- a slow system */

#if defined(__linux__)
static int fork_slowly(void)
{
    int status = 1, workers;
    pid_t child;
    callers[0].seed = 7;
    if (!one_job(&callers[0]) || !one_job(&callers[0])) return 1;
    workers = tilecore_workers.count;
    is_slow = 1;
    child = fork();
    if (child == 0) _exit(0);
    if (child < 0 || waitpid(child, &status, 0) != child) return 2;
    printf("%d workers, %d seen off before the fork\n", workers, seen_off);
    return status || workers == 0 || seen_off != workers;
}
#else
static int fork_slowly(void) { return 0; }
#endif

/* Calls with workers at this rate, and alone at 1000, until one was a loss. Returns how many were made, and in `alone`
 * how many calls are alone after the loss; or `most`, and how many of them were alone. */
static int calls(tilecore_record *record, int most, double rate, double beside, int *alone)
{
    int made;
    *alone = 0;
    for (made = 1; made <= most; made++) {
        if (tilecore_next_is_alone(record)) {
            tilecore_note_alone(record, 1000);
            ++*alone;
            continue;
        }
        tilecore_note_joint(record, rate, beside, 2);
        if (tilecore_atomic_load(&record->next) > 1) { /* 1: the one after a pause */
            for (*alone = 0; tilecore_next_is_alone(record); ++*alone) tilecore_note_alone(record, 1000);
            return made;
        }
    }
    return most;
}

static int learn(void)
{
    static const struct {
        const char *what;
        double rate, beside;
        int rounds;
    } cases[] = {{"busy", 9000, 1000, 7},       /* single calls take nine times the time */
                 {"small", 1050, 1000, 4},      /* a little slower each time */
                 {"bandwidth", 1100, 1900, 2}}; /* as the caller's part says, faster; slower than calls alone */
    size_t k;
    int round, alone, made;
    tilecore_record gains = {0, 0, 0, 0, 0, 0};
    printf("gains");
    for (round = made = 0; made < 200; made++) {
        if (tilecore_next_is_alone(&gains)) printf(" %d", made + 1), tilecore_note_alone(&gains, 1000);
        else tilecore_note_joint(&gains, made % 50 == 49 ? 1300 : 550, 1000, 2); /* one of 50 calls is slow */
    }
    for (k = 0; k < sizeof cases / sizeof *cases; k++) {
        tilecore_record record = {0, 0, 0, 0, 0, 0};
        printf("; %s", cases[k].what);
        for (round = 0; round < cases[k].rounds; round++) {
            made = calls(&record, 100, cases[k].rate, cases[k].beside, &alone);
            printf(" %d:%d", made, alone);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
#if !defined(_WIN32)
    pthread_atfork(look_before_fork, NULL, NULL);
#endif
    if (tilecore_register_workers() || tilecore_register_workers()) return 2;
    if (argc == 5 && !strcmp(argv[1], "run") && atoi(argv[2]) > 0 && atoi(argv[2]) < MAX_CALLERS)
        return run(atoi(argv[2]), atol(argv[3]), atol(argv[4]));
    if (argc == 2 && !strcmp(argv[1], "slow")) return fork_slowly();
    if (argc == 2 && !strcmp(argv[1], "learn")) return learn();
    fprintf(stderr, "usage: workers run CALLERS JOBS FORKS | workers slow | workers learn\n");
    return 2;
}
