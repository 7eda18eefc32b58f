/* Memory of results that is used again: stretches of addresses with a bit for each granule. C11 / C++17, and on Linux
 * _GNU_SOURCE, as in locks.h. It holds the state of the process, so one module includes it. On other systems than Linux
 * it has no memory, and the caller allocates as usual.
 *
 *     granule   0   1   2   3   4   5   6   7   8   9  10  11 ...
 *     used      1   1   1   0   0   1   1   1   1   0   0   0         by a result
 *     begun     1   0   0   0   0   1   0   1   0   0   0   0         three results, of 3, 2 and 2 granules
 *     paged     1   1   1   1   1   1   1   1   1   1   0   0         3, 4 and 9 are idle: free, with pages
 *
 * A result takes the first free run that is long enough, from the lowest address on: one of 2 granules takes 3 and 4.
 * So what was given back is written again, whatever its size, while the caches hold it. Free neighbours are one run,
 * one mapping serves all results, and no result shares a page with another or with notes. Best fit, large results from
 * the other end, and granules of 16 or 64 KiB were no better (within a quarter both ways, for random sizes of six
 * kinds; Zen 3), nor was a first byte off the boundary of pages. A granule is 32 KiB, or a page where that is larger: a
 * word of bits is a huge page.
 *
 * Addresses are reserved without access, which takes no memory in any mode of overcommit, and opened from the lowest
 * on. A new arena is as large as all before it, so there are few. Under an address limit there is none: arenas are
 * retired, which means that what is free in them is unmapped, then and whenever a result dies.
 *
 * Taking and giving back need no system call unless pages come or go. Idle pages stay, up to TILECORE_SPARE_BYTES more
 * than the most that was in use at once in the last minute, and up to the limit; of more, the highest go. All go if
 * nothing was given back for a minute.
 *
 * A forked child shares its parent's pages until one of the two writes, and then the system copies them. So the child
 * drops idle pages, and clears the bits `paged` of others: it drops those when their results die.
 *
 * All is under one lock, system calls too, for they are rare. fork() waits for it, unless a signal handler forks in the
 * thread that holds it: then parent and child both go on where they were. A result may die in any thread and at exit:
 * nothing here needs Python. What its owner asked of the system for its pages (mprotect, madvise) stays, as with
 * malloc. */
#ifndef TILECORE_ARENA_H
#define TILECORE_ARENA_H

#include "locks.h"
#include "pages.h"

static ptrdiff_t tilecore_arena_most; /* idle bytes that are kept: other threads read the old limit or the new one */
TILECORE_UNUSED static ptrdiff_t tilecore_arena_limit(void) { return tilecore_atomic_load(&tilecore_arena_most); }

#if defined(__linux__)
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- bits */

#define TILECORE_WORD 64

/* The first bit in [from, to) that is `value`, or `to`. */
TILECORE_UNUSED static ptrdiff_t tilecore_bits_find(const uint64_t *bits, ptrdiff_t from, ptrdiff_t to, int value)
{
    while (from < to) {
        uint64_t word = value ? bits[from / TILECORE_WORD] : ~bits[from / TILECORE_WORD];
        if (word >>= from % TILECORE_WORD) {
            from += __builtin_ctzll(word);
            return from < to ? from : to;
        }
        from += TILECORE_WORD - from % TILECORE_WORD;
    }
    return to;
}

/* The first run of `n` bits in [from, to) that are 0; -1 if there is none. */
TILECORE_UNUSED static ptrdiff_t tilecore_bits_run(const uint64_t *bits, ptrdiff_t from, ptrdiff_t to, ptrdiff_t n)
{
    ptrdiff_t end;
    for (; (from = tilecore_bits_find(bits, from, to, 0)) <= to - n; from = end)
        if ((end = tilecore_bits_find(bits, from, from + n, 1)) == from + n) return from;
    return -1;
}

/* Sets the bits in [from, to); how many of them were 1. */
TILECORE_UNUSED static ptrdiff_t tilecore_bits_set(uint64_t *bits, ptrdiff_t from, ptrdiff_t to, int value)
{
    ptrdiff_t were = 0, end;
    for (; from < to; from = end) {
        uint64_t *word = bits + from / TILECORE_WORD, mask = ~(uint64_t)0 << from % TILECORE_WORD;
        end = from - from % TILECORE_WORD + TILECORE_WORD;
        if (end > to) mask &= ~(uint64_t)0 >> (end - to), end = to;
        were += __builtin_popcountll(*word & mask);
        *word = value ? *word | mask : *word & ~mask;
    }
    return were;
}

