/* Arenas, their watcher, and what they do at a fork(). The state is static, so one module is linked with this. */
#include "arena.h"
#include "bitmap.h"
#include "pages.h"
#include "system.h"

/* The bytes of a granule; the fewest of an arena; granules that are advised together on huge pages. */
#define TILECORE_GRANULE_BYTES ((ptrdiff_t)32 << 10)
#define TILECORE_ARENA_BYTES ((ptrdiff_t)(sizeof(void *) > 4 ? 1024 : 64) << 20)
#define TILECORE_ADVISED_GRANULES 256
/* The idle bytes that are kept beyond a program's peak use, because its use varies. */
#define TILECORE_SPARE_BYTES ((ptrdiff_t)64 << 20)
/* If no result is freed for this time, all idle memory is released. A gigabyte that is allocated anew each minute costs
 * at most 1 % of the time. */
#ifndef TILECORE_IDLE_MILLISECONDS
#define TILECORE_IDLE_MILLISECONDS 60000
#endif
/* While results are freed, the peak use of this time limits idle memory. */
#define TILECORE_PEAK_MILLISECONDS 60000

static ptrdiff_t tilecore_arena_max_idle; /* in bytes; other threads read the old limit or the new one */
ptrdiff_t tilecore_arena_limit(void) { return tilecore_atomic_load(&tilecore_arena_max_idle); }

#if defined(__linux__)
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__GLIBC__)
#include <malloc.h>
#else
#define malloc_trim(pad) ((void)0)
#endif

/* Idle pages are poisoned for AddressSanitizer. Clang before version 21 has no __SANITIZE_ADDRESS__. */
#if defined(__has_feature)
#define TILECORE_SANITIZED __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define TILECORE_SANITIZED 1
#endif
#if defined(TILECORE_SANITIZED) && TILECORE_SANITIZED
#include <sanitizer/asan_interface.h>
#define tilecore_poison(at, bytes) __asan_poison_memory_region(at, (size_t)(bytes))
#define tilecore_unpoison(at, bytes) __asan_unpoison_memory_region(at, (size_t)(bytes))
#else
#define tilecore_poison(at, bytes) ((void)(at), (void)(bytes))
#define tilecore_unpoison(at, bytes) ((void)(at), (void)(bytes))
#endif

/* ---------------------------------------------------------------- arenas, under the lock; counted in granules */

/* An arena is a range of addresses, with bits for each granule: 32 KiB, or a page if that is larger. A word of bits
 * covers a huge page.
 *
 *     granule   0   1   2   3   4   5   6   7   8   9  10  11 ...
 *     used      1   1   1   0   0   1   1   1   1   0   0   0         by a result
 *     begun     1   0   0   0   0   1   0   1   0   0   0   0         three results, of 3, 2 and 2 granules
 *     paged     1   1   1   1   1   1   1   1   1   1   0   0         3, 4 and 9 are idle: free, with pages
 *
 * By first fit, a result takes the first free run that is long enough: one of 2 granules takes 3 and 4. So a new result
 * is written to pages that the caches still hold, whatever its size. Free neighbours are one run, one mapping serves
 * all results, and no result shares a page with another or with bookkeeping. None of these was better: best fit, large
 * results from the other end, granules of 16 or 64 KiB, a first byte off the page boundary.
 *
 * Addresses alone take no pages. A new arena is as long as all before it, so there are few. Under an address limit
 * nothing is recycled, and an arena without results is removed. */
typedef struct tilecore_arena {
    char *base;
    tilecore_bitmap used;
    uint64_t *begun, *paged;
} tilecore_arena;

static tilecore_mutex tilecore_arena_lock = TILECORE_MUTEX_INIT;
static tilecore_condition tilecore_arena_change; /* `watched` changed; its clock is that of `freed` */
static tilecore_thread tilecore_arena_watcher;
static ptrdiff_t tilecore_heap_raised; /* whether glibc's heap was made to keep pages */
static struct {
    tilecore_arena all[64]; /* twenty would cover all addresses */
    int n;
    ptrdiff_t granule;     /* its bytes */
    ptrdiff_t alive, idle; /* granules of results; free ones with pages */
    ptrdiff_t peak[2];     /* of `alive`, in this half of TILECORE_PEAK_MILLISECONDS and in the one before */
    long long freed;       /* when a result was last freed, in milliseconds */
    int watched;           /* whether there is a watcher; -1 if it must end, because of a fork() */
    int huge;              /* whether to advise huge pages */
} tilecore_arenas;

