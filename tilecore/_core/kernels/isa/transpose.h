/* `transpose` packs a transposed source, for write/panels.pyx. For AVX2, innermost last: tilecore_transpose_avx2,
 * .._cell_avx2, .._tiles_avx2, .._tiles_1_avx2 (also _2, _4, _8, _16), .._tile_avx2. */

#if !defined(TILECORE_TRANSPOSE) /* what sets share: the arguments of all cells of a transposition */
#define TILECORE_TRANSPOSE
typedef struct tilecore_transposition {
    char *dst;
    ptrdiff_t dst_pitch;
    const char *src;
    ptrdiff_t src_pitch, rows, item;
    char *lines; /* scratch for the source lines of a staged cell, or NULL */
    char *out;   /* scratch for the columns of a streamed cell, or NULL */
    int by_columns;
} tilecore_transposition;
#endif

#if defined(TILECORE_ZIP)
#define TILECORE_ZIP_ITEMS(end, a, b) \
    (item == 1   ? TILECORE_ZIP(end, 8, a, b) \
     : item == 2 ? TILECORE_ZIP(end, 16, a, b) \
     : item == 4 ? TILECORE_ZIP(end, 32, a, b) \
                 : TILECORE_ZIP(end, 64, a, b))
#define TILECORE_ZIP_REGISTERS(a, b) (last ? TILECORE_ZIP_ITEMS(hi, a, b) : TILECORE_ZIP_ITEMS(lo, a, b))

/* In each 16 bytes takes the items of a and b in turn, a's first, b's first, a's second: of the first or last 8. */
TILECORE_INLINE TILECORE_TARGETED TILECORE_VECTOR TILECORE_NAME(zip)(TILECORE_VECTOR a, TILECORE_VECTOR b,
                                                                     const int item, const int last)
{
#if defined(TILECORE_HALF)
    a.low = TILECORE_ZIP_REGISTERS(a.low, b.low);
    a.high = TILECORE_ZIP_REGISTERS(a.high, b.high);
    return a;
#else
    return TILECORE_ZIP_REGISTERS(a, b);
#endif
}
#undef TILECORE_ZIP_REGISTERS
#undef TILECORE_ZIP_ITEMS

/* Transposes a tile: 16 bytes of each of 2n rows become 32 bytes of each of n columns, n = 16 / item. A vector has a
 * row in its low half, and the n-th row after it in its high one. To zip the first half of all vectors with the last is
 * a perfect shuffle, as of cards; log2(n) of these are a transposition. */
TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(transpose_tile)(char *dst, ptrdiff_t dst_pitch, const char *src,
                                                                     ptrdiff_t src_pitch, const int item)
{
    const int n = 16 / item;
    TILECORE_VECTOR a[16], b[16];
    int i, k;
    TILECORE_UNROLL
    for (i = 0; i < n; i++) a[i] = TILECORE_LOAD_HALVES(src + i * src_pitch, src + (i + n) * src_pitch);
    TILECORE_UNROLL
    for (k = 1; k < n; k *= 2) {
        TILECORE_UNROLL
        for (i = 0; i < n / 2; i++) {
            b[2 * i] = TILECORE_NAME(zip)(a[i], a[i + n / 2], item, 0);
            b[2 * i + 1] = TILECORE_NAME(zip)(a[i], a[i + n / 2], item, 1);
        }
        TILECORE_UNROLL
        for (i = 0; i < n; i++) a[i] = b[i];
    }
    TILECORE_UNROLL
    for (i = 0; i < n; i++) TILECORE_STORE(dst + i * dst_pitch, a[i]);
}
#else
TILECORE_INLINE void TILECORE_NAME(transpose_tile)(char *dst, ptrdiff_t dst_pitch, const char *src, ptrdiff_t src_pitch,
                                                   const int item)
{
    const int n = 16 / item;
    int i, j;
    for (j = 0; j < n; j++)
        for (i = 0; i < 2 * n; i++)
            memcpy(dst + j * dst_pitch + i * item, src + i * src_pitch + j * item, (size_t)item);
}
#endif

