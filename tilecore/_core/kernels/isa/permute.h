/* Writes short rows by permutations of all bytes of a 64-byte vector: `permute` and `rotate`, by aligned stores alone,
 * and `spread`. avx512vbmi.h includes this: tilecore_permute_avx512vbmi, tilecore_rotate_avx512vbmi,
 * tilecore_spread_avx512vbmi, each with its prepare_.. and can_... */

/* Byte j is v's byte index[j] modulo 64. At the form without a mask g++ warns of its own header. */
#define TILECORE_PERMUTE(index, v) _mm512_maskz_permutexvar_epi8(~(__mmask64)0, index, v)

/* Returns x modulo m in every byte, for 0 < m < 256. */
TILECORE_INLINE TILECORE_TARGETED TILECORE_VECTOR TILECORE_NAME(modulo)(TILECORE_VECTOR x, unsigned m)
{
    unsigned part = m;
    while (part < 128) part *= 2;
    for (; part >= m; part /= 2) /* if x is less than `part`, the difference wraps round and is more than x */
        x = _mm512_min_epu8(x, _mm512_sub_epi8(x, _mm512_set1_epi8((char)part)));
    return x;
}

TILECORE_INLINE TILECORE_TARGETED TILECORE_VECTOR TILECORE_NAME(counted_from)(unsigned first)
{
    static const uint8_t count[64] = {
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
        22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
        44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    return _mm512_add_epi8(TILECORE_LOAD(count), _mm512_set1_epi8((char)first));
}

/* `rotate`, for spans from 64 bytes on, keeps the row in a register. Each store permutes it to begin where the one
 * before it ended. At a joint the next row fills the lanes that this one leaves. Spans lie together, or are one. */
#define TILECORE_ROTATED(at, row) TILECORE_PERMUTE(TILECORE_LOAD(index + (at)), row)
TILECORE_TARGETED static void TILECORE_NAME(rotate_dense)(const tilecore_rows *self, char *dst, const char *src,
                                                          ptrdiff_t rows, ptrdiff_t repeats)
{
    const ptrdiff_t row = self->row, span = row * repeats, step = 64 % row, step_back = step - row;
    const uint8_t *const index = self->u.index;
    const __mmask64 lanes = TILECORE_LANES(row);
    TILECORE_VECTOR v = TILECORE_LOAD_LANES(lanes, src), joint;
    ptrdiff_t left = span, at = 0, head = (ptrdiff_t)((0 - (uintptr_t)dst) & 63);
    if (head) {
        if (head > span) head = span; /* only of a single row */
        TILECORE_STORE_LANES(dst, TILECORE_LANES(head), TILECORE_ROTATED(0, v));
        dst += head;
        left -= head;
        at = index[head];
    }
    for (;;) {
        ptrdiff_t begin;
        for (; left >= 64; left -= 64, dst += 64) {
            /* The next load waits for `at`, so both candidates are computed at once. */
            const ptrdiff_t back = at + step_back;
            TILECORE_STORE(dst, TILECORE_ROTATED(at, v));
            at = back < 0 ? at + step : back;
        }
        joint = TILECORE_ROTATED(at, v);
        if (--rows == 0) break;
        src += self->src_pitch;
        v = TILECORE_LOAD_LANES(lanes, src);
        begin = row - index[left]; /* the next row's first byte comes to lane `left` */
        joint = _mm512_mask_blend_epi8(TILECORE_LANES(left), TILECORE_ROTATED(begin, v), joint);
        TILECORE_STORE(dst, joint);
        dst += 64;
        at = index[64 - left];
        left += span - 64;
    }
    TILECORE_STORE_LANES(dst, TILECORE_LANES(left), joint);
}

TILECORE_TARGETED static void TILECORE_NAME(rotate)(const tilecore_rows *self, char *dst, const char *src,
                                                    ptrdiff_t rows, ptrdiff_t repeats)
{
    const int dense = rows == 1 || self->dst_pitch == self->row * repeats;
    const ptrdiff_t together = dense ? rows : 1;
    TILECORE_ASSERT(self->row <= 64 && (rows == 1 || (self->row * repeats == self->span && self->span >= 64)));
    for (; rows > 0; rows -= together, dst += self->dst_pitch, src += self->src_pitch)
        TILECORE_NAME(rotate_dense)(self, dst, src, together, repeats);
}

static int TILECORE_NAME(can_rotate)(const tilecore_rows *self, ptrdiff_t rows)
{
    (void)rows;
    return self->row <= 64 && self->span >= 64;
}

/* index[k] = k modulo row, the source byte of output byte k. Loads of 64 bytes begin at 0 to row. */
TILECORE_TARGETED static void TILECORE_NAME(prepare_rotate)(tilecore_rows *self, ptrdiff_t rows)
{
    TILECORE_ASSERT(TILECORE_NAME(can_rotate)(self, rows));
    unsigned k;
    for (k = 0; k < self->row + 64; k += 64)
        TILECORE_STORE(self->u.index + k, TILECORE_NAME(modulo)(TILECORE_NAME(counted_from)(k), (unsigned)self->row));
}

/* `permute` writes rows that lie together: a vector has several of their short spans. Rows have up to 32 bytes, and two
 * copies or more, so all bytes of a vector come from the 64 bytes from its first row on. */
static int TILECORE_NAME(can_permute)(const tilecore_rows *self, ptrdiff_t rows)
{
    return self->row <= 32 && self->span > self->row && self->span <= TILECORE_INDEX_BYTES - 64 &&
           (rows == 1 || (self->src_pitch == self->row && self->dst_pitch == self->span));
}

/* Writes whole periods of `vectors` vectors, and returns how many vectors. Their permutations stay in registers, so
 * none waits for the place of the one before, as in permute_rest. `half`: a vector needs only 32 source bytes. */
TILECORE_INLINE TILECORE_TARGETED ptrdiff_t TILECORE_NAME(permute_periods)(
    const tilecore_rows *self, char *dst, const char *src, const char *src_end, ptrdiff_t at, ptrdiff_t left,
    const ptrdiff_t vectors, const int half)
{
    const ptrdiff_t row = self->row, span = self->span, step = 64 % span, advance = 64 / span * row;
    const ptrdiff_t period = 64 * vectors / span * row; /* of the source */
    TILECORE_VECTOR permutation[15], v;
    ptrdiff_t from[15], base = 0, n, i, k;
    TILECORE_UNROLL
    for (k = 0; k < vectors; k++) {
        permutation[k] = TILECORE_LOAD(self->u.index + at);
        from[k] = base;
        at += step;
        base += advance + (at >= span ? row : 0);
        at -= at >= span ? span : 0;
    }
    n = src_end - src - from[vectors - 1] < 64 ? 0 : (src_end - src - from[vectors - 1] - 64) / period + 1;
    if (n > left / (64 * vectors)) n = left / (64 * vectors);
    for (i = 0; i < n; i++, src += period) {
        TILECORE_UNROLL
        for (k = 0; k < vectors; k++, dst += 64) {
            v = half ? _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)(src + from[k])))
                     : TILECORE_LOAD(src + from[k]);
            TILECORE_STORE(dst, TILECORE_PERMUTE(permutation[k], v));
        }
    }
    return n * vectors;
}