static ptrdiff_t tilecore_arena_bytes(ptrdiff_t n) { return n * tilecore_arenas.granule; }
static char *tilecore_arena_at(const tilecore_arena *a, ptrdiff_t from) { return a->base + tilecore_arena_bytes(from); }

/* Makes an arena of at least `n` granules. Returns NULL if that fails. */
static tilecore_arena *tilecore_arena_new(ptrdiff_t n)
{
    const ptrdiff_t word = tilecore_arena_bytes(TILECORE_WORD);
    tilecore_arena *a = tilecore_arenas.all + tilecore_arenas.n;
    ptrdiff_t words = TILECORE_ARENA_BYTES / word, before = 0, k;
    for (k = 0; k < tilecore_arenas.n; k++) before += tilecore_arenas.all[k].used.size / TILECORE_WORD;
    if (n > PTRDIFF_MAX / 8 / tilecore_arenas.granule) return NULL;
    while (words < before || words * TILECORE_WORD < n) words *= 2;
    memset(a, 0, sizeof *a);
    a->used.runs = (tilecore_runs *)calloc((size_t)words, 2 * sizeof *a->used.runs + 3 * sizeof *a->begun);
    a->base = a->used.runs ? tilecore_addresses_new(words * word) : NULL;
    if (!a->base) {
        free(a->used.runs);
        return NULL;
    }
    a->used.bits = (uint64_t *)(a->used.runs + 2 * words);
    a->begun = a->used.bits + words, a->paged = a->begun + words;
    a->used.size = words * TILECORE_WORD;
    tilecore_bitmap_set(&a->used, 0, a->used.size, 0);
    if (tilecore_arenas.huge) tilecore_addresses_advise(a->base, words * word, 1);
    tilecore_arenas.n++;
    return a;
}

/* Finds the arena of a result, its first granule and its end. Returns NULL if it is not from an arena. */
static tilecore_arena *tilecore_arena_find(const char *data, ptrdiff_t *from, ptrdiff_t *end)
{
    tilecore_arena *a;
    for (a = tilecore_arenas.all; a < tilecore_arenas.all + tilecore_arenas.n; a++) {
        const uintptr_t at = (uintptr_t)data - (uintptr_t)a->base, granule = (uintptr_t)tilecore_arenas.granule;
        if (at >= (uintptr_t)tilecore_arena_bytes(a->used.size)) continue;
        *from = (ptrdiff_t)(at / granule);
        *end = tilecore_bits_find(a->used.bits, *from, a->used.size, 0);
        if (at % granule || *end == *from) continue;
        *end = tilecore_bits_find(a->begun, *from + 1, *end, 1);
        return a;
    }
    return NULL;
}

/* Releases the pages of every free run that intersects [from, to), from `from` to the run's end, even beyond `to`. The
 * system would fill a huge page again after a part of it is released (khugepaged). So the TILECORE_ADVISED_GRANULES
 * granules around it are advised against huge pages, until all their pages are released. */
static void tilecore_arena_release_pages(tilecore_arena *a, ptrdiff_t from, ptrdiff_t to)
{
    const uint64_t *used = a->used.bits;
    const ptrdiff_t advised = TILECORE_ADVISED_GRANULES;
    ptrdiff_t end, next, low;
    for (; (from = tilecore_bits_find(used, from, to, 0)) < to; from = next) {
        end = next = tilecore_bits_find(used, from, a->used.size, 1);
        if (to < end && tilecore_bits_find(a->paged, to, end, 1) == end) end = to; /* there are no pages from `to` on */
        tilecore_arenas.idle -= tilecore_bits_set(a->paged, from, end, 0);
        tilecore_addresses_drop(tilecore_arena_at(a, from), tilecore_arena_bytes(end - from));
        for (low = from / advised * advised; low < end; low += advised) {
            const ptrdiff_t high = low + advised;
            const int empty = tilecore_bits_find(used, low, high, 1) == high &&
                              tilecore_bits_find(a->paged, low, high, 1) == high;
            if (empty || (low < from && from % TILECORE_WORD) || (end < high && end % TILECORE_WORD))
                tilecore_addresses_advise(tilecore_arena_at(a, low), tilecore_arena_bytes(advised),
                                          empty && tilecore_arenas.huge);
        }
    }
}

