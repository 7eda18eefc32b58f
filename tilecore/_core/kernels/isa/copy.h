/* Copies contiguous bytes of any length, and has the kernels made of such copies, `copies` and `doubling`. Every set
 * with kernels of its own includes this. For AVX2: tilecore_copy_avx2, tilecore_copy_short_avx2,
 * tilecore_replicate_avx2, tilecore_stream_avx2, tilecore_stream_end_avx2, tilecore_copies_avx2,
 * tilecore_doubling_avx2. */

/* Treats up to 64 bytes as two words that may overlap, the longest that fit. */
/* clang-format off */
#define TILECORE_BY_WORDS(n, action) \
    if ((n) >= 32) action(32) \
    else if ((n) >= 16) action(16) \
    else if ((n) >= 8) action(8) \
    else if ((n) >= 4) action(4) \
    else if ((n) >= 2) action(2) \
    else if ((n) >= 1) action(1)
/* clang-format on */

/* Copies 0 <= n <= 2 * TILECORE_WIDTH bytes. */
#define TILECORE_COPY(size) \
    { \
        char head[size], tail[size]; \
        memcpy(head, src, size), memcpy(tail, src + n - size, size); \
        memcpy(dst, head, size), memcpy(dst + n - size, tail, size); \
    }
TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(copy_short)(char *dst, const char *src, ptrdiff_t n)
{
    if (n >= TILECORE_WIDTH) {
        const TILECORE_VECTOR head = TILECORE_LOAD(src), tail = TILECORE_LOAD(src + n - TILECORE_WIDTH);
        TILECORE_STORE(dst, head);
        TILECORE_STORE(dst + n - TILECORE_WIDTH, tail);
        return;
    }
    TILECORE_BY_WORDS(n, TILECORE_COPY)
}
#undef TILECORE_COPY

/* Loads four vectors, and only then stores them. */
#define TILECORE_FOUR(store, dst, src, w) \
    do { \
        const TILECORE_VECTOR a = TILECORE_LOAD(src), b = TILECORE_LOAD((src) + w); \
        const TILECORE_VECTOR c = TILECORE_LOAD((src) + 2 * w), d = TILECORE_LOAD((src) + 3 * w); \
        store(dst, a), store((dst) + w, b), store((dst) + 2 * w, c), store((dst) + 3 * w, d); \
    } while (0)

/* This has loops instead of memcpy: a libc call costs as much as a short row, and some libc paths for medium sizes are
 * many times slower on unaligned destinations. */
TILECORE_TARGETED static void TILECORE_NAME(copy)(char *dst, const char *src, ptrdiff_t n)
{
    TILECORE_ASSERT(n >= 0 && (uintptr_t)dst - (uintptr_t)src >= (size_t)n &&
                    (uintptr_t)src - (uintptr_t)dst >= (size_t)n); /* apart */
    if (n <= 2 * TILECORE_WIDTH) {
        TILECORE_NAME(copy_short)(dst, src, n);
        return;
    }
    const ptrdiff_t w = TILECORE_WIDTH, shift = w - (ptrdiff_t)((uintptr_t)dst & (TILECORE_WIDTH - 1));
    const TILECORE_VECTOR head = TILECORE_LOAD(src), tail = TILECORE_LOAD(src + n - w);
    char *const last = dst + n - w;
    TILECORE_STORE(dst, head);
    dst += shift; /* aligned from here on */
    src += shift;
    for (; last - dst >= 3 * w; dst += 4 * w, src += 4 * w) TILECORE_FOUR(TILECORE_STORE, dst, src, w);
    for (; dst < last; dst += w, src += w) TILECORE_STORE(dst, TILECORE_LOAD(src));
    TILECORE_STORE(last, tail);
}

TILECORE_TARGETED static void TILECORE_NAME(replicate)(char *dst, ptrdiff_t bytes, ptrdiff_t count)
{
    const ptrdiff_t total = bytes * count;
    ptrdiff_t done = bytes, n;
    TILECORE_ASSERT(bytes > 0 && count > 0);
    /* Copies what is written so far, always whole blocks: as long as it is short, each copy doubles it. */
    for (; done < total; done += n) {
        n = done < TILECORE_DOUBLING_BYTES ? done : TILECORE_DOUBLING_BYTES / bytes * bytes;
        if (n == 0) n = bytes;
        if (n > total - done) n = total - done;
        TILECORE_NAME(copy)(dst + done, dst, n);
    }
}

#if defined(TILECORE_STREAM)
/* Whole cache lines bypass the cache. The ends of the range, in lines shared with neighbours, do not. Streaming stores
 * need an aligned dst: this function aligns it, so that callers need not. */
