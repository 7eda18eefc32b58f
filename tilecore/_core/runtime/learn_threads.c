/* A second thread doubles the speed on one machine, and gains nothing on the next. Beside busy processes calls take
 * several times as long with it. Each call with workers knows two paces, in nanoseconds a MiB: its own (pace), and
 * that of its caller's part (callers_pace), in processor time, which other processes do not lengthen. `callers_pace *
 * factor` estimates the pace of a serial call: occasional serial calls measure `factor`, which corrects for the
 * bandwidth that threads share. `slowdown` is the real pace over that estimate: above 1, workers made the call slower.
 *
 *     factor = serial pace / callers_pace          slowdown = pace / (callers_pace * factor)
 *
 * Single calls vary: after a change of the calling thread one may take 1.3 times as long. So slowdowns are smoothed.
 * The first call with workers after a serial one also wakes them. It counts only if it lost more than waking can cost.
 * A slowdown above TILECORE_MAX_SLOWDOWN is a loss: the next 4 calls are serial (TILECORE_MIN_BACKOFF), after each
 * further loss twice as many and 4 more.
 *
 *     calls      w w w s w w w w s w w w w w w w w s w w w ... w w L s s s s w w L s s s s s s s s s s s s w ...
 *                      pauses of 3, 4, 8, .., 64: the factor         loss: 4       again: 12 */
#include "learn_threads.h"
#include "atomic.h"

#define TILECORE_MIN_BACKOFF 4
#define TILECORE_MAX_BACKOFF 128
#define TILECORE_MAX_SMALL_BACKOFF 32 /* after losses below TILECORE_SMALL_SLOWDOWN */
#define TILECORE_MAX_PAUSE 64 /* calls with workers between two serial ones */
#define TILECORE_ONE 1024 /* ratios, of a pace to another, are counted in parts of this */
#define TILECORE_WAKING_SLOWDOWN (TILECORE_ONE * 5 / 2) /* to wake workers that sleep deeply costs less than this */
#define TILECORE_MAX_SLOWDOWN (TILECORE_ONE * 15 / 16) /* a smaller gain is not worth a second processor's time */
#define TILECORE_SMALL_SLOWDOWN (TILECORE_ONE * 3 / 2)
#define TILECORE_TRIAL_SLOWDOWN (TILECORE_ONE * 3 / 4) /* smoothing starts anew here: trials take two or three calls */

/* Counters, at first 0. */
struct tilecore_record {
    ptrdiff_t callers_pace; /* the pace of the caller's part in the last call with workers */
    ptrdiff_t factor;       /* the pace of serial calls over `callers_pace`, smoothed */
    ptrdiff_t slowdown;     /* the pace with workers over that of serial calls, smoothed */
    ptrdiff_t next;         /* n > 0: the next n calls are serial; n < 0: -n calls with workers, then a serial one */
    ptrdiff_t parallel;     /* calls with workers since the last serial one */
    ptrdiff_t pause;        /* the last one: calls with workers between two serial ones */
    ptrdiff_t backoff;      /* how many calls the last loss made serial; each gain makes it smaller */
};

static tilecore_record tilecore_records[TILECORE_TASK_KINDS][2][2][TILECORE_SIZE_CLASSES];

tilecore_record *tilecore_find_record(int kind, int prefaulted, int past_caches, ptrdiff_t bytes)
{
    return &tilecore_records[kind][prefaulted][past_caches][tilecore_size_class(bytes)];
}

int tilecore_next_is_serial(tilecore_record *record)
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

void tilecore_note_serial(tilecore_record *record, double pace)
{
    const ptrdiff_t callers_pace = tilecore_atomic_load(&record->callers_pace);
    const double ratio = pace / ((double)callers_pace + 1); /* above 1, something else made the call slow */
    if (callers_pace) tilecore_smooth(&record->factor, ratio < 1 ? (ptrdiff_t)(ratio * TILECORE_ONE) : TILECORE_ONE);
}

void tilecore_note_parallel(tilecore_record *record, double pace, double callers_pace, int threads)
{
    ptrdiff_t backoff = tilecore_atomic_load(&record->backoff), slowdown;
    ptrdiff_t factor = tilecore_atomic_load(&record->factor);
    if (factor == 0) factor = TILECORE_ONE;
    if (factor < TILECORE_ONE / threads) factor = TILECORE_ONE / threads;
    if (callers_pace > 0) tilecore_atomic_store(&record->callers_pace, (ptrdiff_t)callers_pace + 1);
    else callers_pace = (double)tilecore_atomic_load(&record->callers_pace) + 1;
    slowdown = (ptrdiff_t)(pace * TILECORE_ONE / callers_pace / (double)factor * TILECORE_ONE);
    /* The first call after a serial one wakes workers, which takes as long as writing 1 MB. */
    if (tilecore_atomic_add(&record->parallel, 1) == 0 && slowdown < TILECORE_WAKING_SLOWDOWN) return;
    slowdown = tilecore_smooth(&record->slowdown, slowdown);
    if (slowdown > TILECORE_MAX_SLOWDOWN) {
        const ptrdiff_t longer = 2 * backoff + TILECORE_MIN_BACKOFF;
        const ptrdiff_t most = slowdown < TILECORE_SMALL_SLOWDOWN ? TILECORE_MAX_SMALL_BACKOFF : TILECORE_MAX_BACKOFF;
        if (backoff < most) backoff = longer < most ? longer : most;
        tilecore_atomic_store(&record->next, backoff);
        tilecore_atomic_store(&record->slowdown, TILECORE_TRIAL_SLOWDOWN);
    } else {
        backoff -= (backoff + 7) / 8;
    }
    tilecore_atomic_store(&record->backoff, backoff);
}