/* ---------------------------------------------------------------- arenas, under the lock; counted in granules */

enum { TILECORE_ARENAS = 64,
       TILECORE_PERIODS = 8 }; /* to a minute */

typedef struct tilecore_arena {
    char *base;
    ptrdiff_t granules, open, alive, low; /* reserved; open, from the first on; in use; no free one is before `low` */
    uint64_t *used, *begun, *paged;
    int retired;
} tilecore_arena;

static tilecore_lock tilecore_arena_lock = TILECORE_LOCK_INIT;
static ptrdiff_t tilecore_arena_owner; /* the thread that is in one of the functions for recycle.pyx, or 0 */
static struct {
    tilecore_arena all[TILECORE_ARENAS];
    int n;
    ptrdiff_t granule;                                   /* its bytes */
    ptrdiff_t alive, idle, alive_most[TILECORE_PERIODS]; /* in each of the last periods */
    long long period, given_back;                        /* the present one; when it was last done */
} tilecore_arenas;

static ptrdiff_t tilecore_arena_bytes(ptrdiff_t n) { return n * tilecore_arenas.granule; }
static ptrdiff_t tilecore_arena_count(ptrdiff_t bytes) { return bytes ? (bytes - 1) / tilecore_arenas.granule + 1 : 1; }
static char *tilecore_arena_at(const tilecore_arena *a, ptrdiff_t from) { return a->base + tilecore_arena_bytes(from); }

/* Another arena, of `n` granules at least; NULL if there is none. */
static tilecore_arena *tilecore_arena_new(ptrdiff_t n)
{
    const ptrdiff_t word = tilecore_arena_bytes(TILECORE_WORD);
    tilecore_arena *a = tilecore_arenas.all + tilecore_arenas.n;
    ptrdiff_t words = 0, k;
    for (k = 0; k < tilecore_arenas.n; k++)
        if (!tilecore_arenas.all[k].retired) words += tilecore_arenas.all[k].granules / TILECORE_WORD;
    if (words < TILECORE_ARENA_BYTES / word) words = TILECORE_ARENA_BYTES / word;
    if (words < (n + TILECORE_WORD - 1) / TILECORE_WORD) words = (n + TILECORE_WORD - 1) / TILECORE_WORD;
    if (tilecore_arenas.n == TILECORE_ARENAS || words > PTRDIFF_MAX / 4 / word) return NULL;
    memset(a, 0, sizeof *a);
    a->used = (uint64_t *)calloc((size_t)words, 3 * sizeof *a->used);
    a->base = a->used ? tilecore_addresses_new(words * word) : NULL;
    if (!a->base) {
        free(a->used);
        return NULL;
    }
    a->begun = a->used + words, a->paged = a->begun + words;
    a->granules = words * TILECORE_WORD;
    tilecore_arenas.n++;
    return a;
}

static void tilecore_arena_forget(tilecore_arena *a)
{
    free(a->used);
    *a = tilecore_arenas.all[--tilecore_arenas.n];
}

/* The arena of a result, its first granule and its end; NULL if it is not ours. A retired arena has gaps, in which
 * others' memory may lie. */
static tilecore_arena *tilecore_arena_find(const char *data, ptrdiff_t *from, ptrdiff_t *end)
{
    tilecore_arena *a;
    for (a = tilecore_arenas.all; a < tilecore_arenas.all + tilecore_arenas.n; a++) {
        const uintptr_t at = (uintptr_t)data - (uintptr_t)a->base, granule = (uintptr_t)tilecore_arenas.granule;
        if (at >= (uintptr_t)tilecore_arena_bytes(a->open)) continue;
        *from = (ptrdiff_t)(at / granule);
        *end = tilecore_bits_find(a->used, *from, a->open, 0);
        if (at % granule || *end == *from) continue;
        *end = tilecore_bits_find(a->begun, *from + 1, *end, 1);
        return a;
    }
    return NULL;
}