TILECORE_TARGETED static void TILECORE_NAME(stream)(char *dst, const char *src, ptrdiff_t n)
{
    const ptrdiff_t head = (ptrdiff_t)((0 - (uintptr_t)dst) & 63), w = TILECORE_WIDTH;
    const char *line;
    if (n < head + 64) {
        TILECORE_NAME(copy)(dst, src, n);
        return;
    }
    TILECORE_NAME(copy_short)(dst, src, head);
    dst += head;
    src += head;
    n -= head;
    TILECORE_ASSERT(((uintptr_t)dst & 63) == 0);
    for (; n >= 4 * w; n -= 4 * w, dst += 4 * w, src += 4 * w) TILECORE_FOUR(TILECORE_STREAM, dst, src, w);
    for (; n >= 64; n -= 64)
        for (line = dst + 64; dst < line; dst += w, src += w) TILECORE_STREAM(dst, TILECORE_LOAD(src));
    TILECORE_NAME(copy)(dst, src, n);
}
TILECORE_TARGETED static void TILECORE_NAME(stream_end)(void) { _mm_sfence(); }
#else
static void TILECORE_NAME(stream)(char *dst, const char *src, ptrdiff_t n) { TILECORE_NAME(copy)(dst, src, n); }
static void TILECORE_NAME(stream_end)(void) {}
#endif
#undef TILECORE_FOUR

TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(copies_of)(const tilecore_rows *self, char *dst, const char *src,
                                                                ptrdiff_t rows, ptrdiff_t repeats, size_t row)
{
    const ptrdiff_t src_pitch = self->src_pitch, dst_pitch = self->dst_pitch;
    ptrdiff_t i;
    if (repeats == 1) {
        for (; rows > 0; rows--, dst += dst_pitch, src += src_pitch) memcpy(dst, src, row);
    } else if (row <= 8 && repeats == 3) { /* the three colours of pixels that have a fourth */
        for (; rows > 0; rows--, dst += dst_pitch, src += src_pitch) {
            char item[8];
            memcpy(item, src, row);
            for (i = 0; i < 3; i++) memcpy(dst + i * (ptrdiff_t)row, item, row);
        }
    } else {
        for (; rows > 0; rows--, dst += dst_pitch, src += src_pitch)
            for (i = 0; i < repeats; i++) memcpy(dst + i * (ptrdiff_t)row, src, row);
    }
}

/* Writes each copy by itself. It moves items of strided input as words. */
TILECORE_TARGETED static void TILECORE_NAME(copies)(const tilecore_rows *self, char *dst, const char *src,
                                                    ptrdiff_t rows, ptrdiff_t repeats)
{
    ptrdiff_t i, j;
    switch (self->row) {
    case 1: TILECORE_NAME(copies_of)(self, dst, src, rows, repeats, 1); return;
    case 2: TILECORE_NAME(copies_of)(self, dst, src, rows, repeats, 2); return;
    case 3: TILECORE_NAME(copies_of)(self, dst, src, rows, repeats, 3); return;
    case 4: TILECORE_NAME(copies_of)(self, dst, src, rows, repeats, 4); return;
    case 6: TILECORE_NAME(copies_of)(self, dst, src, rows, repeats, 6); return;
    case 8: TILECORE_NAME(copies_of)(self, dst, src, rows, repeats, 8); return;
    case 12: TILECORE_NAME(copies_of)(self, dst, src, rows, repeats, 12); return;
    case 16: TILECORE_NAME(copies_of)(self, dst, src, rows, repeats, 16); return;
    default:
        for (i = 0; i < rows; i++, dst += self->dst_pitch, src += self->src_pitch)
            for (j = 0; j < repeats; j++) TILECORE_NAME(copy)(dst + j * self->row, src, self->row);
    }
}

static const tilecore_row_kernel TILECORE_KERNEL(copies) = {
    "copies" TILECORE_SUFFIX, TILECORE_NAME(copies), NULL, NULL};

#if TILECORE_WIDTH < 64 /* by 64 bytes other kernels are faster */
/* Writes the row once, and after it what is written so far, again and again. */
TILECORE_TARGETED static void TILECORE_NAME(doubling)(const tilecore_rows *self, char *dst, const char *src,
                                                      ptrdiff_t rows, ptrdiff_t repeats)
{
    for (; rows > 0; rows--, dst += self->dst_pitch, src += self->src_pitch) {
        TILECORE_NAME(copy)(dst, src, self->row);
        TILECORE_NAME(replicate)(dst, self->row, repeats);
    }
}

static const tilecore_row_kernel TILECORE_KERNEL(doubling) = {
    "doubling" TILECORE_SUFFIX, TILECORE_NAME(doubling), NULL, NULL};
#endif