/* Transposes tiles below each other, in strips side by side, at least one tile high and wide. The last tiles overlap
 * those before them. The function is not inline: compilers would keep the addresses of all rows on the stack, from one
 * tile to the next, and it would take three times as long. */
#define TILECORE_TRANSPOSE_TILES(item) \
    TILECORE_NOINLINE TILECORE_TARGETED static void TILECORE_NAME(transpose_tiles_##item)( \
        char *dst, ptrdiff_t dst_pitch, const char *src, ptrdiff_t src_pitch, ptrdiff_t rows, ptrdiff_t columns) \
    { \
        const ptrdiff_t n = 16 / item; \
        ptrdiff_t r, c; \
        TILECORE_ASSERT(rows >= 2 * n && columns >= n); \
        for (c = 0; c < columns; c += n) { \
            const char *from; \
            char *to; \
            if (c > columns - n) c = columns - n; \
            from = src + c * item, to = dst + c * dst_pitch; \
            for (r = rows; r >= 2 * n; r -= 2 * n, from += 2 * n * src_pitch, to += 32) \
                TILECORE_NAME(transpose_tile)(to, dst_pitch, from, src_pitch, item); \
            if (r > 0) { \
                from -= (2 * n - r) * src_pitch, to -= 32 - r * item; \
                TILECORE_NAME(transpose_tile)(to, dst_pitch, from, src_pitch, item); \
            } \
        } \
    }
TILECORE_TRANSPOSE_TILES(1)
TILECORE_TRANSPOSE_TILES(2)
TILECORE_TRANSPOSE_TILES(4)
TILECORE_TRANSPOSE_TILES(8)
#undef TILECORE_TRANSPOSE_TILES

/* Transposes a column at a time, of items of 4 or 8 bytes, in vectors made of words. */
TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(transpose_columns)(char *dst, ptrdiff_t dst_pitch, const char *src,
                                                                        ptrdiff_t src_pitch, ptrdiff_t rows,
                                                                        ptrdiff_t columns, const int item)
{
    for (; columns > 0; columns--, dst += dst_pitch, src += item) {
        const char *from = src;
        ptrdiff_t r = 0;
#if defined(TILECORE_WORDS)
        for (; r <= rows - 32 / item; r += 32 / item) {
            uint64_t word[4] = {0};
            int k;
            TILECORE_UNROLL
            for (k = 0; k < 32 / item; k++, from += src_pitch) {
                uint64_t x = 0;
                memcpy(&x, from, (size_t)item);
                word[k * item / 8] |= x << 8 * (k * item % 8);
            }
            TILECORE_STORE(dst + r * item, TILECORE_WORDS(word[0], word[1], word[2], word[3]));
        }
#endif
        for (; r < rows; r++, from += src_pitch) memcpy(dst + r * item, from, (size_t)item);
    }
}

/* Takes the four items of each cache line at once, so that it is read once, and prefetches that of a later row. */
TILECORE_TARGETED static void TILECORE_NAME(transpose_tiles_16)(char *dst, ptrdiff_t dst_pitch, const char *src,
                                                                ptrdiff_t src_pitch, ptrdiff_t rows, ptrdiff_t columns)
{
    ptrdiff_t r;
    for (; columns >= 4; columns -= 4, dst += 4 * dst_pitch, src += 64)
        for (r = 0; r < rows; r++) {
            const char *const from = src + r * src_pitch;
            char *const to = dst + r * 16;
            TILECORE_PREFETCH(from + TILECORE_PREFETCHED_ROWS * src_pitch);
            memcpy(to, from, 16), memcpy(to + dst_pitch, from + 16, 16);
            memcpy(to + 2 * dst_pitch, from + 32, 16), memcpy(to + 3 * dst_pitch, from + 48, 16);
        }
    for (; columns > 0; columns--, dst += dst_pitch, src += 16)
        for (r = 0; r < rows; r++) memcpy(dst + r * 16, src + r * src_pitch, 16);
}