#define TILECORE_PERIODS(part, vectors) \
    case part: \
        n = half ? TILECORE_NAME(permute_periods)(self, dst, src, src_end, at, left, vectors, 1) \
                 : TILECORE_NAME(permute_periods)(self, dst, src, src_end, at, left, vectors, 0); \
        break;

/* Writes the output's last `left` bytes, from `at` bytes into a span on. */
TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(permute_rest)(
    const tilecore_rows *self, char *dst, const char *src, const char *src_end, ptrdiff_t at, ptrdiff_t left)
{
    const ptrdiff_t row = self->row, span = self->span, step = 64 % span, advance = 64 / span * row;
    const uint8_t *const index = self->u.index;
    TILECORE_VECTOR v;
    /* As long as two rows and 64 source bytes follow, every store is whole, and no load passes the source's end. */
    if (src_end - src >= 64 + 2 * row) {
        const char *const stop = src_end - 64 - 2 * row;
        char *const start = dst;
        for (; src <= stop; dst += 64) {
            TILECORE_STORE(dst, TILECORE_PERMUTE(TILECORE_LOAD(index + at), TILECORE_LOAD(src)));
            at += step;
            src += advance;
            src += at >= span ? row : 0;
            at -= at >= span ? span : 0;
        }
        left -= dst - start;
    }
    for (; left > 0; left -= 64, dst += 64) { /* near the end of the source */
        v = TILECORE_LOAD_LANES(TILECORE_LANES(src_end - src < 64 ? src_end - src : 64), src);
        v = TILECORE_PERMUTE(TILECORE_LOAD(index + at), v);
        if (left >= 64) TILECORE_STORE(dst, v); /* a store by lanes is slow */
        else TILECORE_STORE_LANES(dst, TILECORE_LANES(left), v);
        at += step;
        src += advance;
        src += at >= span ? row : 0;
        at -= at >= span ? span : 0;
    }
}

