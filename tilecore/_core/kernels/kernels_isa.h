/* The kernels of one instruction set. kernels.h includes this file once per set, with
 * TILECORE_ISA (which one), TILECORE_NAME(x) (x with its suffix) and TILECORE_TARGETED (the
 * attribute that lets the compiler use it) defined; so there is no include guard.
 */

/* ---- vectors: 32 bytes, and what this instruction set can do with them */

#if TILECORE_ISA == TILECORE_ISA_AVX2
#define TILECORE_VECTOR __m256i
#define TILECORE_LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define TILECORE_STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define TILECORE_STREAM(p, v) _mm256_stream_si256((__m256i *)(void *)(p), v)
#define TILECORE_LOAD_HALVES(low, high) \
    _mm256_inserti128_si256( \
        _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(low))), \
        _mm_loadu_si128((const __m128i *)(const void *)(high)), 1)
#define TILECORE_WORDS(low, high) \
    _mm256_broadcastsi128_si256(_mm_set_epi64x((long long)(high), (long long)(low)))
#define TILECORE_SHUFFLE(v, mask) _mm256_shuffle_epi8(v, mask)
#define TILECORE_SHUFFLES 1
#define TILECORE_STREAMS 1
#else
#if TILECORE_ISA == TILECORE_ISA_SSSE3
#define TILECORE_HALF __m128i
#define TILECORE_LOAD_HALF(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define TILECORE_STORE_HALF(p, h) _mm_storeu_si128((__m128i *)(void *)(p), h)
#define TILECORE_STREAM_HALF(p, h) _mm_stream_si128((__m128i *)(void *)(p), h)
#define TILECORE_WORDS_HALF(low, high) _mm_set_epi64x((long long)(high), (long long)(low))
#define TILECORE_SHUFFLE_HALF(h, mask) _mm_shuffle_epi8(h, mask)
#define TILECORE_SHUFFLES 1
#define TILECORE_STREAMS 1
#elif TILECORE_ISA == TILECORE_ISA_ARM64
#define TILECORE_HALF uint8x16_t
#define TILECORE_LOAD_HALF(p) vld1q_u8((const uint8_t *)(const void *)(p))
#define TILECORE_STORE_HALF(p, h) vst1q_u8((uint8_t *)(void *)(p), h)
#define TILECORE_STREAM_HALF(p, h) TILECORE_STORE_HALF(p, h)
#define TILECORE_WORDS_HALF(low, high) \
    vcombine_u8(vcreate_u8((uint64_t)(low)), vcreate_u8((uint64_t)(high)))
#define TILECORE_SHUFFLE_HALF(h, mask) vqtbl1q_u8(h, mask)
#define TILECORE_SHUFFLES 1
#define TILECORE_STREAMS 0
#else
typedef struct {
    uint64_t word[2];
} tilecore_half;
#define TILECORE_HALF tilecore_half
TILECORE_INLINE TILECORE_HALF TILECORE_NAME(load_half)(const char *p)
{
    TILECORE_HALF h;
    memcpy(&h, p, 16);
    return h;
}
#define TILECORE_LOAD_HALF(p) TILECORE_NAME(load_half)((const char *)(p))
#define TILECORE_STORE_HALF(p, h) memcpy(p, &(h), 16)
#define TILECORE_STREAM_HALF(p, h) TILECORE_STORE_HALF(p, h)
#define TILECORE_SHUFFLES 0
#define TILECORE_STREAMS 0
#endif
typedef struct {
    TILECORE_HALF low, high;
} TILECORE_NAME(vector);
#define TILECORE_VECTOR TILECORE_NAME(vector)
TILECORE_INLINE TILECORE_TARGETED TILECORE_VECTOR TILECORE_NAME(load_halves)(const char *low, const char *high)
{
    TILECORE_VECTOR v;
    v.low = TILECORE_LOAD_HALF(low);
    v.high = TILECORE_LOAD_HALF(high);
    return v;
}
#define TILECORE_LOAD_HALVES(low, high) \
    TILECORE_NAME(load_halves)((const char *)(low), (const char *)(high))