static void TILECORE_NAME(transpose_tiles)(char *dst, ptrdiff_t dst_pitch, const char *src, ptrdiff_t src_pitch,
                                           ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t item)
{
    switch (item) {
    case 1: TILECORE_NAME(transpose_tiles_1)(dst, dst_pitch, src, src_pitch, rows, columns); return;
    case 2: TILECORE_NAME(transpose_tiles_2)(dst, dst_pitch, src, src_pitch, rows, columns); return;
    case 4: TILECORE_NAME(transpose_tiles_4)(dst, dst_pitch, src, src_pitch, rows, columns); return;
    case 8: TILECORE_NAME(transpose_tiles_8)(dst, dst_pitch, src, src_pitch, rows, columns); return;
    default: TILECORE_NAME(transpose_tiles_16)(dst, dst_pitch, src, src_pitch, rows, columns);
    }
}

/* Copies a cell lower or narrower than a tile into tiles, and their transposes out: it reads nothing after a row. */
TILECORE_TARGETED static void TILECORE_NAME(transpose_edge)(char *dst, ptrdiff_t dst_pitch, const char *src,
                                                            ptrdiff_t src_pitch, ptrdiff_t rows, ptrdiff_t columns,
                                                            ptrdiff_t item)
{
    const ptrdiff_t n = 16 / item;
    char in[32 * 16], out[16 * 32];
    ptrdiff_t r, c, i;
    for (r = 0; r < rows; r += 2 * n)
        for (c = 0; c < columns; c += n) {
            const ptrdiff_t height = rows - r < 2 * n ? rows - r : 2 * n, width = columns - c < n ? columns - c : n;
            for (i = 0; i < height; i++) {
                const char *const from = src + (r + i) * src_pitch + c * item;
                if (width == n) memcpy(in + 16 * i, from, 16);
                else TILECORE_NAME(copy_short)(in + 16 * i, from, width * item);
            }
            TILECORE_NAME(transpose_tiles)(out, 32, in, 16, 2 * n, n, item);
            for (i = 0; i < width; i++)
                TILECORE_NAME(copy_short)(dst + (c + i) * dst_pitch + r * item, out + 32 * i, height * item);
        }
}

/* Writes the cell of `height` rows from r on and `width` columns from c on. `back`: rows before it, stored again. */
TILECORE_TARGETED static void TILECORE_NAME(transpose_cell)(const tilecore_transposition *whole, ptrdiff_t r,
                                                            ptrdiff_t height, ptrdiff_t back, ptrdiff_t c,
                                                            ptrdiff_t width)
{
    const ptrdiff_t item = whole->item, n = 16 / item, tile_rows = item < 16 ? 2 * n : 1;
    const char *from = whole->src + (r - back) * whole->src_pitch + c * item;
    char *const dst = whole->dst + c * whole->dst_pitch + r * item, *const to = whole->out ? whole->out : dst;
    const ptrdiff_t to_pitch = whole->out ? (back + height) * item : whole->dst_pitch;
    ptrdiff_t pitch = whole->src_pitch, i;
    for (i = 0; whole->out && item < 16 && i < height; i++) TILECORE_PREFETCH(from + (back + height + i) * pitch);
    if (whole->lines && width == 64 / item && item < 16) {
        for (i = 0; i < back + height; i++) TILECORE_NAME(copy_short)(whole->lines + 64 * i, from + i * pitch, 64);
        from = whole->lines, pitch = 64;
    }
    if (back + height < tile_rows || width < n) {
        TILECORE_NAME(transpose_edge)(dst, whole->dst_pitch, from + back * pitch, pitch, height, width, item);
        return;
    }
    TILECORE_ASSERT(!whole->out || width * to_pitch <= TILECORE_CELL_BYTES / 2);
    if (whole->by_columns && item == 4) TILECORE_NAME(transpose_columns)(to, to_pitch, from, pitch, height, width, 4);
    else if (whole->by_columns) TILECORE_NAME(transpose_columns)(to, to_pitch, from, pitch, height, width, 8);
    else TILECORE_NAME(transpose_tiles)(to, to_pitch, from, pitch, back + height, width, item);
    for (i = 0; whole->out && i < width; i++) {
        char *begin = dst + i * whole->dst_pitch, *end = begin + height * item;
        const ptrdiff_t early = back ? (ptrdiff_t)((uintptr_t)begin & 63) : 0;
        if (r + height < whole->rows) end -= (uintptr_t)end & 63;
        TILECORE_NAME(stream)(begin - early, to + i * to_pitch + back * item - early, end - begin + early);
    }
}