/* Takes free granules; 0 if the system refuses. `fresh`: how many of them had no pages. */
static int tilecore_arena_occupy(tilecore_arena *a, ptrdiff_t from, ptrdiff_t to, ptrdiff_t *fresh)
{
    ptrdiff_t open = (to + TILECORE_OPENED - 1) / TILECORE_OPENED * TILECORE_OPENED;
    if (to > a->open) {
        if (open > a->granules) open = a->granules;
        if (tilecore_addresses_open(tilecore_arena_at(a, a->open), tilecore_arena_bytes(open - a->open))) return 0;
        a->open = open;
    }
    tilecore_bits_set(a->used, from, to, 1);
    *fresh = to - from - tilecore_bits_set(a->paged, from, to, 1);
    tilecore_arenas.idle -= to - from - *fresh;
    a->alive += to - from, tilecore_arenas.alive += to - from;
    tilecore_unpoison(tilecore_arena_at(a, from), tilecore_arena_bytes(to - from));
    return 1;
}

static void tilecore_arena_vacate(tilecore_arena *a, ptrdiff_t from, ptrdiff_t to)
{
    char *at = tilecore_arena_at(a, from);
    const ptrdiff_t bytes = tilecore_arena_bytes(to - from);
    const int inherited = tilecore_bits_find(a->paged, from, to, 0) < to;
    tilecore_bits_set(a->used, from, to, 0);
    tilecore_bits_set(a->begun, from, from + 1, 0);
    a->alive -= to - from, tilecore_arenas.alive -= to - from;
    if (from < a->low) a->low = from;
    if (a->retired) {
        tilecore_pages_free(at, bytes);
        if (!a->alive) tilecore_arena_forget(a);
        return;
    }
    tilecore_poison(at, bytes);
    if (!inherited) tilecore_arenas.idle += to - from;
    else tilecore_bits_set(a->paged, from, to, 0), tilecore_addresses_drop(at, bytes);
}

/* Gives back the pages of each free run with granules in [from, to), from there to its end. The last run is closed
 * again: open addresses may count as memory. */
static void tilecore_arena_drop(tilecore_arena *a, ptrdiff_t from, ptrdiff_t to)
{
    ptrdiff_t end, next, close;
    for (; (from = tilecore_bits_find(a->used, from, to, 0)) < to; from = next) {
        end = next = tilecore_bits_find(a->used, from, a->open, 1);
        if (end < a->open && to < end && tilecore_bits_find(a->paged, to, end, 1) == end) end = to; /* gone already */
        close = (from + TILECORE_WORD - 1) / TILECORE_WORD * TILECORE_WORD;
        tilecore_arenas.idle -= tilecore_bits_set(a->paged, from, end, 0);
        if (end == a->open && close < end &&
            !tilecore_addresses_close(tilecore_arena_at(a, close), tilecore_arena_bytes(end - close)))
            a->open = end = close;
        if (from < end) tilecore_addresses_drop(tilecore_arena_at(a, from), tilecore_arena_bytes(end - from));
    }
}

/* Gives idle pages back until at most `most` bytes are left: the highest first, and those of partly used huge pages
 * last. 0 stands for every page that is not a result's: a huge page may hold more than was taken. */
static void tilecore_arena_shrink(ptrdiff_t most)
{
    int k, parts;
    ptrdiff_t w;
    for (parts = !most; parts < 2; parts++)
        for (k = tilecore_arenas.n; k-- > 0;) {
            tilecore_arena *a = tilecore_arenas.all + k;
            if (a->retired) continue;
            if (!most) tilecore_arena_drop(a, 0, a->open);
            for (w = a->open / TILECORE_WORD; w-- > 0 && tilecore_arena_bytes(tilecore_arenas.idle) > most;)
                if ((a->paged[w] & ~a->used[w]) && (parts || !a->used[w]))
                    tilecore_arena_drop(a, w * TILECORE_WORD, (w + 1) * TILECORE_WORD);
        }
}

static void tilecore_arena_retire(void)
{
    ptrdiff_t from, end;
    int k;
    for (k = tilecore_arenas.n; k-- > 0;) {
        tilecore_arena *a = tilecore_arenas.all + k;
        if (a->retired) continue;
        for (end = 0; (from = tilecore_bits_find(a->used, end, a->granules, 0)) < a->granules;) {
            end = tilecore_bits_find(a->used, from, a->granules, 1);
            /* The bits from `open` on are 0, in memory that was never written. */
            tilecore_arenas.idle -= tilecore_bits_set(a->paged, from, end < a->open ? end : a->open, 0);
            tilecore_unpoison(tilecore_arena_at(a, from), tilecore_arena_bytes(end - from));
            tilecore_pages_free(tilecore_arena_at(a, from), tilecore_arena_bytes(end - from));
        }
        a->retired = 1;
        if (!a->alive) tilecore_arena_forget(a);
    }
}

