#include "workers.h"
#include "system.h"

#include <limits.h>
#include <string.h>

/* A caller polls so often for the end of the last chunk before it sleeps. */
#define TILECORE_SPINS 400

/* The processor's hint for loops that poll. */
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

/* A job is a number of chunks and a counter. The caller publishes it, wakes workers, and takes chunks itself at once.
 * When no chunk is left it closes the job, and waits for the workers inside, each in its last, small chunk. A worker
 * that wakes late finds the job closed and sleeps again: nobody waits for workers that have not begun.
 *
 *     caller      publish | chunk | chunk | chunk | chunk | close, wait |
 *     worker 1            . wake  | chunk | chunk | chunk |             . park
 *     worker 2            . . . . . . . . . . . . . . . . . . . . . . . .  wake: closed, park
 *
 * There is one job at a time. A second caller writes alone, and waits at most while workers are created. A job must not
 * stay open during a check for signals: a handler may tile or fork, and in a greenlet it may even move the caller's
 * stack, on which the job lies. So the caller looks at the clock between its chunks, and ends the job at `until`.
 *
 * The caller takes chunks from the first on, the workers from the last on: in successive calls into the same output
 * each processor finds most of its part in its own cache. Where they meet, at the end of the job, the chunks are small:
 *
 *     caller -> | large | large | s | s | s | s | s | s | large | large | large | large | <- workers */
static ptrdiff_t tilecore_count_iterations(ptrdiff_t bytes, ptrdiff_t each) { return bytes > each ? bytes / each : 1; }