#define TILECORE_LOAD(p) TILECORE_LOAD_HALVES(p, (const char *)(p) + 16)
#define TILECORE_STORE(p, v) (TILECORE_STORE_HALF(p, (v).low), TILECORE_STORE_HALF((char *)(p) + 16, (v).high))
#define TILECORE_STREAM(p, v) (TILECORE_STREAM_HALF(p, (v).low), TILECORE_STREAM_HALF((char *)(p) + 16, (v).high))
#if TILECORE_SHUFFLES
TILECORE_INLINE TILECORE_TARGETED TILECORE_VECTOR TILECORE_NAME(words)(uint64_t low, uint64_t high)
{
    TILECORE_VECTOR v;
    v.low = v.high = TILECORE_WORDS_HALF(low, high);
    return v;
}
TILECORE_INLINE TILECORE_TARGETED TILECORE_VECTOR TILECORE_NAME(shuffle)(TILECORE_VECTOR v, TILECORE_VECTOR mask)
{
    v.low = TILECORE_SHUFFLE_HALF(v.low, mask.low);
    v.high = TILECORE_SHUFFLE_HALF(v.high, mask.high);
    return v;
}
#define TILECORE_WORDS(low, high) TILECORE_NAME(words)(low, high)
#define TILECORE_SHUFFLE(v, mask) TILECORE_NAME(shuffle)(v, mask)
#endif
#endif

/* ---- copy, replicate, stream: contiguous bytes of any length */

/* Up to 64 bytes: two overlapping moves of the longest size that fits. */
TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(copy_short)(char *dst, const char *src, ptrdiff_t n)
{
    if (n >= 32) {
        const TILECORE_VECTOR head = TILECORE_LOAD(src), tail = TILECORE_LOAD(src + n - 32);
        TILECORE_STORE(dst, head);
        TILECORE_STORE(dst + n - 32, tail);
    } else if (n >= 16) {
        char head[16], tail[16];
        memcpy(head, src, 16), memcpy(tail, src + n - 16, 16);
        memcpy(dst, head, 16), memcpy(dst + n - 16, tail, 16);
    } else if (n >= 8) {
        uint64_t head, tail;
        memcpy(&head, src, 8), memcpy(&tail, src + n - 8, 8);
        memcpy(dst, &head, 8), memcpy(dst + n - 8, &tail, 8);
    } else if (n >= 4) {
        uint32_t head, tail;
        memcpy(&head, src, 4), memcpy(&tail, src + n - 4, 4);
        memcpy(dst, &head, 4), memcpy(dst + n - 4, &tail, 4);
    } else if (n >= 2) {
        uint16_t head, tail;
        memcpy(&head, src, 2), memcpy(&tail, src + n - 2, 2);
        memcpy(dst, &head, 2), memcpy(dst + n - 2, &tail, 2);
    } else if (n == 1) {
        *dst = *src;
    }
}

/* Own loops, not memcpy: a libc call costs as much as a short row, and some libc paths for
 * medium sizes are many times slower on unaligned destinations. */
TILECORE_TARGETED static void TILECORE_NAME(copy)(char *dst, const char *src, ptrdiff_t n)
{
    if (n <= 64) {
        TILECORE_NAME(copy_short)(dst, src, n);
        return;
    }
    {
        const TILECORE_VECTOR head = TILECORE_LOAD(src), tail = TILECORE_LOAD(src + n - 32);
        char *const last = dst + n - 32;
        const ptrdiff_t shift = 32 - (ptrdiff_t)((uintptr_t)dst & 31);
        TILECORE_STORE(dst, head);
        dst += shift; /* aligned from here on */
        src += shift;
        for (; last - dst >= 128 - 32; dst += 128, src += 128) {
            const TILECORE_VECTOR a = TILECORE_LOAD(src), b = TILECORE_LOAD(src + 32);
            const TILECORE_VECTOR c = TILECORE_LOAD(src + 64), d = TILECORE_LOAD(src + 96);
            TILECORE_STORE(dst, a);
            TILECORE_STORE(dst + 32, b);
            TILECORE_STORE(dst + 64, c);
            TILECORE_STORE(dst + 96, d);
        }
        for (; dst < last; dst += 32, src += 32) {
            const TILECORE_VECTOR a = TILECORE_LOAD(src);
            TILECORE_STORE(dst, a);
        }
        TILECORE_STORE(last, tail);
    }
}

