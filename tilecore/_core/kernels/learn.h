/* What calls learn from earlier ones: whether workers make them faster, and which stores are faster into hot outputs.
 * The state is static: exactly one module includes this. Without a lock: callers in several threads may change a record
 * at once, and a change that is lost costs speed only. */
#ifndef TILECORE_LEARN_H
#define TILECORE_LEARN_H

#include "threads.h"

/* Classes of sizes: two for each power of two, from 1 MiB on. */
#define TILECORE_SIZES 20
TILECORE_UNUSED static int tilecore_size_class(ptrdiff_t bytes)
{
    int size = 0;
    for (bytes >>= 19; bytes > 3 && size < TILECORE_SIZES - 2; bytes >>= 1) size += 2;
    return size + (bytes > 2);
}

/* ---------------------------------------------------------------- workers or not */

/* Whether workers make calls faster: learnt from earlier calls of the same kind and size. For calls that leave the
 * number of threads to tilecore.
 *
 *     tilecore_record *record = tilecore_find_record(kind, bytes);
 *     if (tilecore_begin_job(record)) { ... tilecore_note_serial(record, pace); }
 *     else { ... tilecore_note_parallel(record, pace, beside, threads); }
 *
 * A second thread doubles the speed on one machine, and gains nothing on the next. Beside busy processes calls take
 * several times as long with it. Each call with workers knows two paces, in nanoseconds a MiB: its own (pace), and that
 * of its caller's part (beside), in processor time, which other processes do not lengthen. `beside * factor` estimates
 * the pace of a serial call: `factor`, measured by occasional serial calls, corrects for the bandwidth that the threads
 * share. `loss` is the real pace over that estimate; above 1, workers made the call slower.
 *
 *     factor = serial pace / beside          loss = pace / (beside * factor)
 *
 * Single calls vary: a change of the calling thread may cost 1.3 times the time. So losses are smoothed, and the first
 * call with workers after a serial one is not judged: it wakes them. After a loss the next TILECORE_MIN_BACKOFF calls
 * are serial, after each further loss twice as many and 4 more. So a program that calls rarely stays with one thread.
 *
 *     calls      w w w s w w w w s w w w w w w w w s w w w ... w w L s s s s w w L s s s s s s s s s s s s w ...
 *                      pauses of 2, 4, 8, .., 64: the factor         loss: 4       again: 12
 */
#define TILECORE_MIN_BACKOFF 4
#define TILECORE_MAX_BACKOFF 128
#define TILECORE_MAX_SMALL_BACKOFF 32 /* after losses of less than a half */
#define TILECORE_MAX_PAUSE 64 /* calls with workers between two serial ones */
#define TILECORE_ONE 1024 /* ratios are counted in parts of this */

/* Counters, at first 0. */
typedef struct tilecore_record {
    ptrdiff_t beside; /* the pace of the caller's part in the last call with workers */
    ptrdiff_t factor; /* the pace of serial calls over `beside`, smoothed */
    ptrdiff_t loss;   /* the pace with workers over that of serial calls, smoothed */
    ptrdiff_t next;   /* n > 0: the next n calls are serial; n < 0: -n calls with workers, then a serial one */
    ptrdiff_t parallel;       /* calls with workers since the last serial one */
    ptrdiff_t pause;          /* the last one: calls with workers between two serial ones */
    ptrdiff_t backoff;        /* half of how many calls the next loss makes serial; each gain makes it smaller */
} tilecore_record;

static tilecore_record tilecore_records[2 * TILECORE_TASK_KINDS][TILECORE_SIZES];

/* The record of a kind and a size. From TILECORE_TASK_KINDS on, the kinds are those of jobs that write new memory. */
TILECORE_UNUSED static tilecore_record *tilecore_find_record(int kind, ptrdiff_t bytes)
{
    return &tilecore_records[kind][tilecore_size_class(bytes)];
}

/* Counts a job; returns whether it is to be serial. */
TILECORE_UNUSED static int tilecore_begin_job(tilecore_record *record)
{
    const ptrdiff_t next = tilecore_atomic_load(&record->next);
    ptrdiff_t pause = tilecore_atomic_load(&record->pause), after = next > 0 ? next - 1 : next + 1;
    if (next == -1) {
        after = 1;
    } else if (next == 0 || next == 1) {
        if (pause < TILECORE_MAX_PAUSE) pause = pause ? 2 * pause : 2;
        tilecore_atomic_store(&record->pause, pause);
        after = -pause;
    }
    tilecore_atomic_store(&record->next, after);
    if (next > 0) tilecore_atomic_store(&record->parallel, 0);
    return next > 0;
}

static ptrdiff_t tilecore_smooth(ptrdiff_t *mean, ptrdiff_t now)
{
    const ptrdiff_t before = tilecore_atomic_load(mean);
    if (before) now = before + (now - before) / 4;
    tilecore_atomic_store(mean, now);
    return now;
}

/* After a serial call: its pace, in real time. When a thread reads its processor time, Linux may give its processor to
 * another thread. */
TILECORE_UNUSED static void tilecore_note_serial(tilecore_record *record, double pace)
{
    const ptrdiff_t beside = tilecore_atomic_load(&record->beside);
    const double ratio = pace / ((double)beside + 1); /* above 1, something else made the call slow */
    if (beside) tilecore_smooth(&record->factor, ratio < 1 ? (ptrdiff_t)(ratio * TILECORE_ONE) : TILECORE_ONE);
}