TILECORE_TARGETED static void TILECORE_NAME(permute)(const tilecore_rows *self, char *dst, const char *src,
                                                     ptrdiff_t rows, ptrdiff_t repeats)
{
    const ptrdiff_t row = self->row, span = self->span;
    const char *const src_end = src + rows * row;
    /* The furthest source byte of any vector, counted from the start of its first row. */
    const ptrdiff_t past = (span + 62) % span, furthest = (span + 62) / span * row + (past < row ? past : row - 1);
    ptrdiff_t left = rows * row * repeats, at = 0, head = (ptrdiff_t)((0 - (uintptr_t)dst) & 63), n = 0;
    const int half = furthest < 32;
    TILECORE_VECTOR v;
    TILECORE_ASSERT(TILECORE_NAME(can_permute)(self, rows) && (rows == 1 || row * repeats == span) && furthest < 64);
    if (head) {
        if (head > left) head = left;
        v = TILECORE_LOAD_LANES(TILECORE_LANES(src_end - src < 64 ? src_end - src : 64), src);
        TILECORE_STORE_LANES(dst, TILECORE_LANES(head), TILECORE_PERMUTE(TILECORE_LOAD(self->u.index), v));
        dst += head;
        left -= head;
        at = head % span;
        src += head / span * row;
    }
    if (left >= 256) { /* the setup of permute_periods takes as long as some vectors */
        switch (span / (span & -span)) { /* the vectors of a period, for spans up to 192; of 128 it has two */
            TILECORE_PERIODS(1, 2) /* a loop of one vector is slow if its code crosses a cache line */
            TILECORE_PERIODS(3, 3)
            TILECORE_PERIODS(5, 5)
            TILECORE_PERIODS(7, 7)
            TILECORE_PERIODS(9, 9)
            TILECORE_PERIODS(11, 11)
            TILECORE_PERIODS(13, 13)
            TILECORE_PERIODS(15, 15)
        }
        dst += 64 * n;
        left -= 64 * n;
        src += 64 * n / span * row;
    }
    TILECORE_NAME(permute_rest)(self, dst, src, src_end, at, left);
}

/* index[k] is the source byte of output byte k, for k < span + 64. */
TILECORE_TARGETED static void TILECORE_NAME(prepare_permute)(tilecore_rows *self, ptrdiff_t rows)
{
    const unsigned row = (unsigned)self->row, span = (unsigned)self->span;
    TILECORE_ASSERT(TILECORE_NAME(can_permute)(self, rows));
    unsigned k, most = 1;
    while (span * most < 128) most *= 2;
    for (k = 0; k < span + 64; k += 64) {
        TILECORE_VECTOR x = TILECORE_NAME(counted_from)(k), first = _mm512_setzero_si512();
        unsigned n;
        for (n = most; n > 0; n /= 2) {
            const TILECORE_VECTOR spans = _mm512_set1_epi8((char)(span * n));
            const __mmask64 past = _mm512_cmpge_epu8_mask(x, spans);
            x = _mm512_mask_sub_epi8(x, past, x, spans);
            first = _mm512_mask_add_epi8(first, past, first, _mm512_set1_epi8((char)(row * n)));
        }
        x = _mm512_add_epi8(first, TILECORE_NAME(modulo)(x, row));
        TILECORE_STORE(self->u.index + k, x);
    }
}