TILECORE_TARGETED static void TILECORE_NAME(replicate)(char *dst, ptrdiff_t bytes, ptrdiff_t count)
{
    const ptrdiff_t total = bytes * count;
    ptrdiff_t done = bytes, n;
    /* Copies what is written so far, doubling while that is short; always whole blocks. */
    for (; done < total; done += n) {
        n = done < TILECORE_DOUBLING_BYTES ? done : TILECORE_DOUBLING_BYTES / bytes * bytes;
        if (n == 0) n = bytes;
        if (n > total - done) n = total - done;
        TILECORE_NAME(copy)(dst + done, dst, n);
    }
}

#if TILECORE_STREAMS
/* Whole cache lines bypass the cache; the ends of the range, shared with neighbours, do not. */
TILECORE_TARGETED static void TILECORE_NAME(stream)(char *dst, const char *src, ptrdiff_t n)
{
    const ptrdiff_t head = (ptrdiff_t)(-(uintptr_t)dst & 63);
    if (n < head + 128) {
        TILECORE_NAME(copy)(dst, src, n);
        return;
    }
    TILECORE_NAME(copy_short)(dst, src, head);
    dst += head;
    src += head;
    n -= head;
    for (; n >= 128; n -= 128, dst += 128, src += 128) {
        const TILECORE_VECTOR a = TILECORE_LOAD(src), b = TILECORE_LOAD(src + 32);
        const TILECORE_VECTOR c = TILECORE_LOAD(src + 64), d = TILECORE_LOAD(src + 96);
        TILECORE_STREAM(dst, a);
        TILECORE_STREAM(dst + 32, b);
        TILECORE_STREAM(dst + 64, c);
        TILECORE_STREAM(dst + 96, d);
    }
    TILECORE_NAME(copy)(dst, src, n);
}
TILECORE_TARGETED static void TILECORE_NAME(stream_end)(void) { _mm_sfence(); }
#endif

/* ---- rows */

/* Rows of any length. */
TILECORE_TARGETED static void TILECORE_NAME(longer)(const tilecore_rows *self, char *dst, const char *src,
                                                    ptrdiff_t rows, ptrdiff_t repeats)
{
    ptrdiff_t i, j;
    for (i = 0; i < rows; i++, dst += self->dst_pitch, src += self->src_pitch)
        for (j = 0; j < repeats; j++) TILECORE_NAME(copy)(dst + j * self->row, src, self->row);
}

/* Strided input, each row one item or a few that lie together; and, without shuffles, short rows. */
TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(gather_fixed)(const tilecore_rows *self, char *dst,
                                                                   const char *src, ptrdiff_t rows,
                                                                   ptrdiff_t repeats, size_t row)
{
    const ptrdiff_t src_pitch = self->src_pitch, dst_pitch = self->dst_pitch;
    ptrdiff_t i;
    if (repeats == 1) {
        for (; rows > 0; rows--, dst += dst_pitch, src += src_pitch) memcpy(dst, src, row);
    } else {
        for (; rows > 0; rows--, dst += dst_pitch, src += src_pitch)
            for (i = 0; i < repeats; i++) memcpy(dst + i * (ptrdiff_t)row, src, row);
    }
}

TILECORE_TARGETED static void TILECORE_NAME(gather)(const tilecore_rows *self, char *dst, const char *src,
                                                    ptrdiff_t rows, ptrdiff_t repeats)
{
    switch (self->row) {
    case 1: TILECORE_NAME(gather_fixed)(self, dst, src, rows, repeats, 1); return;
    case 2: TILECORE_NAME(gather_fixed)(self, dst, src, rows, repeats, 2); return;
    case 3: TILECORE_NAME(gather_fixed)(self, dst, src, rows, repeats, 3); return;
    case 4: TILECORE_NAME(gather_fixed)(self, dst, src, rows, repeats, 4); return;
    case 6: TILECORE_NAME(gather_fixed)(self, dst, src, rows, repeats, 6); return;
    case 8: TILECORE_NAME(gather_fixed)(self, dst, src, rows, repeats, 8); return;
    case 12: TILECORE_NAME(gather_fixed)(self, dst, src, rows, repeats, 12); return;
    case 16: TILECORE_NAME(gather_fixed)(self, dst, src, rows, repeats, 16); return;
    default: TILECORE_NAME(longer)(self, dst, src, rows, repeats);
    }
}

