/* A bitmap, and a tree that finds its first run of zeros of some length, for arena.c. For gcc and Clang, C11 / C++17.
 *
 *     bits     1 1 1 0 0 1 1 1 0 0 0 0 ...     the first run of 2: 3, of 3: 8
 *
 * The tree's leaves are the words, and each node stores the longest run below it. So the time depends on the tree's
 * height alone, not on the number of runs that are too short. There is no lock: the caller keeps other threads away. */
#pragma once

#include "../config.h"

#define TILECORE_WORD 64

/* Returns the first bit in [from, to) that is `value`, or `to`. Reads the words that hold [from, to), and no others. */
static inline ptrdiff_t tilecore_bits_find(const uint64_t *bits, ptrdiff_t from, ptrdiff_t to, int value)
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

/* Sets the bits in [from, to) to `value`. Returns how many of them were 1. */
static inline ptrdiff_t tilecore_bits_set(uint64_t *bits, ptrdiff_t from, ptrdiff_t to, int value)
{
    ptrdiff_t ones = 0, end;
    for (; from < to; from = end) {
        uint64_t *word = bits + from / TILECORE_WORD, mask = ~(uint64_t)0 << from % TILECORE_WORD;
        end = from - from % TILECORE_WORD + TILECORE_WORD;
        if (end > to) mask &= ~(uint64_t)0 >> (end - to), end = to;
        ones += __builtin_popcountll(*word & mask);
        *word = value ? *word | mask : *word & ~mask;
    }
    return ones;
}

/* The lengths of runs of zeros in a part of a bitmap: of the one at its beginning, the longest, the one at its end. */
typedef struct tilecore_runs {
    ptrdiff_t head, longest, tail;
} tilecore_runs;

typedef struct tilecore_bitmap {
    ptrdiff_t size; /* in bits: TILECORE_WORD, or 2, 4, .. times that */
    uint64_t *bits;
    tilecore_runs *runs; /* the tree: runs[1] is for all bits, runs[2 * k] and the next for the halves of runs[k] */
} tilecore_bitmap;

/* Sets the bits in [from, to), 0 <= from < to <= size, to `value`. */
static inline void tilecore_bitmap_set(tilecore_bitmap *map, ptrdiff_t from, ptrdiff_t to, int value)
{
    ptrdiff_t first = (map->size + from) / TILECORE_WORD, last = (map->size + to - 1) / TILECORE_WORD;
    ptrdiff_t half = TILECORE_WORD, k, at, end;
    tilecore_runs *r;
    tilecore_bits_set(map->bits, from, to, value);
    for (k = first; k <= last; k++) {
        const uint64_t *word = map->bits + (k - map->size / TILECORE_WORD);
        r = map->runs + k;
        r->head = tilecore_bits_find(word, 0, TILECORE_WORD, 1);
        r->tail = *word ? __builtin_clzll(*word) : TILECORE_WORD;
        r->longest = r->head;
        for (at = r->head; at < TILECORE_WORD; at = end) {
            at = tilecore_bits_find(word, at, TILECORE_WORD, 0);
            end = tilecore_bits_find(word, at, TILECORE_WORD, 1);
            if (r->longest < end - at) r->longest = end - at;
        }
    }
    for (; first > 1; half *= 2)
        for (k = first /= 2, last /= 2; k <= last; k++) {
            const tilecore_runs *low = map->runs + 2 * k, *high = low + 1;
            r = map->runs + k;
            r->head = low->head < half ? low->head : half + high->head;
            r->tail = high->tail < half ? high->tail : half + low->tail;
            r->longest = low->longest > high->longest ? low->longest : high->longest;
            if (r->longest < low->tail + high->head) r->longest = low->tail + high->head;
        }
}

/* Returns where the first run of `n` zeros begins; -1 if there is none. */
static inline ptrdiff_t tilecore_bitmap_find_run(const tilecore_bitmap *map, ptrdiff_t n)
{
    ptrdiff_t from = 0, half = map->size, k = 1, end;
    if (map->runs[k].longest < n) return -1;
    while ((half /= 2) >= TILECORE_WORD) {
        const tilecore_runs *low = map->runs + (k *= 2), *high = low + 1;
        if (low->longest >= n) continue;
        from += half, k++;
        if (low->tail + high->head >= n) return from - low->tail;
    }
    for (;; from = end) {
        from = tilecore_bits_find(map->bits, from, map->size, 0);
        end = tilecore_bits_find(map->bits, from, from + n, 1);
        if (end - from == n) return from;
    }
}