/* After a call with workers: its pace, and that of its caller's part; 0: workers wrote all before it had begun. */
TILECORE_UNUSED static void tilecore_note_parallel(tilecore_record *record, double pace, double beside, int threads)
{
    ptrdiff_t backoff = tilecore_atomic_load(&record->backoff), factor = tilecore_atomic_load(&record->factor), loss;
    if (factor == 0) factor = TILECORE_ONE;
    if (factor < TILECORE_ONE / threads) factor = TILECORE_ONE / threads;
    if (beside > 0) tilecore_atomic_store(&record->beside, (ptrdiff_t)beside + 1);
    else beside = (double)tilecore_atomic_load(&record->beside) + 1;
    loss = (ptrdiff_t)(pace * TILECORE_ONE / beside / (double)factor * TILECORE_ONE);
    /* The first one after a serial call wakes workers that sleep deeply, which takes as long as writing 1 MB. */
    if (tilecore_atomic_add(&record->parallel, 1) == 0 && loss < TILECORE_ONE / 2 * 5) return;
    loss = tilecore_smooth(&record->loss, loss);
    if (loss > TILECORE_ONE / 16 * 15) { /* a gain of less than a sixteenth is not worth a second processor's time */
        const ptrdiff_t longer = 2 * backoff + TILECORE_MIN_BACKOFF;
        const ptrdiff_t most = loss < TILECORE_ONE / 2 * 3 ? TILECORE_MAX_SMALL_BACKOFF : TILECORE_MAX_BACKOFF;
        if (backoff < most) backoff = longer < most ? longer : most;
        tilecore_atomic_store(&record->next, backoff);
        tilecore_atomic_store(&record->loss, TILECORE_ONE / 4 * 3); /* the next trial is two or three calls */
    } else {
        backoff -= (backoff + 7) / 8;
    }
    tilecore_atomic_store(&record->backoff, backoff);
}

/* ---------------------------------------------------------------- the stores of hot outputs */

/* The stores of hot outputs: ordinary ones, or those past the caches. For loops that only tile and drop each result,
 * which is what %timeit and pytest-benchmark run.
 *
 * An output is hot if the last call wrote it at most 0.2 ms ago: a core moves 4 to 8 MB in this time, so the caches
 * still hold most of it. In such a loop a result gets the memory of the one before. Which stores are faster depends on
 * the process' share of the caches, and no instruction tells that. So calls try both kinds of stores:
 *
 *     calls     o o o o O O O O | s s s s S S S S | the faster kind .. 256 | o ..     O, S: timed, the shortest counts
 *
 * After stores past the caches it takes six ordinary calls until one is as fast as before. If sizes vary, such stores
 * slow the calls that follow. So for a hot output of another size or place, stores bypass the caches only from twice
 * the bound on. From four times the bound on no call tries: that would lengthen the loop by a twentieth. Loops with
 * `y = tile(...)` keep two results, so none is hot: there trials would cost more than they gain. */
#define TILECORE_HOT_NANOSECONDS 200000
#define TILECORE_HOT_PERIOD 256
#define TILECORE_HOT_TRIAL 8 /* calls of each kind */

/* Counters: where and when a result was last written. */
static struct {
    ptrdiff_t at, bytes, time;
} tilecore_last_written;

/* Counters, by size: the least nanoseconds a MiB of ordinary stores, and of those past the caches; hot calls. */
static ptrdiff_t tilecore_hot[TILECORE_SIZES][3];

/* Whether stores to `dst` bypass the caches: from `bound` bytes on, unless it is hot. Sets *begin to time the call. */
TILECORE_UNUSED static int tilecore_hot_streams(const char *dst, ptrdiff_t bytes, ptrdiff_t bound, long long *begin)
{
    const long long now = tilecore_nanoseconds(0);
    const size_t passed = (size_t)now - (size_t)tilecore_atomic_load(&tilecore_last_written.time);
    const size_t offset = (size_t)dst - (size_t)tilecore_atomic_load(&tilecore_last_written.at);
    const ptrdiff_t last = tilecore_atomic_load(&tilecore_last_written.bytes);
    ptrdiff_t *const pace = tilecore_hot[tilecore_size_class(bytes)], n;
    int streams = bytes >= bound;
    if (bytes >= 4 * bound) return 1;
    if (passed >= TILECORE_HOT_NANOSECONDS || offset >= (size_t)last) return streams;
    if (offset || bytes != last) return bytes >= 2 * bound;
    n = tilecore_atomic_add(&pace[2], 1) % TILECORE_HOT_PERIOD;
    if (n >= 2 * TILECORE_HOT_TRIAL) return tilecore_atomic_load(&pace[1]) < tilecore_atomic_load(&pace[0]);
    if (n >= TILECORE_HOT_TRIAL) streams = !streams;
    if (n % TILECORE_HOT_TRIAL == 0) tilecore_atomic_store(&pace[streams], PTRDIFF_MAX);
    if (n % TILECORE_HOT_TRIAL >= TILECORE_HOT_TRIAL / 2) *begin = now;
    return streams;
}

/* After a call that wrote `bytes`, 1 KiB or more; `begin`: 0, or what tilecore_hot_streams set. */
TILECORE_UNUSED static void tilecore_note_written(const char *dst, ptrdiff_t bytes, int streams, long long begin)
{
    const long long now = tilecore_nanoseconds(0);
    ptrdiff_t *const least = &tilecore_hot[tilecore_size_class(bytes)][streams];
    const ptrdiff_t pace = begin ? (ptrdiff_t)((now - begin) * 1024 / (bytes >> 10)) : PTRDIFF_MAX;
    if (pace < tilecore_atomic_load(least)) tilecore_atomic_store(least, pace);
    tilecore_atomic_store(&tilecore_last_written.at, (ptrdiff_t)dst);
    tilecore_atomic_store(&tilecore_last_written.bytes, bytes);
    tilecore_atomic_store(&tilecore_last_written.time, (ptrdiff_t)now);
}

#endif /* TILECORE_LEARN_H */