/* Releases idle pages until at most `limit` bytes are left: the highest first, and those of partly used huge pages
 * last. A limit of 0 releases all pages that are not a result's: a huge page may have more than are counted. */
static void tilecore_arena_limit_idle(ptrdiff_t limit)
{
    int k, parts;
    ptrdiff_t w;
    for (parts = !limit; parts < 2; parts++)
        for (k = tilecore_arenas.n; k-- > 0;) {
            tilecore_arena *a = tilecore_arenas.all + k;
            if (!limit) tilecore_arena_release_pages(a, 0, a->used.size);
            for (w = a->used.size / TILECORE_WORD; w-- > 0 && tilecore_arena_bytes(tilecore_arenas.idle) > limit;)
                if ((a->paged[w] & ~a->used.bits[w]) && (parts || !a->used.bits[w]))
                    tilecore_arena_release_pages(a, w * TILECORE_WORD, (w + 1) * TILECORE_WORD);
        }
}

/* Under an address limit, releases all idle pages, and the addresses of arenas without results. */
static void tilecore_arena_release_all(void)
{
    tilecore_arena *a;
    tilecore_arena_limit_idle(0);
    for (a = tilecore_arenas.all + tilecore_arenas.n; a-- > tilecore_arenas.all;) {
        const ptrdiff_t bytes = tilecore_arena_bytes(a->used.size);
        if (a->used.runs[1].longest < a->used.size) continue;
        tilecore_unpoison(a->base, bytes);
        tilecore_pages_free(a->base, bytes);
        free(a->used.runs);
        *a = tilecore_arenas.all[--tilecore_arenas.n];
    }
}

/* The watcher, a thread, releases idle pages, and the heap's, if no result was freed for TILECORE_IDLE_MILLISECONDS.
 * It lives only while pages are idle. Nobody joins it: it may end long before the next watcher begins. */
static void tilecore_arena_watch(void)
{
    pthread_detach(pthread_self());
    tilecore_lock(&tilecore_arena_lock);
    while (tilecore_arenas.watched > 0 && tilecore_arenas.idle) {
        const long long end = tilecore_arenas.freed + TILECORE_IDLE_MILLISECONDS;
        const struct timespec until = {(time_t)(end / 1000), (long)(end % 1000 * 1000000)};
        if (tilecore_nanoseconds(0) / 1000000 >= end) {
            tilecore_unlock(&tilecore_arena_lock); /* a fork waits here, but no call */
            tilecore_arena_trim(0);
            tilecore_lock(&tilecore_arena_lock);
        } else pthread_cond_timedwait(&tilecore_arena_change, &tilecore_arena_lock, &until);
    }
    tilecore_arenas.watched = 0;
    tilecore_wake_all(&tilecore_arena_change);
    tilecore_unlock(&tilecore_arena_lock);
}

/* Frees the granules of a result. Idle pages are kept up to the limit, and up to TILECORE_SPARE_BYTES more than the
 * peak use of TILECORE_PEAK_MILLISECONDS. `alive` falls here alone, so it is at a peak now. */
