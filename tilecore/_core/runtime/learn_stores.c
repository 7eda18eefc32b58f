/* An output is hot if the last call wrote it at most 0.2 ms ago: a core moves 4 to 8 MB in this time, so the caches
 * still hold most of it. In such a loop a result gets the pages of the one before. Which stores are faster depends on
 * the process' share of the caches, and no instruction reports that. So calls try both kinds of stores,
 * first the one that the bound says (here, below it, ordinary ones):
 *
 *     calls     o o o o O O O O | s s s s S S S S | the faster kind .. 256 | o ..     O, S: timed, the shortest counts
 *
 * After stores past the caches it takes six ordinary calls until one is as fast as before. If sizes vary, such stores
 * slow the calls that follow. So into a hot output of another size or place, stores bypass the caches only from twice
 * the bound on. From four times the bound on no call tries: that would lengthen the loop by a twentieth. Loops that
 * keep the last result (`y = tile(...)`) have no hot output: there trials would cost more than they gain. */
#include "learn_stores.h"
#include "system.h"

#define TILECORE_HOT_NANOSECONDS 200000
#define TILECORE_HOT_PERIOD 256
#define TILECORE_HOT_TRIAL 8 /* calls of each kind */

/* Where and when a result was last written: counters. */
static struct {
    ptrdiff_t at, bytes, time;
} tilecore_last_written;

/* Counters, by size: the least nanoseconds a MiB by ordinary stores, and past the caches; calls into hot outputs. */
static ptrdiff_t tilecore_hot[TILECORE_SIZE_CLASSES][3];

int tilecore_stores_bypass(const char *dst, ptrdiff_t bytes, ptrdiff_t bound, long long *begin)
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

void tilecore_note_written(const char *dst, ptrdiff_t bytes, int streams, long long begin)
{
    const long long now = tilecore_nanoseconds(0);
    ptrdiff_t *const least = &tilecore_hot[tilecore_size_class(bytes)][streams];
    const ptrdiff_t pace = begin ? (ptrdiff_t)((now - begin) * 1024 / (bytes >> 10)) : PTRDIFF_MAX;
    if (pace < tilecore_atomic_load(least)) tilecore_atomic_store(least, pace);
    tilecore_atomic_store(&tilecore_last_written.at, (ptrdiff_t)dst);
    tilecore_atomic_store(&tilecore_last_written.bytes, bytes);
    tilecore_atomic_store(&tilecore_last_written.time, (ptrdiff_t)now);
}
