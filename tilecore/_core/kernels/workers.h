/* Threads that help to write large results. They belong to the process, run C alone, and park between jobs.
 *
 *     static void task(void *job, ptrdiff_t first, ptrdiff_t last) { ... write the iterations first to last - 1 ... }
 *
 *     tilecore_register_workers();                             // once, before all else: the handlers of fork()
 *     tilecore_parallel(task, &job, 0, iterations, bytes, 8);  // returns when all of them have run
 *
 * Static variables hold the state, once in a process: exactly one extension module includes this.
 *
 * A job is a number of chunks and a counter. The caller publishes it, wakes workers, and takes chunks itself at once.
 * When no chunk is left the job is closed, and the caller waits for the workers inside it, each in its last, small
 * chunk. A worker that wakes late finds the job closed and parks again: nobody waits for workers that have not begun.
 * There is one job at a time; a second caller writes alone, and waits at most while workers are created.
 *
 *     caller      publish | chunk | chunk | chunk | chunk | close, wait |
 *     worker 1            . wake  | chunk | chunk | chunk |             . park
 *     worker 2            . . . . . . . . . . . . . . . . . . . . . . . .  wake: closed, park
 *
 * fork(). Before fork() each worker ends when its chunk is written, and is joined. So no fork finds a thread of ours,
 * and Python (3.12 and later) does not warn. The caller of an open job, in another thread, continues alone. The next
 * large result creates new workers, in parent and child.
 *
 * Processors. Before a job, the workers get the caller's present affinity mask. They began with their creator's mask,
 * and a later sched_setaffinity() or taskset would not change theirs.
 *
 * Busy machines. A worker that wakes does not preempt its caller or other threads (SCHED_BATCH): otherwise it would
 * write alone, while its caller waits for another time slice. If all processors are busy it wakes late. But at the end
 * of a time slice it may still run instead of its caller, or lose its processor in the middle of a chunk. After a job
 * that the caller would have finished sooner alone, callers back off: the next calls use no workers, and after each
 * further loss twice as many calls.
 *
 * Signals. Workers block all signals except SIGBUS and SIGSEGV, which their own access to memory may raise.
 *
 * Exit. Nobody ends or joins the workers, parked or at work: they end with the process, by exit() or a return from
 * main(). (A C program that ends main() by pthread_exit() has to call exit() in its last thread.)
 *
 * C11 / C++17, and on Linux _GNU_SOURCE, as in locks.h.
 */
#ifndef TILECORE_WORKERS_H
#define TILECORE_WORKERS_H

#include "locks.h"

#if defined(_WIN32)
#include <process.h>
#else
#include <errno.h>
#include <signal.h>
#endif
#include <string.h>

/* ---------------------------------------------------------------- tunables, each with its reason */

/* The maximum number of threads that write one result, whatever the caller passes. */
#define TILECORE_MAX_THREADS 256

/* Two threads write TILECORE_THREAD_BYTES, and one more thread each further TILECORE_BYTES_A_THREAD. */
#define TILECORE_BYTES_A_THREAD (TILECORE_THREAD_BYTES / 2)

/* A chunk is a sixteenth of a thread's part, within these bounds: smaller chunks take longer to start, larger ones
 * longer to wait for the last one. The last chunks are an eighth of that, at least TILECORE_LAST_CHUNK_BYTES. */
#define TILECORE_CHUNK_BYTES ((ptrdiff_t)128 << 10)
#define TILECORE_MOST_CHUNK_BYTES ((ptrdiff_t)2 << 20)
#define TILECORE_LAST_CHUNK_BYTES ((ptrdiff_t)32 << 10)

/* How often a caller polls for the end of the last chunk before it sleeps. */
#define TILECORE_SPINS 400

/* A job was a loss if it took longer by this factor than its caller alone would have taken, estimated from the caller's
 * own processor time and chunks. The next calls then use no workers: TILECORE_LEAST_BACKOFF to TILECORE_MOST_BACKOFF
 * of them. With four busy processes on two processors, 13 MB took 3.1 ms without backoff, 0.7 ms with it, as with one
 * thread (Emerald Rapids). */
#define TILECORE_LOSS 1.25
#define TILECORE_LEAST_BACKOFF 4
#define TILECORE_MOST_BACKOFF 128