/* Cuts a job into chunks for `threads` threads. */
static void tilecore_cut(tilecore_job *job, int threads)
{
    const ptrdiff_t iterations = job->last - job->first, each = job->each;
    ptrdiff_t large = iterations * each / ((ptrdiff_t)16 * threads), little, n; /* bytes; number of large chunks */
    if (large > TILECORE_MAX_CHUNK_BYTES) large = TILECORE_MAX_CHUNK_BYTES;
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

/* Returns the first iteration of a chunk. */
static ptrdiff_t tilecore_chunk_begin(const tilecore_job *job, ptrdiff_t number)
{
    const ptrdiff_t left = job->chunks - number; /* this one included */
    if (left <= job->trailing) return job->last - left * job->large_chunk;
    if (number <= job->leading) return job->first + number * job->large_chunk;
    return job->first + job->leading * job->large_chunk + (number - job->leading) * job->small_chunk;
}

static void tilecore_write_chunk(const tilecore_job *job, ptrdiff_t number)
{
    job->task(job->argument, tilecore_chunk_begin(job, number), tilecore_chunk_begin(job, number + 1));
}

/* The caller takes chunks until none is left, or one ends past the time `until`. Returns how many. */
static ptrdiff_t tilecore_lead(tilecore_job *job, long long until)
{
    ptrdiff_t number = 0;
    while (tilecore_atomic_add(&job->taken, 1) < job->chunks) {
        tilecore_write_chunk(job, number++);
        if (tilecore_nanoseconds(0) >= until) tilecore_atomic_add(&job->taken, job->chunks);
    }
    return number;
}

/* A worker takes chunks until none is left, or until `stop` is set. */
static void tilecore_help(tilecore_job *job, const ptrdiff_t *stop)
{
    while (!tilecore_atomic_load(stop) && tilecore_atomic_add(&job->taken, 1) < job->chunks)
        tilecore_write_chunk(job, job->chunks - 1 - tilecore_atomic_add(&job->taken_by_workers, 1));
}

/* ---------------------------------------------------------------- the workers */

/* If all processors are busy, a worker wakes late, or loses its processor in the middle of a chunk: see
 * learn_threads.c. A policy by which it never preempts another thread (SCHED_BATCH) was no better. At exit nobody ends
 * or joins workers: they end with the process, by exit() or a return from main(). */
static tilecore_mutex tilecore_workers_lock = TILECORE_MUTEX_INIT;
static tilecore_condition tilecore_work = TILECORE_CONDITION_INIT;   /* workers wait for it */
static tilecore_condition tilecore_change = TILECORE_CONDITION_INIT; /* callers and fork() wait for it */

/* Read and changed under the lock. Counters are also read without it, where a stale value does no harm. */
static struct {
    tilecore_job *job;   /* the open job, or NULL */
    int wanted;          /* how many more workers may enter it */
    ptrdiff_t inside;    /* how many workers are in it: a counter */
    int in_use;          /* whether a caller has the workers */
    ptrdiff_t recalled;  /* whether a fork() has begun: workers end, and there are no jobs; a counter */
    tilecore_affinity affinity; /* of the workers */
    int count;
    tilecore_thread worker[TILECORE_MAX_THREADS - 1];
} tilecore_workers;

static void tilecore_serve(void)
{
    tilecore_job *job;
    tilecore_lock(&tilecore_workers_lock);
    while (!tilecore_workers.recalled) {
        if (!tilecore_workers.job || tilecore_workers.wanted == 0) {
            tilecore_wait(&tilecore_work, &tilecore_workers_lock);
            continue;
        }
        job = tilecore_workers.job;
        tilecore_workers.wanted--;
        tilecore_atomic_store(&tilecore_workers.inside, tilecore_workers.inside + 1);
        tilecore_unlock(&tilecore_workers_lock);
        tilecore_help(job, &tilecore_workers.recalled);
        tilecore_lock(&tilecore_workers_lock);
        tilecore_workers.job = NULL; /* still this job: its caller waits for this worker */
        tilecore_atomic_store(&tilecore_workers.inside, tilecore_workers.inside - 1);
        if (!tilecore_workers.inside) tilecore_wake_all(&tilecore_change);
    }
    tilecore_unlock(&tilecore_workers_lock);
}

/* Under the lock, lets the workers run where the calling thread may, but not on its processor now: a worker that last
 * ran there would wait there. In a virtual machine (KVM) Linux takes a sleeping processor for a busy one, and does not
 * move the worker to it: then calls of 13 and 26 MB after pauses of 3 ms take 1.15 to 1.4 times as long. A filter of
 * system calls may end the process here: see docs/threads.md. `anew`: some workers have their creator's affinity. */
static void tilecore_move_workers(int anew)
{
#if defined(__linux__) && !defined(__ANDROID__) /* Android has no pthread_setaffinity_np */
    tilecore_affinity now;
    int k;
    if (tilecore_read_affinity(&now) > 1) CPU_CLR_S((size_t)sched_getcpu(), (size_t)now.bytes, now.part);
    else if (now.bytes < 0) return;
    if (!anew && !memcmp(now.part, tilecore_workers.affinity.part, (size_t)now.bytes)) return;
    for (k = 0; k < tilecore_workers.count; k++)
        pthread_setaffinity_np(tilecore_workers.worker[k].handle, (size_t)now.bytes, now.part);
    memcpy(tilecore_workers.affinity.part, now.part, (size_t)now.bytes);
#else
    (void)anew;
#endif
}

/* Publishes a job, which stays where it is until tilecore_close(), for up to `wanted` < TILECORE_MAX_THREADS workers.
 * Creates missing workers, until the system refuses. Returns 0 if it publishes nothing: another caller has the workers,
 * a fork() is under way, or the system created none. */
static int tilecore_publish(tilecore_job *job, int wanted)
{
    int k, published = 0;
    tilecore_lock(&tilecore_workers_lock);
    if (!tilecore_workers.in_use && !tilecore_workers.recalled) {
        int *const count = &tilecore_workers.count, before = *count;
        while (*count < wanted && tilecore_thread_new(&tilecore_workers.worker[*count], tilecore_serve)) ++*count;
        tilecore_move_workers(*count > before);
        if (wanted > *count) wanted = *count;
        tilecore_workers.wanted = wanted;
        tilecore_workers.in_use = published = wanted > 0;
        if (published) tilecore_workers.job = job;
    }
    tilecore_unlock(&tilecore_workers_lock);
    for (k = 0; published && k < wanted; k++) tilecore_wake_one(&tilecore_work);
    return published;
}

/* Closes the job that the calling thread published, and waits for the workers inside it. */
static void tilecore_close(void)
{
    int spins = TILECORE_SPINS;
    tilecore_lock(&tilecore_workers_lock);
    tilecore_workers.job = NULL;
    if (tilecore_workers.inside) {
        tilecore_unlock(&tilecore_workers_lock);
        while (spins-- && tilecore_atomic_load(&tilecore_workers.inside)) tilecore_pause();
        tilecore_lock(&tilecore_workers_lock);
        while (tilecore_workers.inside) tilecore_wait(&tilecore_change, &tilecore_workers_lock);
    }
    tilecore_workers.in_use = 0;
    tilecore_unlock(&tilecore_workers_lock);
}

static double tilecore_pace(long long nanoseconds, ptrdiff_t bytes)
{
    return (double)(nanoseconds + 1) * 1048576 / (double)bytes;
}

/* Runs tilecore_parallel's job in this thread and in up to `threads` - 1 workers. Returns 0 if there are none. */
static int tilecore_with_workers(tilecore_job *job, int threads, tilecore_record *record, long long until)
{
    const long long begun = tilecore_nanoseconds(0); /* waking workers counts too */
    long long run;
    ptrdiff_t chunks, first, last, own, all;
    tilecore_cut(job, threads);
    if (!tilecore_publish(job, threads - 1)) return 0;
    run = tilecore_nanoseconds(1);
    chunks = tilecore_lead(job, until);
    run = tilecore_nanoseconds(1) - run;
    tilecore_close();
    first = tilecore_chunk_begin(job, chunks);
    last = tilecore_chunk_begin(job, job->chunks - job->taken_by_workers);
    own = (first - job->first) * job->each, all = own + (job->last - last) * job->each;
    job->first = first, job->last = last;
    if (record)
        tilecore_note_parallel(record, tilecore_pace(tilecore_nanoseconds(0) - begun, all),
                               own ? tilecore_pace(run, own) : 0, threads);
    return 1;
}

void tilecore_parallel(tilecore_job *job, int threads, tilecore_record *record, long long until)
{
    const ptrdiff_t begin = job->first;
    ptrdiff_t step = tilecore_count_iterations(TILECORE_MAX_CHUNK_BYTES, job->each);
    long long begun, now;
    if (threads > 1 && tilecore_with_workers(job, threads, record, until)) return;
    begun = record || until < LLONG_MAX ? tilecore_nanoseconds(0) : 0;
    for (;;) {
        const ptrdiff_t next = job->last - job->first > step ? job->first + step : job->last;
        job->task(job->argument, job->first, next);
        job->first = next;
        if (next == job->last || (now = tilecore_nanoseconds(0)) >= until) break;
        /* Twice the last chunk takes about as long as all before it: at most half of the time left. */
        if (until - now > 2 * (now - begun)) step *= 2;
    }
    if (record && threads == 1)
        tilecore_note_serial(record, tilecore_pace(tilecore_nanoseconds(0) - begun, (job->first - begin) * job->each));
}

/* Before fork() each worker ends when its chunk is written, and is joined. So no fork finds a thread of ours, and
 * Python (3.12 and later) does not warn. The caller of an open job, in another thread, continues alone. Until the other
 * two handlers run no job has workers; then the next large result creates new ones, in parent and child. */
#if !defined(_WIN32)
static void tilecore_before_fork(void)
{
    int k;
    tilecore_lock(&tilecore_workers_lock);
    while (tilecore_workers.recalled) tilecore_wait(&tilecore_change, &tilecore_workers_lock); /* another's fork() */
    tilecore_atomic_store(&tilecore_workers.recalled, 1);
    tilecore_workers.job = NULL;
    tilecore_wake_all(&tilecore_work);
    tilecore_unlock(&tilecore_workers_lock);
    /* From here on only this thread uses the workers. */
    for (k = 0; k < tilecore_workers.count; k++) pthread_join(tilecore_workers.worker[k].handle, NULL);
    for (k = 0; k < tilecore_workers.count; k++) tilecore_await_end(&tilecore_workers.worker[k]);
    tilecore_workers.count = 0;
}

static void tilecore_after_fork_in_parent(void)
{
    tilecore_lock(&tilecore_workers_lock);
    tilecore_atomic_store(&tilecore_workers.recalled, 0);
    tilecore_wake_all(&tilecore_change);
    tilecore_unlock(&tilecore_workers_lock);
}

/* Makes a new lock and new conditions: threads that the child lacks may have held the old ones or waited for them. */
static void tilecore_after_fork_in_child(void)
{
    pthread_mutex_init(&tilecore_workers_lock, NULL);
    pthread_cond_init(&tilecore_work, NULL);
    pthread_cond_init(&tilecore_change, NULL);
    tilecore_workers.job = NULL;
    tilecore_workers.in_use = 0;
    tilecore_workers.inside = tilecore_workers.recalled = 0;
}

int tilecore_register_workers(void)
{
    return tilecore_at_fork(tilecore_before_fork, tilecore_after_fork_in_parent, tilecore_after_fork_in_child);
}
#else
int tilecore_register_workers(void) { return 0; }
#endif