/* `spread` writes short spans of rows that lie apart, in the source or in the output: by one load, one permutation and
 * one store, as many rows as fit 64 bytes of both. Load and store have only the lanes of the rows.
 *
 *     source   a..b..c..      lanes 0, 3, 6
 *     output   aa.bb.cc.      lanes 0, 1, 3, 4, 6, 7; index 00.33.66. */
TILECORE_INLINE ptrdiff_t TILECORE_NAME(spread_rows)(const tilecore_rows *self)
{
    const ptrdiff_t pitch = self->src_pitch < 0 ? -self->src_pitch : self->src_pitch;
    ptrdiff_t n = self->dst_pitch > 0 ? (64 - self->span) / self->dst_pitch : 0;
    if (n * pitch > 64 - self->row) n = (64 - self->row) / pitch;
    return n + 1;
}

TILECORE_TARGETED static void TILECORE_NAME(spread)(const tilecore_rows *self, char *dst, const char *src,
                                                    ptrdiff_t rows, ptrdiff_t repeats)
{
    const ptrdiff_t n = self->u.spread.rows, src_step = n * self->src_pitch, dst_step = n * self->dst_pitch;
    const ptrdiff_t back = self->src_pitch < 0 ? (n - 1) * self->src_pitch : 0; /* to the lowest address */
    const TILECORE_VECTOR index = TILECORE_LOAD(self->u.spread.index);
    __mmask64 from = self->u.spread.from, to = self->u.spread.to;
    TILECORE_ASSERT(n > 0 && self->span <= 64 && repeats * self->row <= self->span);
    for (; rows >= n && repeats * self->row == self->span; rows -= n, dst += dst_step, src += src_step)
        TILECORE_STORE_LANES(dst, to, TILECORE_PERMUTE(index, TILECORE_LOAD_LANES(from, src + back)));
    if (rows == 0) return;
    from &= back ? ~TILECORE_LANES((rows - n) * self->src_pitch)
                 : TILECORE_LANES((rows - 1) * self->src_pitch + self->row);
    to &= TILECORE_LANES((rows - 1) * self->dst_pitch + repeats * self->row);
    TILECORE_STORE_LANES(dst, to, TILECORE_PERMUTE(index, TILECORE_LOAD_LANES(from, src + back)));
}

static int TILECORE_NAME(can_spread)(const tilecore_rows *self, ptrdiff_t rows)
{
    (void)rows;
    return self->span <= 64;
}

static void TILECORE_NAME(prepare_spread)(tilecore_rows *self, ptrdiff_t rows)
{
    const ptrdiff_t n = TILECORE_NAME(spread_rows)(self), row = self->row;
    ptrdiff_t i, k, from = self->src_pitch < 0 ? (1 - n) * self->src_pitch : 0;
    TILECORE_ASSERT(TILECORE_NAME(can_spread)(self, rows));
    self->u.spread.rows = n;
    self->u.spread.from = self->u.spread.to = 0;
    for (i = 0; i < n; i++, from += self->src_pitch) {
        ptrdiff_t column = 0;
        self->u.spread.from |= (~(uint64_t)0 >> (64 - row)) << from;
        self->u.spread.to |= (~(uint64_t)0 >> (64 - self->span)) << i * self->dst_pitch;
        for (k = 0; k < self->span; k++) {
            self->u.spread.index[i * self->dst_pitch + k] = (uint8_t)(from + column);
            if (++column == row) column = 0;
        }
    }
}

static const tilecore_row_kernel TILECORE_KERNEL(spread) = {
    "spread", TILECORE_NAME(spread), TILECORE_NAME(can_spread), TILECORE_NAME(prepare_spread)};
static const tilecore_row_kernel TILECORE_KERNEL(rotate) = {
    "rotate", TILECORE_NAME(rotate), TILECORE_NAME(can_rotate), TILECORE_NAME(prepare_rotate)};
static const tilecore_row_kernel TILECORE_KERNEL(permute) = {
    "permute", TILECORE_NAME(permute), TILECORE_NAME(can_permute), TILECORE_NAME(prepare_permute)};