static void tilecore_arena_free_run(tilecore_arena *a, ptrdiff_t from, ptrdiff_t to)
{
    char *at = tilecore_arena_at(a, from);
    const ptrdiff_t bytes = tilecore_arena_bytes(to - from);
    const long long now = tilecore_nanoseconds(0) / 1000000, half = TILECORE_PEAK_MILLISECONDS / 2;
    const long long passed = now / half - tilecore_arenas.freed / half;
    ptrdiff_t *peak = tilecore_arenas.peak, keep;
    if (passed) peak[1] = passed == 1 ? peak[0] : 0, peak[0] = 0;
    if (peak[0] < tilecore_arenas.alive) peak[0] = tilecore_arenas.alive;
    keep = tilecore_arena_bytes(peak[0] > peak[1] ? peak[0] : peak[1]) + TILECORE_SPARE_BYTES;
    if (keep > tilecore_arena_limit()) keep = tilecore_arena_limit();
    tilecore_arenas.freed = now;
    if (bytes < keep) tilecore_arena_limit_idle(keep - bytes); /* makes room: the caches hold this result */
    tilecore_bitmap_set(&a->used, from, to, 0);
    tilecore_bits_set(a->begun, from, from + 1, 0);
    tilecore_arenas.alive -= to - from;
    tilecore_poison(at, bytes);
    tilecore_arenas.idle += to - from;
    if (tilecore_bits_set(a->paged, from, to, 1) < to - from) /* pages of a parent */
        tilecore_arena_release_pages(a, from, to);
    if (bytes >= TILECORE_QUERY_BYTES && tilecore_addresses_limited()) tilecore_arena_release_all();
    else if (tilecore_arena_bytes(tilecore_arenas.idle) > keep) tilecore_arena_limit_idle(keep);
    if (!tilecore_arenas.watched && tilecore_arenas.idle) {
        tilecore_await_end(&tilecore_arena_watcher); /* of the watcher before */
        tilecore_arenas.watched = tilecore_thread_new(&tilecore_arena_watcher, tilecore_arena_watch);
    }
}

/* ---------------------------------------------------------------- the functions that memory.pyx calls */

char *tilecore_arena_alloc(ptrdiff_t bytes, int *prefaulted)
{
    const ptrdiff_t page = tilecore_page_bytes();
    tilecore_arena *a = NULL;
    ptrdiff_t n, from = -1, fresh = 0;
    char *data = NULL;
    int k;
    tilecore_lock(&tilecore_arena_lock);
    tilecore_arenas.granule = page > TILECORE_GRANULE_BYTES ? page : TILECORE_GRANULE_BYTES;
    n = (bytes - 1) / tilecore_arenas.granule + 1;
    for (k = 0; k < tilecore_arenas.n && from < 0; k++)
        from = tilecore_bitmap_find_run(&(a = tilecore_arenas.all + k)->used, n);
    if ((from < 0 || bytes >= TILECORE_QUERY_BYTES || tilecore_bits_find(a->paged, from, from + n, 0) < from + n) &&
        tilecore_addresses_limited())
        tilecore_arena_release_all();
    else if (from >= 0 || (from = 0, a = tilecore_arena_new(n))) {
        tilecore_bitmap_set(&a->used, from, from + n, 1);
        tilecore_bits_set(a->begun, from, from + 1, 1);
        fresh = n - tilecore_bits_set(a->paged, from, from + n, 1);
        tilecore_arenas.alive += n, tilecore_arenas.idle -= n - fresh;
        data = tilecore_arena_at(a, from);
        tilecore_unpoison(data, tilecore_arena_bytes(n));
    }
    tilecore_unlock(&tilecore_arena_lock);
    /* To populate ordinary pages at once is faster than a fault for each. */
    if (fresh && bytes < TILECORE_HUGE_BYTES) tilecore_addresses_populate(data, bytes);
    *prefaulted = data && 2 * fresh <= n;
    return data;
}

int tilecore_arena_free(char *data)
{
    ptrdiff_t from, end;
    tilecore_arena *a;
    tilecore_lock(&tilecore_arena_lock);
    if ((a = tilecore_arena_find(data, &from, &end))) tilecore_arena_free_run(a, from, end);
    tilecore_unlock(&tilecore_arena_lock);
    return a != NULL;
}

ptrdiff_t tilecore_arena_capacity(char *data)
{
    ptrdiff_t from, end, bytes;
    tilecore_lock(&tilecore_arena_lock);
    bytes = tilecore_arena_find(data, &from, &end) ? tilecore_arena_bytes(end - from) : 0;
    tilecore_unlock(&tilecore_arena_lock);
    return bytes;
}