/* A worker's stack: a task takes a few kilobytes, and a handler of SIGSEGV may need more. Unused stack is only
 * reserved, but counts if memory is locked or the address space is limited. */
#define TILECORE_WORKER_STACK ((size_t)256 << 10)

/* ---------------------------------------------------------------- threads of each system */

#if defined(_WIN32)
typedef CONDITION_VARIABLE tilecore_condition;
typedef HANDLE tilecore_thread;
#define TILECORE_CONDITION_INIT CONDITION_VARIABLE_INIT
#define tilecore_wait(condition, lock) SleepConditionVariableSRW(condition, lock, INFINITE, 0)
#define tilecore_wake_one WakeConditionVariable
#define tilecore_wake_all WakeAllConditionVariable
#else
typedef pthread_cond_t tilecore_condition;
typedef pthread_t tilecore_thread;
#define TILECORE_CONDITION_INIT PTHREAD_COND_INITIALIZER
#define tilecore_wait pthread_cond_wait
#define tilecore_wake_one pthread_cond_signal
#define tilecore_wake_all pthread_cond_broadcast
#endif

TILECORE_INLINE void tilecore_pause(void)
{
#if defined(_WIN32)
    YieldProcessor();
#elif defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* ---------------------------------------------------------------- a job */

/* Writes the iterations first to last - 1 of a job. Must not fail. */
typedef void (*tilecore_task)(void *argument, ptrdiff_t first, ptrdiff_t last);

/* The caller takes the chunks from the first on, the workers from the last on: in successive calls into the same memory
 * each processor finds most of its part in its own cache. Where they meet, at the end of the job, the chunks are small:
 *
 *     caller -> | large | large | s | s | s | s | s | s | large | large | large | large | <- workers
 */
typedef struct tilecore_job {
    tilecore_task task;
    void *argument;
    ptrdiff_t first, last;               /* its iterations */
    ptrdiff_t large_chunk, small_chunk;  /* in iterations; `small` is a macro on Windows */
    ptrdiff_t leading, trailing, chunks; /* numbers of large chunks at the start and at the end, and of all chunks */
    ptrdiff_t taken, taken_by_workers;   /* numbers of chunks: counters */
} tilecore_job;

static ptrdiff_t tilecore_count_iterations(ptrdiff_t bytes, ptrdiff_t each) { return bytes > each ? bytes / each : 1; }

/* Cuts a job of `bytes` in all into chunks for `threads` threads. */
static void tilecore_cut(tilecore_job *job, ptrdiff_t bytes, int threads)
{
    const ptrdiff_t iterations = job->last - job->first;
    const ptrdiff_t each = bytes > iterations ? bytes / iterations : 1;
    ptrdiff_t large = bytes / ((ptrdiff_t)16 * threads), little, n; /* bytes of a chunk; number of large chunks */
    if (large > TILECORE_MOST_CHUNK_BYTES) large = TILECORE_MOST_CHUNK_BYTES;
    if (large < TILECORE_CHUNK_BYTES) large = TILECORE_CHUNK_BYTES;
    job->large_chunk = tilecore_count_iterations(large, each);
    little = large / 8 > TILECORE_LAST_CHUNK_BYTES ? large / 8 : TILECORE_LAST_CHUNK_BYTES;
    job->small_chunk = tilecore_count_iterations(little, each);
    n = iterations / job->large_chunk - threads;
    if (n < 0) n = 0;
    job->leading = n / threads;
    job->trailing = n - job->leading;
    job->chunks = n + (iterations - n * job->large_chunk + job->small_chunk - 1) / job->small_chunk;
    job->taken = job->taken_by_workers = 0;
}

/* Writes a chunk. Returns its number of iterations. */
static ptrdiff_t tilecore_write_chunk(const tilecore_job *job, ptrdiff_t number)
{
    const ptrdiff_t left = job->chunks - number; /* this one included */
    const ptrdiff_t trailing = job->last - job->trailing * job->large_chunk;
    ptrdiff_t first, last;
    if (number < job->leading) {
        first = job->first + number * job->large_chunk;
        last = first + job->large_chunk;
    } else if (left > job->trailing) {
        first = job->first + job->leading * job->large_chunk + (number - job->leading) * job->small_chunk;
        last = first + job->small_chunk < trailing ? first + job->small_chunk : trailing;
    } else {
        first = job->last - left * job->large_chunk;
        last = first + job->large_chunk;
    }
    job->task(job->argument, first, last);
    return last - first;
}

/* The caller's part: takes chunks until none is left. Returns their number of iterations. */
static ptrdiff_t tilecore_lead(tilecore_job *job)
{
    ptrdiff_t number = 0, iterations = 0;
    while (tilecore_atomic_add(&job->taken, 1) < job->chunks) iterations += tilecore_write_chunk(job, number++);
    return iterations;
}

/* A worker's part: takes chunks until none is left, or until `stop` is set. */
static void tilecore_help(tilecore_job *job, const ptrdiff_t *stop)
{
    while (!tilecore_atomic_load(stop) && tilecore_atomic_add(&job->taken, 1) < job->chunks)
        tilecore_write_chunk(job, job->chunks - 1 - tilecore_atomic_add(&job->taken_by_workers, 1));
}

/* ---------------------------------------------------------------- the workers */

typedef struct tilecore_worker {
    tilecore_thread thread;
    long id; /* of the thread, on Linux */
} tilecore_worker;

static tilecore_lock tilecore_workers_lock = TILECORE_LOCK_INIT;
static tilecore_condition tilecore_work = TILECORE_CONDITION_INIT;   /* workers wait for it */
static tilecore_condition tilecore_change = TILECORE_CONDITION_INIT; /* callers and fork() wait for it */

/* Under the lock. Counters are also read without it, where a stale value does no harm. */
static struct {
    tilecore_job *job;   /* the open job, or NULL */
    int wanted;          /* how many more workers may enter it */
    ptrdiff_t inside;    /* how many workers are in it: a counter */
    int taken;           /* whether a caller has the workers */
    ptrdiff_t recalled;  /* whether a fork() has begun: workers end, and there are no jobs. A counter */
    tilecore_affinity affinity; /* of the workers */
    int count;
    tilecore_worker worker[TILECORE_MAX_THREADS - 1];
} tilecore_workers;

static void tilecore_serve(void)
{
    tilecore_job *job;
#if defined(__linux__) /* not by sched_setscheduler(), which musl lacks */
    struct sched_param none;
    int policy;
    if (!pthread_getschedparam(pthread_self(), &policy, &none) && policy == SCHED_OTHER)
        pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
#endif
    tilecore_acquire(&tilecore_workers_lock);
    while (!tilecore_workers.recalled) {
        if (!tilecore_workers.job || tilecore_workers.wanted == 0) {
            tilecore_wait(&tilecore_work, &tilecore_workers_lock);
            continue;
        }
        job = tilecore_workers.job;
        tilecore_workers.wanted--;
        tilecore_atomic_store(&tilecore_workers.inside, tilecore_workers.inside + 1);
        tilecore_release(&tilecore_workers_lock);
        tilecore_help(job, &tilecore_workers.recalled);
        tilecore_acquire(&tilecore_workers_lock);
        tilecore_workers.job = NULL; /* no other job: the caller of this one waits for us */
        tilecore_atomic_store(&tilecore_workers.inside, tilecore_workers.inside - 1);
        if (!tilecore_workers.inside) tilecore_wake_all(&tilecore_change);
    }
    tilecore_release(&tilecore_workers_lock);
}

#if defined(_WIN32)
static unsigned __stdcall tilecore_run_worker(void *argument)
{
    (void)argument;
    tilecore_serve();
    return 0;
}

static int tilecore_create(tilecore_worker *worker)
{
    worker->thread = (HANDLE)_beginthreadex(NULL, (unsigned)TILECORE_WORKER_STACK, tilecore_run_worker, worker,
                                            STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
    return worker->thread != NULL;
}
#else
static void *tilecore_run_worker(void *argument)
{
    tilecore_worker *worker = (tilecore_worker *)argument;
#if defined(__linux__)
    worker->id = syscall(SYS_gettid);
#else
    worker->id = 0;
#endif
    tilecore_serve();
    return NULL;
}

/* The worker inherits the signal mask of its creator. SIGBUS and SIGSEGV stay unblocked: access to memory may raise
 * them, for instance if a mapped file was truncated, and a blocked one would end the program without its handler. */
static int tilecore_create(tilecore_worker *worker)
{
    pthread_attr_t attributes;
    sigset_t blocked, before;
    int status = pthread_attr_init(&attributes);
    sigfillset(&blocked);
    sigdelset(&blocked, SIGBUS);
    sigdelset(&blocked, SIGSEGV);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    if (!status) {
        status = pthread_attr_setstacksize(&attributes, TILECORE_WORKER_STACK);
        if (!status) status = pthread_create(&worker->thread, &attributes, tilecore_run_worker, worker);
        pthread_attr_destroy(&attributes);
    }
    /* EINVAL: the stack is too small, because the program's libraries have much thread-local storage. */
    if (status == EINVAL) status = pthread_create(&worker->thread, NULL, tilecore_run_worker, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status == 0;
}
#endif

/* Sets the affinity mask of the workers to that of the calling thread. */
static void tilecore_move_workers(void)
{
#if defined(__linux__) && !defined(__ANDROID__) /* Android has no pthread_setaffinity_np */
    tilecore_affinity now;
    int k;
    if (!tilecore_read_affinity(&now)) return;
    if (!memcmp(now.part, tilecore_workers.affinity.part, (size_t)now.bytes)) return;
    for (k = 0; k < tilecore_workers.count; k++)
        pthread_setaffinity_np(tilecore_workers.worker[k].thread, (size_t)now.bytes, now.part);
    memcpy(tilecore_workers.affinity.part, now.part, (size_t)now.bytes);
#endif
}

/* Publishes a job for up to `wanted` workers. Creates missing workers, until the system refuses. Returns 0 without a
 * worker: another caller has them, a fork() is under way, or the system created none. */
static int tilecore_publish(tilecore_job *job, int wanted)
{
    int k, published = 0;
    tilecore_acquire(&tilecore_workers_lock);
    if (!tilecore_workers.taken && !tilecore_workers.recalled) {
        int *const count = &tilecore_workers.count;
        tilecore_move_workers();
        while (*count < wanted && tilecore_create(&tilecore_workers.worker[*count])) ++*count;
        if (wanted > *count) wanted = *count;
        tilecore_workers.wanted = wanted;
        tilecore_workers.taken = published = wanted > 0;
        if (published) tilecore_workers.job = job;
    }
    tilecore_release(&tilecore_workers_lock);
    for (k = 0; published && k < wanted; k++) tilecore_wake_one(&tilecore_work);
    return published;
}

/* Closes the job, and waits for the workers inside it. */
static void tilecore_close(void)
{
    int spins = TILECORE_SPINS;
    tilecore_acquire(&tilecore_workers_lock);
    tilecore_workers.job = NULL;
    if (tilecore_workers.inside) {
        tilecore_release(&tilecore_workers_lock);
        while (spins-- && tilecore_atomic_load(&tilecore_workers.inside)) tilecore_pause();
        tilecore_acquire(&tilecore_workers_lock);
        while (tilecore_workers.inside) tilecore_wait(&tilecore_change, &tilecore_workers_lock);
    }
    tilecore_workers.taken = 0;
    tilecore_release(&tilecore_workers_lock);
}

/* Counters: the calls still to come without workers; the calls of the last backoff, less the gains since. */
static ptrdiff_t tilecore_backoff_left, tilecore_backoff;

/* Whether a call must use no workers; counts the call. Not for calls that request a number of threads. */
TILECORE_UNUSED static int tilecore_backs_off(void)
{
    const ptrdiff_t left = tilecore_atomic_load(&tilecore_backoff_left);
    if (left > 0) tilecore_atomic_store(&tilecore_backoff_left, left - 1);
    return left > 0;
}

/* After a job of `all` nanoseconds: its caller wrote `own` of its iterations in `led` nanoseconds of processor time. */
static void tilecore_update_backoff(ptrdiff_t own, ptrdiff_t iterations, long long led, long long all)
{
    ptrdiff_t backoff = tilecore_atomic_load(&tilecore_backoff);
    if (own == 0 || (double)all * (double)own > TILECORE_LOSS * (double)led * (double)iterations) {
        backoff = 2 * backoff + TILECORE_LEAST_BACKOFF;
        if (backoff > TILECORE_MOST_BACKOFF) backoff = TILECORE_MOST_BACKOFF;
        tilecore_atomic_store(&tilecore_backoff_left, backoff);
    } else {
        backoff -= (backoff + 7) / 8;
    }
    tilecore_atomic_store(&tilecore_backoff, backoff);
}

/* Runs task(argument, ..) over the iterations first to last - 1, `bytes` of output, in the calling thread and in up to
 * `threads` - 1 workers, fewer for few bytes. Returns when all iterations are done. */
TILECORE_UNUSED static void tilecore_parallel(tilecore_task task, void *argument, ptrdiff_t first, ptrdiff_t last,
                                              ptrdiff_t bytes, int threads)
{
    if (threads > TILECORE_MAX_THREADS) threads = TILECORE_MAX_THREADS;
    if (threads > last - first) threads = (int)(last - first);
    if (threads > bytes / TILECORE_BYTES_A_THREAD) threads = (int)(bytes / TILECORE_BYTES_A_THREAD);
    if (threads > 1) {
        tilecore_job job = {task, argument, first, last, 0, 0, 0, 0, 0, 0, 0};
        const long long begun = tilecore_nanoseconds(0); /* waking workers counts too */
        tilecore_cut(&job, bytes, threads);
        if (tilecore_publish(&job, threads - 1)) {
            const long long run = tilecore_nanoseconds(1);
            const ptrdiff_t own = tilecore_lead(&job);
            const long long led = tilecore_nanoseconds(1) - run;
            tilecore_close();
            tilecore_update_backoff(own, last - first, led, tilecore_nanoseconds(0) - begun);
            return;
        }
    }
    task(argument, first, last);
}

/* ---------------------------------------------------------------- fork */

#if !defined(_WIN32)
/* Waits until the system no longer counts a thread. pthread_join returns a moment earlier, or much earlier if a virtual
 * processor is descheduled just then. Waits at most two seconds, because another thread may have got the id by now. */
static void tilecore_await_end(const tilecore_worker *worker)
{
#if defined(__linux__)
    const struct timespec nap = {0, 1000000};
    int tries;
    for (tries = 0; tries < 2000 && !syscall(SYS_tgkill, getpid(), worker->id, 0); tries++) {
        if (tries < 100) sched_yield();
        else nanosleep(&nap, NULL);
    }
#else
    (void)worker;
#endif
}

static void tilecore_before_fork(void)
{
    int k;
    tilecore_acquire(&tilecore_workers_lock);
    while (tilecore_workers.recalled) tilecore_wait(&tilecore_change, &tilecore_workers_lock); /* another's fork() */
    tilecore_atomic_store(&tilecore_workers.recalled, 1);
    tilecore_workers.job = NULL;
    tilecore_wake_all(&tilecore_work);
    tilecore_release(&tilecore_workers_lock);
    /* From here on only this thread uses the workers. */
    for (k = 0; k < tilecore_workers.count; k++) pthread_join(tilecore_workers.worker[k].thread, NULL);
    for (k = 0; k < tilecore_workers.count; k++) tilecore_await_end(&tilecore_workers.worker[k]);
    tilecore_workers.count = 0;
}

static void tilecore_after_fork_in_parent(void)
{
    tilecore_acquire(&tilecore_workers_lock);
    tilecore_atomic_store(&tilecore_workers.recalled, 0);
    tilecore_wake_all(&tilecore_change);
    tilecore_release(&tilecore_workers_lock);
}

/* Other threads, which the child lacks, may have held the lock or waited for the conditions: makes new ones. */
static void tilecore_after_fork_in_child(void)
{
    pthread_mutex_init(&tilecore_workers_lock, NULL);
    pthread_cond_init(&tilecore_work, NULL);
    pthread_cond_init(&tilecore_change, NULL);
    tilecore_workers.job = NULL;
    tilecore_workers.taken = 0;
    tilecore_workers.inside = tilecore_workers.recalled = 0;
}
#endif

/* Registers the handlers of fork(). Call once, before all else. Returns 0, or an error number. */
TILECORE_UNUSED static int tilecore_register_workers(void)
{
#if defined(_WIN32)
    return 0;
#else
    return tilecore_at_fork(tilecore_before_fork, tilecore_after_fork_in_parent, tilecore_after_fork_in_child);
#endif
}

#endif /* TILECORE_WORKERS_H */