/* One row up to 32 bytes, as often as it fits, in one register. `word` is fixed per call site. */
TILECORE_INLINE TILECORE_TARGETED TILECORE_VECTOR TILECORE_NAME(load_pattern)(const tilecore_rows *self,
                                                                              const char *src, int word)
{
#if TILECORE_SHUFFLES
    const TILECORE_VECTOR mask = TILECORE_LOAD(self->pattern_mask);
    const ptrdiff_t row = self->row;
    if (word == 16) return TILECORE_SHUFFLE(TILECORE_LOAD_HALVES(src, src + row - 16), mask);
    if (word == 8) {
        uint64_t low, high;
        memcpy(&low, src, 8), memcpy(&high, src + row - 8, 8);
        return TILECORE_SHUFFLE(TILECORE_WORDS(low, high), mask);
    }
    if (word == 4) {
        uint32_t low, high;
        memcpy(&low, src, 4), memcpy(&high, src + row - 4, 4);
        return TILECORE_SHUFFLE(TILECORE_WORDS(low, high), mask);
    }
    if (word == 2) {
        uint16_t low, high;
        memcpy(&low, src, 2), memcpy(&high, src + row - 2, 2);
        return TILECORE_SHUFFLE(TILECORE_WORDS(low, high), mask);
    }
    return TILECORE_SHUFFLE(TILECORE_WORDS((uint8_t)*src, 0), mask);
#else
    char buffer[64];
    ptrdiff_t filled = self->row;
    (void)word;
    TILECORE_NAME(copy_short)(buffer, src, filled);
    for (; filled < 32; filled *= 2) memcpy(buffer + filled, buffer, (size_t)filled);
    return TILECORE_LOAD(buffer);
#endif
}

TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(pattern_word)(const tilecore_rows *self, char *dst,
                                                                   const char *src, ptrdiff_t rows,
                                                                   ptrdiff_t repeats, int word)
{
    const ptrdiff_t span = self->row * repeats, step = 32 / self->row * self->row;
    const ptrdiff_t dst_pitch = self->dst_pitch, src_pitch = self->src_pitch;
    /* While 31 bytes follow that a later row will write again, a row may end with a store that
     * runs over its end. */
    const ptrdiff_t followed = dst_pitch == span ? rows - (31 + span - 1) / span : 0;
    ptrdiff_t i = 0;
    for (; i < followed; i++, src += src_pitch) {
        const TILECORE_VECTOR v = TILECORE_NAME(load_pattern)(self, src, word);
        char *const end = dst + span;
        do {
            TILECORE_STORE(dst, v);
            dst += step;
        } while (dst < end);
        dst = end;
    }
    for (; i < rows; i++, src += src_pitch, dst += dst_pitch) {
        const TILECORE_VECTOR v = TILECORE_NAME(load_pattern)(self, src, word);
        char buffer[32], *d = dst;
        ptrdiff_t left = span;
        for (; left >= 32; left -= step, d += step) TILECORE_STORE(d, v);
        TILECORE_STORE(buffer, v);
        TILECORE_NAME(copy_short)(d, buffer, left);
    }
}

TILECORE_TARGETED static void TILECORE_NAME(pattern)(const tilecore_rows *self, char *dst, const char *src,
                                                     ptrdiff_t rows, ptrdiff_t repeats)
{
    const ptrdiff_t row = self->row;
    if (row > 16) TILECORE_NAME(pattern_word)(self, dst, src, rows, repeats, 16);
    else if (row >= 8) TILECORE_NAME(pattern_word)(self, dst, src, rows, repeats, 8);
    else if (row >= 4) TILECORE_NAME(pattern_word)(self, dst, src, rows, repeats, 4);
    else if (row >= 2) TILECORE_NAME(pattern_word)(self, dst, src, rows, repeats, 2);
    else TILECORE_NAME(pattern_word)(self, dst, src, rows, repeats, 1);
}

