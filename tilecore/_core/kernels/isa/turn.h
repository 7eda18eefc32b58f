/* Transposition: `turn`. A part of each instruction set, written in its vectors; so there is no include guard. */

#if defined(TILECORE_ZIP)
#if defined(TILECORE_HALF)
#define TILECORE_REGISTER TILECORE_HALF
#else
#define TILECORE_REGISTER TILECORE_VECTOR
#endif

/* The items of two registers in turn: a's first, b's first, a's second; of their first halves, or of their last. */
TILECORE_INLINE TILECORE_TARGETED TILECORE_REGISTER TILECORE_NAME(zip_register)(TILECORE_REGISTER a,
                                                                                TILECORE_REGISTER b, const int item,
                                                                                const int last)
{
    switch (item) {
    case 1: return last ? TILECORE_ZIP(hi, 8, a, b) : TILECORE_ZIP(lo, 8, a, b);
    case 2: return last ? TILECORE_ZIP(hi, 16, a, b) : TILECORE_ZIP(lo, 16, a, b);
    case 4: return last ? TILECORE_ZIP(hi, 32, a, b) : TILECORE_ZIP(lo, 32, a, b);
    default: return last ? TILECORE_ZIP(hi, 64, a, b) : TILECORE_ZIP(lo, 64, a, b);
    }
}
#undef TILECORE_REGISTER

/* The same in each 16 bytes of a vector. */
TILECORE_INLINE TILECORE_TARGETED TILECORE_VECTOR TILECORE_NAME(zip)(TILECORE_VECTOR a, TILECORE_VECTOR b,
                                                                     const int item, const int last)
{
#if defined(TILECORE_HALF)
    a.low = TILECORE_NAME(zip_register)(a.low, b.low, item, last);
    a.high = TILECORE_NAME(zip_register)(a.high, b.high, item, last);
    return a;
#else
    return TILECORE_NAME(zip_register)(a, b, item, last);
#endif
}

/* A tile: 16 bytes of each of 2n rows become 32 bytes of each of n columns, n = 16 / item. A vector has a row in its
 * low half, and the n-th after it in its high one. To zip the first half of all vectors with the last is a perfect
 * shuffle, as of cards; log2(n) of those are a transposition. */
TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(turn_tile)(char *dst, ptrdiff_t dst_pitch, const char *src,
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
TILECORE_INLINE void TILECORE_NAME(turn_tile)(char *dst, ptrdiff_t dst_pitch, const char *src, ptrdiff_t src_pitch,
                                              const int item)
{
    const int n = 16 / item;
    int i, j;
    for (j = 0; j < n; j++)
        for (i = 0; i < 2 * n; i++)
            memcpy(dst + j * dst_pitch + i * item, src + i * src_pitch + j * item, (size_t)item);
}
#endif

/* Tiles one below the other, in strips side by side. Not inline: compilers would keep the addresses of all rows on the
 * stack, from one tile to the next, and take three times as long. */
#define TILECORE_TURN_TILES(item) \
    TILECORE_NOINLINE TILECORE_TARGETED static void TILECORE_NAME(turn_tiles_##item)( \
        char *dst, ptrdiff_t dst_pitch, const char *src, ptrdiff_t src_pitch, ptrdiff_t tiles, ptrdiff_t strips) \
    { \
        ptrdiff_t i; \
        for (; strips > 0; strips--, dst += 16 / item * dst_pitch, src += 16) \
            for (i = 0; i < tiles; i++) \
                TILECORE_NAME(turn_tile)(dst + 32 * i, dst_pitch, src + 32 / item * i * src_pitch, src_pitch, item); \
    }
TILECORE_TURN_TILES(1)
TILECORE_TURN_TILES(2)
TILECORE_TURN_TILES(4)
TILECORE_TURN_TILES(8)
TILECORE_TURN_TILES(16)
#undef TILECORE_TURN_TILES

static void TILECORE_NAME(turn_tiles)(char *dst, ptrdiff_t dst_pitch, const char *src, ptrdiff_t src_pitch,
                                      ptrdiff_t tiles, ptrdiff_t strips, ptrdiff_t item)
{
    switch (item) {
    case 1: TILECORE_NAME(turn_tiles_1)(dst, dst_pitch, src, src_pitch, tiles, strips); return;
    case 2: TILECORE_NAME(turn_tiles_2)(dst, dst_pitch, src, src_pitch, tiles, strips); return;
    case 4: TILECORE_NAME(turn_tiles_4)(dst, dst_pitch, src, src_pitch, tiles, strips); return;
    case 8: TILECORE_NAME(turn_tiles_8)(dst, dst_pitch, src, src_pitch, tiles, strips); return;
    default: TILECORE_NAME(turn_tiles_16)(dst, dst_pitch, src, src_pitch, tiles, strips);
    }
}

/* What is less than a tile, by way of one. */
TILECORE_TARGETED static void TILECORE_NAME(turn_edge)(char *dst, ptrdiff_t dst_pitch, const char *src,
                                                       ptrdiff_t src_pitch, ptrdiff_t rows, ptrdiff_t columns,
                                                       ptrdiff_t item)
{
    char in[32 * 16], out[16 * 32];
    ptrdiff_t i;
    for (i = 0; i < rows; i++) TILECORE_NAME(copy_short)(in + 16 * i, src + i * src_pitch, columns * item);
    TILECORE_NAME(turn_tiles)(out, 32, in, 16, 1, 1, item);
    for (i = 0; i < columns; i++) TILECORE_NAME(copy_short)(dst + i * dst_pitch, out + 32 * i, rows * item);
}

/* dst[c * dst_pitch + r * item] = src[r * src_pitch + c * item], for items of 1, 2, 4, 8 or 16 bytes. By cells of a
 * cache line of each of 64 rows, first along the rows. The last cells overlap those before them, to be whole
 * tiles. `far`: the source lies beyond the caches. */
TILECORE_TARGETED static void TILECORE_NAME(turn)(char *dst, ptrdiff_t dst_pitch, const char *src, ptrdiff_t src_pitch,
                                                  ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t item, int far)
{
    const ptrdiff_t n = 16 / item, cell = 64 / item, most = 64;
    /* The cache lines of such rows fall into the same few places of the first-level cache. */
    const int aliased = src_pitch % 1024 == 0;
    char lines[64 * 64];
    ptrdiff_t r, c, i, height, width;
    for (r = 0; r < rows; r += height) {
        height = rows - r < most ? rows - r : most;
        i = -height & (2 * n - 1);
        if (i <= r) r -= i, height += i;
        for (c = 0; c < columns; c += width) {
            const char *from;
            char *to;
            ptrdiff_t pitch = src_pitch, tiles = height / (2 * n);
            width = columns - c < cell ? columns - c : cell;
            i = -width & (n - 1);
            if (i <= c) c -= i, width += i;
            from = src + r * src_pitch + c * item;
            to = dst + c * dst_pitch + r * item;
            if (far && !aliased)
                for (i = 0; i < height; i++) TILECORE_PREFETCH(from + (i + most) * src_pitch);
            if (aliased && width == cell) {
                for (i = 0; i < height; i++) TILECORE_NAME(copy_short)(lines + 64 * i, from + i * src_pitch, 64);
                from = lines;
                pitch = 64;
            }
            TILECORE_NAME(turn_tiles)(to, dst_pitch, from, pitch, tiles, width / n, item);
            for (i = 0; i < width; i += n, to += n * dst_pitch, from += 16) {
                ptrdiff_t k = i + n <= width ? 2 * n * tiles : 0;
                for (; k < height; k += 2 * n)
                    TILECORE_NAME(turn_edge)(to + k * item, dst_pitch, from + k * pitch, pitch,
                                             height - k < 2 * n ? height - k : 2 * n,
                                             width - i < n ? width - i : n, item);
            }
        }
    }
}
