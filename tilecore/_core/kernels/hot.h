/* Whether the caches still hold an output's memory: if it was written last, and hardly any time has passed since.
 *
 * In a loop that only tiles, a result gets the memory of the one before, whose lines are in the caches: ordinary stores
 * are faster, up to the caches' size. A program that works between the calls has thrown them out: stores that bypass
 * the caches are faster. 0.2 ms is the time in which a core moves 4 to 8 MB.
 *
 * Static variables hold the state: exactly one extension module includes this. No address is followed, and no lock is
 * needed: a race costs speed only.
 */
#ifndef TILECORE_HOT_H
#define TILECORE_HOT_H

#include "atomics.h"
#include "threads.h"

#define TILECORE_HOT_NANOSECONDS 200000

/* Counters: where and when a result was last written. */
static struct {
    ptrdiff_t at, bytes, time;
} tilecore_last_written;

TILECORE_UNUSED static int tilecore_is_hot(const char *dst)
{
    const size_t passed = (size_t)tilecore_nanoseconds(0) - (size_t)tilecore_atomic_load(&tilecore_last_written.time);
    const size_t offset = (size_t)dst - (size_t)tilecore_atomic_load(&tilecore_last_written.at);
    return passed < TILECORE_HOT_NANOSECONDS && offset < (size_t)tilecore_atomic_load(&tilecore_last_written.bytes);
}

TILECORE_UNUSED static void tilecore_note_written(const char *dst, ptrdiff_t bytes)
{
    tilecore_atomic_store(&tilecore_last_written.at, (ptrdiff_t)dst);
    tilecore_atomic_store(&tilecore_last_written.bytes, bytes);
    tilecore_atomic_store(&tilecore_last_written.time, (ptrdiff_t)tilecore_nanoseconds(0));
}

#endif /* TILECORE_HOT_H */