/* Rows of 33 to 128 bytes, held in registers over all repeats; the last store overlaps. */
TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(hold_vectors)(const tilecore_rows *self, char *dst,
                                                                   const char *src, ptrdiff_t rows,
                                                                   ptrdiff_t repeats, const int vectors)
{
    const ptrdiff_t row = self->row, last = row - 32;
    const ptrdiff_t src_pitch = self->src_pitch, dst_pitch = self->dst_pitch;
    for (; rows > 0; rows--, dst += dst_pitch, src += src_pitch) {
        const TILECORE_VECTOR a = TILECORE_LOAD(src), z = TILECORE_LOAD(src + last);
        const TILECORE_VECTOR b = TILECORE_LOAD(src + (vectors > 2 ? 32 : 0));
        const TILECORE_VECTOR c = TILECORE_LOAD(src + (vectors > 3 ? 64 : 0));
        char *d = dst;
        ptrdiff_t i;
        for (i = 0; i < repeats; i++, d += row) {
            TILECORE_STORE(d, a);
            if (vectors > 2) TILECORE_STORE(d + 32, b);
            if (vectors > 3) TILECORE_STORE(d + 64, c);
            TILECORE_STORE(d + last, z);
        }
    }
}

/* Up to 48 bytes three halves do: a vector store that is not aligned takes two to three times as long
 * as one that is, half a vector hardly longer. */
TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(hold_halves)(const tilecore_rows *self, char *dst,
                                                                  const char *src, ptrdiff_t rows,
                                                                  ptrdiff_t repeats)
{
    const ptrdiff_t row = self->row, last = row - 16;
    for (; rows > 0; rows--, dst += self->dst_pitch, src += self->src_pitch) {
        char a[16], b[16], z[16], *d = dst;
        ptrdiff_t i;
        memcpy(a, src, 16), memcpy(b, src + 16, 16), memcpy(z, src + last, 16);
        for (i = 0; i < repeats; i++, d += row)
            memcpy(d, a, 16), memcpy(d + 16, b, 16), memcpy(d + last, z, 16);
    }
}

TILECORE_TARGETED static void TILECORE_NAME(hold)(const tilecore_rows *self, char *dst, const char *src,
                                                  ptrdiff_t rows, ptrdiff_t repeats)
{
    if (self->row <= 48 && self->row % 8 != 0) TILECORE_NAME(hold_halves)(self, dst, src, rows, repeats);
    else if (self->row <= 64) TILECORE_NAME(hold_vectors)(self, dst, src, rows, repeats, 2);
    else if (self->row <= 96) TILECORE_NAME(hold_vectors)(self, dst, src, rows, repeats, 3);
    else TILECORE_NAME(hold_vectors)(self, dst, src, rows, repeats, 4);
}

#if TILECORE_SHUFFLES
/* Whole periods of aligned stores. With up to three vectors in one, all masks stay in registers. */
TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(expand_few)(const tilecore_rows *self, char *dst, const char *src,
                                                                 ptrdiff_t periods, const int vectors)
{
    const ptrdiff_t advance = self->period_rows * self->row;
    TILECORE_VECTOR mask[3];
    ptrdiff_t low[3], high[3];
    int v;
    for (v = 0; v < vectors; v++) {
        mask[v] = TILECORE_LOAD(self->mask[v]);
        low[v] = self->offset[v][0];
        high[v] = self->offset[v][1];
    }
    for (; periods > 0; periods--, src += advance, dst += 32 * vectors) {
        for (v = 0; v < vectors; v++) {
            const TILECORE_VECTOR x = TILECORE_LOAD_HALVES(src + low[v], src + high[v]);
            TILECORE_STORE(dst + 32 * v, TILECORE_SHUFFLE(x, mask[v]));
        }
    }
}