/* What a result needs no more becomes idle. From one call to the next, ever more is in use. */
static void tilecore_arena_part(tilecore_arena *a, ptrdiff_t from, ptrdiff_t to)
{
    const long long now = tilecore_milliseconds(), period = now / (TILECORE_IDLE_MILLISECONDS / TILECORE_PERIODS);
    ptrdiff_t most = 0, *then;
    int k;
    for (k = 0; k < TILECORE_PERIODS; k++) {
        then = tilecore_arenas.alive_most + (period - k + TILECORE_PERIODS) % TILECORE_PERIODS;
        if (period - k > tilecore_arenas.period || (!k && *then < tilecore_arenas.alive)) *then = tilecore_arenas.alive;
        if (most < *then) most = *then;
    }
    most = tilecore_arena_bytes(most) + TILECORE_SPARE_BYTES;
    if (most > tilecore_arena_limit()) most = tilecore_arena_limit();
    /* Without the look at what is idle, the first call of all would break up the first huge page. */
    if (tilecore_arenas.idle && now - tilecore_arenas.given_back >= TILECORE_IDLE_MILLISECONDS)
        tilecore_arena_shrink(0);
    tilecore_arenas.period = period, tilecore_arenas.given_back = now;
    tilecore_arena_vacate(a, from, to);
    if (tilecore_arena_bytes(to - from) >= TILECORE_ASKED_BYTES && tilecore_addresses_limited())
        tilecore_arena_retire();
    else if (tilecore_arena_bytes(tilecore_arenas.idle) > most) tilecore_arena_shrink(most);
}

/* ---------------------------------------------------------------- what recycle.pyx calls */

static void tilecore_arena_enter(void)
{
    tilecore_acquire(&tilecore_arena_lock);
    tilecore_atomic_store(&tilecore_arena_owner, (ptrdiff_t)pthread_self());
}

static void tilecore_arena_leave(void)
{
    tilecore_atomic_store(&tilecore_arena_owner, 0);
    tilecore_release(&tilecore_arena_lock);
}

/* Memory for `bytes`, on a boundary of granules; NULL if there is none, or if addresses are limited: the system is
 * asked unless all pages are there and few. `warm`: whether most pages are there. */
TILECORE_UNUSED static char *tilecore_arena_take(ptrdiff_t bytes, int *warm)
{
    const ptrdiff_t page = tilecore_page_bytes();
    tilecore_arena *a = NULL;
    ptrdiff_t n, from = -1, fresh = 0;
    char *data = NULL;
    int k;
    tilecore_arena_enter();
    tilecore_arenas.granule = page > TILECORE_GRANULE_BYTES ? page : TILECORE_GRANULE_BYTES;
    n = tilecore_arena_count(bytes);
    for (k = 0; k < tilecore_arenas.n && from < 0; k++) {
        a = tilecore_arenas.all + k;
        if (a->retired) continue;
        a->low = tilecore_bits_find(a->used, a->low, a->granules, 0);
        from = tilecore_bits_run(a->used, a->low, a->granules, n);
    }
    if ((from < 0 || bytes >= TILECORE_ASKED_BYTES || tilecore_bits_find(a->paged, from, from + n, 0) < from + n) &&
        tilecore_addresses_limited())
        tilecore_arena_retire();
    else if (from >= 0 || (from = 0, a = tilecore_arena_new(n)))
        if (tilecore_arena_occupy(a, from, from + n, &fresh)) {
            tilecore_bits_set(a->begun, from, from + 1, 1);
            data = tilecore_arena_at(a, from);
        }
    tilecore_arena_leave();
    /* Ordinary pages take 0.6 to 0.75 of the time that it takes to miss one after the other (Zen 4). */
    if (fresh && bytes < TILECORE_HUGE_BYTES) tilecore_addresses_populate(data, bytes);
    *warm = 2 * fresh <= n;
    return data;
}