/* Writes by cells, a cache line of each of TILECORE_CELL_ROWS rows or fewer, from left to right, then the rows below.
 *
 *                columns
 *          +---------+---------+--                     +---------+--
 *          |#|       |         |                       |### cell |
 *     rows |#| cell  |  cell   |      becomes          +---------+--
 *          +---------+---------+--                     |  cell   |
 *          |  cell   |                                 +---------+--
 *
 *     #: a tile of 32 / item rows by 16 / item columns, transposed in registers
 *
 * Variants (benchmarks/prices.md):
 *
 *     stream      stores past the caches: whole lines, by way of one cell. Cells are low, and each prefetches the one
 *                 below it
 *     back        with `stream`: columns are not aligned to lines alike, so a cell stores its predecessor's last rows
 *                 again, while the caches still hold them
 *     staged      for rows that lie whole TILECORE_ALIAS_BYTES apart: their lines are first copied beside each other
 *     by_columns  on Intel's alone: stores to several columns by turns take longer */
TILECORE_TARGETED static void TILECORE_NAME(transpose)(char *dst, ptrdiff_t dst_pitch, const char *src,
                                                       ptrdiff_t src_pitch, ptrdiff_t rows, ptrdiff_t columns,
                                                       ptrdiff_t item, int store_mode, char *cells)
{
    const ptrdiff_t n = 16 / item, tile_rows = item < 16 ? 2 * n : 1, cell = 64 / item;
    const int stream = cells && store_mode == TILECORE_BY_STREAM;
    const int staged = cells && src_pitch % TILECORE_ALIAS_BYTES == 0 && columns >= n;
    const int by_columns = store_mode == TILECORE_BY_COLUMNS && (item == 4 || item == 8) && src_pitch % 256 != 0;
    const tilecore_transposition whole = {dst, dst_pitch, src, src_pitch, rows, item, staged ? cells : NULL,
                                          stream ? cells + TILECORE_CELL_BYTES / 2 : NULL, by_columns};
    ptrdiff_t max_height = TILECORE_CELL_ROWS, r, c, height, width;
    if (stream) max_height = item < 8 ? 128 / item : (ptrdiff_t)TILECORE_PREFETCHED_ROWS; /* two lines or more */
    TILECORE_ASSERT(item > 0 && item <= 16 && 16 % item == 0 && rows > 0 && columns > 0);
    TILECORE_ASSERT(columns == 1 || dst_pitch >= rows * item || -dst_pitch >= rows * item);
    if (!stream && !staged && rows >= tile_rows && columns >= n && /* nothing is read again, or all from the caches */
        (item == 16 || 2 * rows * columns * item <= TILECORE_FIRST_CACHE_BYTES ||
         (rows <= TILECORE_CELL_ROWS && !by_columns))) {
        TILECORE_NAME(transpose_tiles)(dst, dst_pitch, src, src_pitch, rows, columns, item);
        return;
    }
    for (r = 0; r < rows; r += height) {
        const ptrdiff_t back = stream && r > 0 ? cell : 0;
        if (r > 0 && rows - r + back < tile_rows) r = rows - tile_rows; /* only the first may be lower than a tile */
        height = rows - r;
        if (height > max_height) height = max_height;
        for (c = 0; c < columns; c += width) {
            width = staged && c == 0 ? cell - (ptrdiff_t)((uintptr_t)src & 63) / item : cell;
            if (c > 0 && columns - c < n) c = columns - n;
            if (width > columns - c) width = columns - c;
            TILECORE_NAME(transpose_cell)(&whole, r, height, back, c, width);
        }
    }
}