/* With more, they are loaded each time; the offsets of two vectors at once. */
TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(expand_many)(const tilecore_rows *self, char *dst, const char *src,
                                                                  ptrdiff_t periods)
{
    const ptrdiff_t advance = self->period_rows * self->row;
    const int vectors = self->vectors;
    int v;
    for (; periods > 0; periods--, src += advance, dst += 32 * vectors) {
        for (v = 0; v + 1 < vectors; v += 2) {
            uint64_t offset;
            memcpy(&offset, self->offset[v], 8);
            {
                const TILECORE_VECTOR x = TILECORE_LOAD_HALVES(src + TILECORE_OFFSET(offset, 0),
                                                               src + TILECORE_OFFSET(offset, 1));
                const TILECORE_VECTOR y = TILECORE_LOAD_HALVES(src + TILECORE_OFFSET(offset, 2),
                                                               src + TILECORE_OFFSET(offset, 3));
                TILECORE_STORE(dst + 32 * v, TILECORE_SHUFFLE(x, TILECORE_LOAD(self->mask[v])));
                TILECORE_STORE(dst + 32 * v + 32, TILECORE_SHUFFLE(y, TILECORE_LOAD(self->mask[v + 1])));
            }
        }
        if (v < vectors) {
            const uint16_t *const offset = self->offset[v];
            const TILECORE_VECTOR x = TILECORE_LOAD_HALVES(src + offset[0], src + offset[1]);
            TILECORE_STORE(dst + 32 * v, TILECORE_SHUFFLE(x, TILECORE_LOAD(self->mask[v])));
        }
    }
}

TILECORE_TARGETED static void TILECORE_NAME(expand)(const tilecore_rows *self, char *dst, const char *src,
                                                    ptrdiff_t rows, ptrdiff_t repeats)
{
    const ptrdiff_t row = self->row, span = self->span, advance = self->period_rows * row;
    ptrdiff_t done, periods;
    /* Rows until the output is aligned; for some spans it never is. */
    for (done = 0; done < 32 && done < rows && ((uintptr_t)(dst + done * span) & 31); done++) {}
    if (done == 32) done = 0;
    TILECORE_NAME(pattern)(self, dst, src, done, repeats);
    /* The last period is one that reads no further than the source's end. */
    periods = rows * row - done * row - self->reach;
    periods = periods < 0 ? 0 : periods / advance + 1;
    if (periods * self->period_rows > rows - done) periods = (rows - done) / self->period_rows;
    {
        char *const d = dst + done * span;
        const char *const s = src + done * row;
        switch (self->vectors) {
        case 1: TILECORE_NAME(expand_few)(self, d, s, periods, 1); break;
        case 2: TILECORE_NAME(expand_few)(self, d, s, periods, 2); break;
        case 3: TILECORE_NAME(expand_few)(self, d, s, periods, 3); break;
        default: TILECORE_NAME(expand_many)(self, d, s, periods);
        }
    }
    done += periods * self->period_rows;
    TILECORE_NAME(pattern)(self, dst + done * span, src + done * row, rows - done, repeats);
}
#endif

#if !TILECORE_STREAMS
static void TILECORE_NAME(stream_end)(void) {}
#endif

static const tilecore_kernels TILECORE_NAME(kernels) = {
#if TILECORE_ISA == TILECORE_ISA_AVX2
    "avx2",
#elif TILECORE_ISA == TILECORE_ISA_SSSE3
    "ssse3",
#elif TILECORE_ISA == TILECORE_ISA_ARM64
    "arm64",
#else
    "scalar",
#endif
    TILECORE_NAME(copy),
#if TILECORE_STREAMS
    TILECORE_NAME(stream),
#else
    TILECORE_NAME(copy),
#endif
    TILECORE_NAME(stream_end),
    TILECORE_NAME(replicate),
    TILECORE_NAME(gather),
#if TILECORE_SHUFFLES
    TILECORE_NAME(expand),
#else
    NULL,
#endif
    TILECORE_NAME(pattern),
    TILECORE_NAME(hold),
    TILECORE_NAME(longer),
};

#undef TILECORE_VECTOR
#undef TILECORE_HALF
#undef TILECORE_LOAD
#undef TILECORE_STORE
#undef TILECORE_STREAM
#undef TILECORE_LOAD_HALVES
#undef TILECORE_LOAD_HALF
#undef TILECORE_STORE_HALF
#undef TILECORE_STREAM_HALF
#undef TILECORE_WORDS
#undef TILECORE_WORDS_HALF
#undef TILECORE_SHUFFLE
#undef TILECORE_SHUFFLE_HALF
#undef TILECORE_SHUFFLES
#undef TILECORE_STREAMS
#undef TILECORE_ISA
#undef TILECORE_NAME
#undef TILECORE_TARGETED
