/* `write_small` writes results below 128 KiB at once, C-contiguous from C-contiguous. It orders no loops, and prepares
 * a kernel only if rows cost more than TILECORE_FEW_COST. Nine results in ten have less than a kilobyte.
 *
 *     (2, 3) of 4 bytes, tiled (2, 2):   rows of 12 bytes, 2 copies of each; then both rows once more
 *
 * The innermost repeated axis and the axes inside it make a row. All rows are written with their copies, from
 * registers. When a repeated axis outside the rows is complete, its output is copied after itself. It merges axes by
 * the rule of nest_push (plan/nest.pxd), but keeps no strides; each loop counts its remaining steps. For AVX2:
 * tilecore_write_small_avx2, tilecore_few_rows_avx2, tilecore_fill_rows_avx2, tilecore_repeat_few_avx2. */

TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(copy_few)(char *dst, const char *src, ptrdiff_t n)
{
    if (n > 2 * TILECORE_WIDTH) TILECORE_NAME(copy)(dst, src, n);
    else TILECORE_NAME(copy_short)(dst, src, n);
}

/* Writes the `n` bytes at dst `times` - 1 times more, after themselves. Returns the end. It inlines copies of a few
 * bytes. `replicate`, for blocks of any size, does not, and keeps what it copies in the first-level cache. */
TILECORE_INLINE TILECORE_TARGETED char *TILECORE_NAME(repeat_few)(char *dst, ptrdiff_t n, ptrdiff_t times)
{
    char *const end = dst + n * times;
    char *at = dst + n;
    if (times > 4) { /* copies what is written so far, again and again */
        for (; at - dst < end - at; at += at - dst) TILECORE_NAME(copy_few)(at, dst, at - dst);
        n = end - at;
    }
    for (; at < end; at += n) TILECORE_NAME(copy_few)(at, dst, n);
    return end;
}

/* Writes rows of 1, 2, 4 or 8 bytes; long spans by aligned stores. `row` is fixed per call site. */
TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(fill_rows)(char *dst, const char *src, const char *end,
                                                                const ptrdiff_t row, ptrdiff_t span)
{
    const ptrdiff_t w = TILECORE_WIDTH;
    ptrdiff_t i;
#define TILECORE_FILL(size) \
    for (; src < end; src += row, dst += span) { \
        const uint64_t word = tilecore_load_word(src, row), words[4] = {word, word, word, word}; \
        memcpy(dst, words, size), memcpy(dst + span - size, words, size); \
    }
    if (span < w) {
        TILECORE_BY_WORDS(span, TILECORE_FILL)
        return;
    }
    for (; src < end; src += row, dst += span) {
        const uint64_t word = tilecore_load_word(src, row);
        const uint64_t words[8] = {word, word, word, word, word, word, word, word};
        const TILECORE_VECTOR v = TILECORE_LOAD(words);
        TILECORE_STORE(dst, v);
        for (i = (ptrdiff_t)(0 - (uintptr_t)dst) & (w - row); i < span - w; i += w) TILECORE_STORE(dst + i, v);
        TILECORE_STORE(dst + span - w, v);
    }
#undef TILECORE_FILL
}

/* Writes `rows` rows, each with its copies. */
TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(few_rows)(char *dst, const char *src, ptrdiff_t rows,
                                                               ptrdiff_t row, ptrdiff_t repeats)
{
    const char *const end = src + rows * row;
    const ptrdiff_t span = row * repeats;
    ptrdiff_t r;
#define TILECORE_ROWS(size) \
    for (; src < end; src += row) { \
        char head[size], tail[size]; \
        memcpy(head, src, size), memcpy(tail, src + row - size, size); \
        for (r = 0; r < repeats; r++, dst += row) { \
            memcpy(dst, head, size); \
            if (row > size) memcpy(dst + row - size, tail, size); \
        } \
    }
    switch (row) {
    case 1: TILECORE_NAME(fill_rows)(dst, src, end, 1, span); return;
    case 2: TILECORE_NAME(fill_rows)(dst, src, end, 2, span); return;
    case 4: TILECORE_NAME(fill_rows)(dst, src, end, 4, span); return;
    case 8: TILECORE_NAME(fill_rows)(dst, src, end, 8, span); return;
    default:
        if (row <= 64 && repeats < 64) {
            TILECORE_BY_WORDS(row, TILECORE_ROWS)
            return;
        }
    }
    for (; src < end; src += row, dst += span) {
        TILECORE_NAME(copy_few)(dst, src, row);
        TILECORE_NAME(repeat_few)(dst, row, repeats);
    }
#undef TILECORE_ROWS
}

TILECORE_TARGETED static void TILECORE_NAME(write_small)(const tilecore_set *self, int ndim, const ptrdiff_t *shape,
                                                         const ptrdiff_t *repeats, ptrdiff_t itemsize, char *dst,
                                                         const char *src)
{
    /* The repeated axes outside the rows, innermost first. An axis that is not repeated is part of the next one. */
    struct {
        ptrdiff_t count, times; /* steps (of the rows, or of the entry before), and how often all are written */
        ptrdiff_t left;         /* steps that are not written yet */
        char *begin;            /* where these steps begin in the output */
    } outer[64];                /* each at least doubles what is written, of less than 2^63 bytes */
    tilecore_rows rows;
    ptrdiff_t row = itemsize, copies = 1, count = 1, all = 1;
    int k = ndim - 1, n = 0;
    for (; k >= 0 && copies == 1; k--) row *= shape[k], copies = repeats[k];
    for (; k >= 0; k--) {
        count *= shape[k], all *= shape[k];
        if (repeats[k] == 1) continue;
        if (count == 1 && n == 0) copies *= repeats[k];
        else outer[n].count = outer[n].left = count, outer[n].times = repeats[k], outer[n++].begin = dst, count = 1;
    }
    TILECORE_ASSERT(all * row > 0);
    if (copies == 1) {
        TILECORE_NAME(copy_few)(dst, src, row);
        return;
    }
    rows.write = NULL;
    if (all * tilecore_row_cost(row, copies) > TILECORE_FEW_COST)
        tilecore_prepare_rows(&rows, self, row, copies, row, row * copies, n ? outer[0].count : count,
                              all * row * copies <= TILECORE_BLOCK_BYTES);
    for (;;) {
        const ptrdiff_t here = n ? outer[0].count : count;
        if (!rows.write) TILECORE_NAME(few_rows)(dst, src, here, row, copies);
        else rows.write(&rows, dst, src, here, copies);
        if (n == 0) return;
        src += here * row;
        dst = TILECORE_NAME(repeat_few)(dst, here * row * copies, outer[0].times);
        for (k = 1; k < n && --outer[k].left == 0; k++) {
            outer[k].left = outer[k].count;
            dst = TILECORE_NAME(repeat_few)(outer[k].begin, dst - outer[k].begin, outer[k].times);
        }
        if (k == n && --count == 0) return;
        while (k-- > 1) outer[k].begin = dst;
    }
}