/* The memory has no owner any more; 0 if it is not from here. */
TILECORE_UNUSED static int tilecore_arena_give_back(char *data)
{
    ptrdiff_t from, end;
    tilecore_arena *a;
    tilecore_arena_enter();
    if ((a = tilecore_arena_find(data, &from, &end))) tilecore_arena_part(a, from, end);
    tilecore_arena_leave();
    return a != NULL;
}

/* Makes the memory hold `bytes` where it is, if it can; how many it holds then, 0 if it is not from here. */
TILECORE_UNUSED static ptrdiff_t tilecore_arena_resize(char *data, ptrdiff_t bytes)
{
    ptrdiff_t from, to, end, fresh, holds = 0;
    tilecore_arena *a;
    tilecore_arena_enter();
    if ((a = tilecore_arena_find(data, &from, &end))) {
        to = tilecore_arena_count(bytes) > a->granules - from ? PTRDIFF_MAX : from + tilecore_arena_count(bytes);
        if (end < to && to <= a->granules && !a->retired && tilecore_bits_find(a->used, end, to, 1) == to &&
            tilecore_arena_occupy(a, end, to, &fresh))
            end = to;
        holds = tilecore_arena_bytes((to < end ? to : end) - from);
        if (to < end) tilecore_arena_part(a, to, end);
    }
    tilecore_arena_leave();
    return holds;
}

/* Gives back what is idle beyond `most` bytes. */
TILECORE_UNUSED static void tilecore_arena_trim(ptrdiff_t most)
{
    tilecore_arena_enter();
    if (!most && tilecore_addresses_limited()) tilecore_arena_retire();
    else tilecore_arena_shrink(most);
    tilecore_arena_leave();
}

TILECORE_UNUSED static ptrdiff_t tilecore_arena_idle(void)
{
    ptrdiff_t bytes;
    tilecore_arena_enter();
    bytes = tilecore_arena_bytes(tilecore_arenas.idle);
    tilecore_arena_leave();
    return bytes;
}

/* In a signal handler of the thread that is inside, fork() finds the lock held and leaves it so: it is no other's. */
static int tilecore_arena_inside(void)
{
    return tilecore_atomic_load(&tilecore_arena_owner) == (ptrdiff_t)pthread_self();
}

static void tilecore_arena_before_fork(void)
{
    if (!tilecore_arena_inside()) tilecore_acquire(&tilecore_arena_lock);
}

static void tilecore_arena_in_parent(void)
{
    if (!tilecore_arena_inside()) tilecore_release(&tilecore_arena_lock);
}

static void tilecore_arena_in_child(void)
{
    tilecore_arena *a;
    if (tilecore_arena_inside()) return;
    for (a = tilecore_arenas.all; a < tilecore_arenas.all + tilecore_arenas.n; a++) {
        if (!a->retired) tilecore_arena_drop(a, 0, a->open);
        memset(a->paged, 0, (size_t)(a->open / 8));
    }
    tilecore_release(&tilecore_arena_lock);
}

/* Registers what happens at fork(); 0, or an error number. */
TILECORE_UNUSED static int tilecore_arena_start(void)
{
    return tilecore_at_fork(tilecore_arena_before_fork, tilecore_arena_in_parent, tilecore_arena_in_child);
}

#else /* ---------------------------------------------------------------- other systems */

TILECORE_UNUSED static char *tilecore_arena_take(ptrdiff_t bytes, int *warm)
{
    return (void)bytes, *warm = 0, (char *)NULL;
}
TILECORE_UNUSED static int tilecore_arena_give_back(char *data) { return (void)data, 0; }
TILECORE_UNUSED static ptrdiff_t tilecore_arena_resize(char *data, ptrdiff_t bytes)
{
    return (void)data, (void)bytes, (ptrdiff_t)0;
}
TILECORE_UNUSED static void tilecore_arena_trim(ptrdiff_t most) { (void)most; }
TILECORE_UNUSED static ptrdiff_t tilecore_arena_idle(void) { return 0; }
TILECORE_UNUSED static int tilecore_arena_start(void) { return 0; }

#endif

TILECORE_UNUSED static void tilecore_arena_set_limit(ptrdiff_t most)
{
    tilecore_atomic_store(&tilecore_arena_most, most);
    tilecore_arena_trim(most);
}

#endif /* TILECORE_ARENA_H */