void tilecore_arena_trim(ptrdiff_t limit)
{
    tilecore_lock(&tilecore_arena_lock);
    if (!limit && tilecore_addresses_limited()) tilecore_arena_release_all();
    else tilecore_arena_limit_idle(limit);
    tilecore_unlock(&tilecore_arena_lock);
    if (!limit && tilecore_atomic_load(&tilecore_heap_raised)) malloc_trim(0); /* it may hold up malloc and fork() */
}

/* glibc maps blocks above a threshold, and releases the end of its heap above twice that: a program's other arrays get
 * new pages in each step. The threshold follows the largest mapped block that was freed. So one is freed here, once and
 * untouched: of a 16th of the limit, at most 24 MiB. After one of 32 MiB, the heaps of other threads, of 64 MiB, would
 * never be trimmed. */
void tilecore_arena_raise_heap(void)
{
    const ptrdiff_t most = ((ptrdiff_t)24 << 20) - 65536, share = tilecore_arena_limit() / 16;
    void *volatile block; /* or compilers remove it */
    if (tilecore_atomic_load(&tilecore_heap_raised) || tilecore_atomic_add(&tilecore_heap_raised, 1)) return;
    block = malloc((size_t)(share < most ? share : most));
    free(block);
}

ptrdiff_t tilecore_arena_idle(void)
{
    ptrdiff_t bytes;
    tilecore_lock(&tilecore_arena_lock);
    bytes = tilecore_arena_bytes(tilecore_arenas.idle);
    tilecore_unlock(&tilecore_arena_lock);
    return bytes;
}

/* Makes a new condition: in a child, threads that it lacks may have waited for the old one. */
static void tilecore_arena_new_change(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&tilecore_arena_change, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* Before fork() the watcher ends, and idle pages beyond TILECORE_SPARE_BYTES are released: in the parent no watcher may
 * begin just after it, when Python counts the threads. The lock is held until the handlers below release it. */
static void tilecore_arena_before_fork(void)
{
    tilecore_lock(&tilecore_arena_lock);
    while (tilecore_arenas.watched) {
        tilecore_arenas.watched = -1;
        tilecore_wake_all(&tilecore_arena_change);
        tilecore_wait(&tilecore_arena_change, &tilecore_arena_lock);
    }
    tilecore_await_end(&tilecore_arena_watcher);
    tilecore_arena_limit_idle(TILECORE_SPARE_BYTES);
}

static void tilecore_arena_in_parent(void) { tilecore_unlock(&tilecore_arena_lock); }

/* A forked child shares its parent's pages until one of the two writes, and then the system copies them. So the child
 * releases idle pages, and clears the bits `paged` of all others: it releases these when their results are freed. */
static void tilecore_arena_in_child(void)
{
    tilecore_arena *a;
    for (a = tilecore_arenas.all; a < tilecore_arenas.all + tilecore_arenas.n; a++) {
        tilecore_arena_release_pages(a, 0, a->used.size);
        memset(a->paged, 0, (size_t)(a->used.size / 8));
    }
    tilecore_arena_new_change();
    tilecore_unlock(&tilecore_arena_lock);
}

int tilecore_arena_start(int huge)
{
    tilecore_arenas.huge = huge;
    tilecore_arena_new_change();
    return tilecore_at_fork(tilecore_arena_before_fork, tilecore_arena_in_parent, tilecore_arena_in_child);
}

#else /* ---------------------------------------------------------------- other systems */

char *tilecore_arena_alloc(ptrdiff_t bytes, int *prefaulted) { return (void)bytes, *prefaulted = 0, (char *)NULL; }
int tilecore_arena_free(char *data) { return (void)data, 0; }
ptrdiff_t tilecore_arena_capacity(char *data) { return (void)data, 0; }
void tilecore_arena_trim(ptrdiff_t limit) { (void)limit; }
void tilecore_arena_raise_heap(void) {}
ptrdiff_t tilecore_arena_idle(void) { return 0; }
int tilecore_arena_start(int huge) { return (void)huge, 0; }

#endif

void tilecore_arena_set_limit(ptrdiff_t limit)
{
    tilecore_atomic_store(&tilecore_arena_max_idle, limit);
    tilecore_arena_trim(limit);
}
