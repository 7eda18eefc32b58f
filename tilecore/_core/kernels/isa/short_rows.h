/* `pattern` and `expand` write short rows, in vectors of 32 bytes that are shuffled by halves of 16. shuffle_set.h
 * includes this. For AVX2: tilecore_pattern_avx2, tilecore_expand_avx2. */

#if !defined(TILECORE_SHORT_ROWS) /* what sets share: bounds, and what is prepared */
#define TILECORE_SHORT_ROWS

enum {
    TILECORE_EXPAND_ROW = 16,       /* a shuffle takes from 16 source bytes */
    TILECORE_EXPAND_SPAN = 64,      /* the longest span of rows that are expanded */
    TILECORE_EXPAND_ROWS = 48,      /* masks pay from so many rows on, if these are 4 times a span's bytes */
    TILECORE_EXPAND_MORE = 4096,    /* masks of each vector after the second pay for so many bytes of output */
    TILECORE_PATTERN_ROW = 32
};

/* Whether `copies` writes rows up to 16 bytes more quickly than `pattern`: rows written once, and spans with gaps after
 * them. No store may run into a gap, so a pattern writes their ends slowly. */
static int tilecore_copies_pay(const tilecore_rows *self, ptrdiff_t repeats)
{
    const ptrdiff_t row = self->row;
    if (repeats > 1 && (self->dst_pitch == self->span || (row == 1 && repeats > 4))) return 0;
    return tilecore_has_size(self) && (row == 2 || row % 4 == 0 || self->span <= 48);
}

static int tilecore_can_pattern(const tilecore_rows *self, ptrdiff_t rows)
{
    (void)rows;
    return self->row <= TILECORE_PATTERN_ROW;
}

static int tilecore_can_expand(const tilecore_rows *self, ptrdiff_t rows)
{
    return rows >= TILECORE_EXPAND_ROWS && rows >= 4 * self->span && self->row <= TILECORE_EXPAND_ROW &&
           self->src_pitch == self->row && self->dst_pitch == self->span && self->span > self->row &&
           self->span <= TILECORE_EXPAND_SPAN;
}

/* Returns x / divisor, for 0 <= x < 32768 / divisor, in a way that compilers vectorise. */
TILECORE_INLINE uint16_t tilecore_divide(int x, ptrdiff_t divisor)
{
    const uint16_t inverse = (uint16_t)(32768 / (int)divisor + 1);
    return (uint16_t)((uint32_t)(uint16_t)(2 * x) * inverse >> 16);
}

/* Rows up to 16 bytes are loaded as two overlapping words, the longest that fit, into the two halves of 16 bytes;
 * longer ones as two overlapping halves of 32 bytes. */
static void tilecore_prepare_pattern(tilecore_rows *self, ptrdiff_t rows)
{
    const ptrdiff_t row = self->row;
    uint8_t word = row > 16 ? 16 : 8, gap;
    int j;
    TILECORE_ASSERT(tilecore_can_pattern(self, rows));
    (void)rows;
    while (word > row) word /= 2;
    gap = (uint8_t)((word == 16 ? 16 : 8 + word) - row);
    for (j = 0; j < 32; j++) {
        const uint8_t column = (uint8_t)(j - tilecore_divide(j, row) * (uint16_t)row);
        self->u.short_rows.pattern[j] = (uint8_t)(column < word ? column : column + gap);
    }
}

/* Returns how many vectors a period has: as many as waste the fewest bytes a vector. A period holds whole spans, and
 * the next one overwrites the unused end of its last vector. */
static int tilecore_expand_vectors(ptrdiff_t span, ptrdiff_t bytes)
{
    const ptrdiff_t most = 2 + bytes / TILECORE_EXPAND_MORE;
    int v, vectors = 1, least = 32;
    for (v = 1; v <= most && v <= TILECORE_EXPAND_VECTORS; v++) {
        const int wasted = 32 * v - tilecore_divide(32 * v, span) * (int)span;
        if (wasted * vectors < least * v) least = wasted, vectors = v;
    }
    return vectors;
}

/* Makes the masks and offsets of expand, by halves of 16 output bytes. Each half comes from at most 16 neighbouring
 * source bytes: the end of a row and the start of the next, or a single row if one of its copies ends in the half. */
static void tilecore_prepare_expand(tilecore_rows *self, ptrdiff_t rows)
{
    TILECORE_ASSERT(tilecore_can_expand(self, rows));
    const ptrdiff_t row = self->row, span = self->span;
    const int vectors = tilecore_expand_vectors(span, rows * span);
    uint16_t index[32 * TILECORE_EXPAND_VECTORS], k; /* the source byte of each output byte */
    int half, j;
    tilecore_prepare_pattern(self, rows); /* `pattern` writes what is not a whole period */
    for (k = 0; k < (uint16_t)(32 * vectors); k++)
        index[k] = (uint16_t)(k + (uint16_t)(tilecore_divide(k, span) - tilecore_divide(k, row)) * (uint16_t)row);
    self->u.short_rows.vectors = vectors;
    self->u.short_rows.period_rows = vectors * 32 / span;
    self->u.short_rows.reach = 0;
    TILECORE_ASSERT(vectors * 32 >= span && vectors * 32 / span * row < 256 - row);
    for (half = 0; half < 2 * vectors; half++) {
        const uint16_t *const from = index + 16 * half;
        const uint16_t copy = from[(row - 16 * half % (int)row) & 15]; /* where the next one begins */
        const uint16_t least = copy < from[0] ? copy : from[0];
        uint8_t *const mask = self->u.short_rows.mask[half / 2] + 16 * (half % 2);
        for (j = 0; j < 16; j++) mask[j] = (uint8_t)(from[j] - least);
        self->u.short_rows.offset[half / 2][half % 2] = least;
        if (least + 16 > self->u.short_rows.reach) self->u.short_rows.reach = least + 16;
    }
}
#endif

/* Returns a row up to 32 bytes, as often as it fits a register, from two words that may overlap. `word`, at most the
 * row, is fixed per call site. */
TILECORE_INLINE TILECORE_TARGETED TILECORE_VECTOR TILECORE_NAME(load_pattern)(const tilecore_rows *self,
                                                                              const char *src, int word)
{
    const TILECORE_VECTOR mask = TILECORE_LOAD(self->u.short_rows.pattern);
    const ptrdiff_t row = self->row;
    uint64_t low = 0, high = 0;
    if (word == 16) return TILECORE_SHUFFLE(TILECORE_LOAD_HALVES(src, src + row - 16), mask);
    memcpy(&low, src, (size_t)word);
    if (word > 1) memcpy(&high, src + row - word, (size_t)word);
    return TILECORE_SHUFFLE(TILECORE_WORDS(low, high, low, high), mask);
}

TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(pattern_word)(
    const tilecore_rows *self, char *dst, const char *src, ptrdiff_t rows, ptrdiff_t repeats, int word)
{
    const ptrdiff_t row = self->row, span = row * repeats, step = 32 / row * row;
    const ptrdiff_t dst_pitch = self->dst_pitch, src_pitch = self->src_pitch;
    /* A row's last store may run over its end, as long as later rows write those 31 bytes again. */
    const ptrdiff_t followed = dst_pitch == span ? rows - (31 + span - 1) / span : 0;
    ptrdiff_t i = 0;
    for (; i < followed; i++, src += src_pitch) {
        const TILECORE_VECTOR v = TILECORE_NAME(load_pattern)(self, src, word);
        char *const end = dst + span;
        for (; dst < end; dst += step) TILECORE_STORE(dst, v);
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
    TILECORE_ASSERT(row <= TILECORE_PATTERN_ROW);
    if (row > 16) TILECORE_NAME(pattern_word)(self, dst, src, rows, repeats, 16);
    else if (row >= 8) TILECORE_NAME(pattern_word)(self, dst, src, rows, repeats, 8);
    else if (row >= 4) TILECORE_NAME(pattern_word)(self, dst, src, rows, repeats, 4);
    else if (row >= 2) TILECORE_NAME(pattern_word)(self, dst, src, rows, repeats, 2);
    else TILECORE_NAME(pattern_word)(self, dst, src, rows, repeats, 1);
}

/* Writes whole periods. Their masks and offsets stay in registers. */
TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(expand_periods)(const tilecore_rows *self, char *dst,
                                                                     const char *src, ptrdiff_t periods,
                                                                     const int vectors)
{
    const ptrdiff_t advance = self->u.short_rows.period_rows * self->row;
    const ptrdiff_t dst_advance = self->u.short_rows.period_rows * self->span;
    TILECORE_VECTOR mask[TILECORE_EXPAND_VECTORS];
    ptrdiff_t low[TILECORE_EXPAND_VECTORS], high[TILECORE_EXPAND_VECTORS];
    int v;
    for (v = 0; v < vectors; v++) {
        mask[v] = TILECORE_LOAD(self->u.short_rows.mask[v]);
        low[v] = self->u.short_rows.offset[v][0];
        high[v] = self->u.short_rows.offset[v][1];
    }
    for (; periods > 0; periods--, src += advance, dst += dst_advance)
        for (v = 0; v < vectors; v++)
            TILECORE_STORE(dst + 32 * v, TILECORE_SHUFFLE(TILECORE_LOAD_HALVES(src + low[v], src + high[v]), mask[v]));
}

/* Needs what can_expand states, and the prepared repeats. Loads may pass the end of a row, but not of the last one. */
TILECORE_TARGETED static void TILECORE_NAME(expand)(const tilecore_rows *self, char *dst, const char *src,
                                                    ptrdiff_t rows, ptrdiff_t repeats)
{
    const ptrdiff_t row = self->row, span = self->span, period_rows = self->u.short_rows.period_rows;
    const ptrdiff_t bytes = 32 * self->u.short_rows.vectors;
    ptrdiff_t done = 0, periods, room;
    TILECORE_ASSERT(self->src_pitch == row && self->dst_pitch == span && row * repeats == span);
    /* `pattern` writes rows until the output is aligned; for some spans it never is. */
    if (period_rows * span == bytes)
        while (done < 32 && done < rows && ((uintptr_t)(dst + done * span) & 31)) done++;
    if (done == 32) done = 0;
    TILECORE_NAME(pattern)(self, dst, src, done, repeats);
    /* The last period reads no further than the source's end, and writes no further than the output's. */
    periods = rows * row - done * row - self->u.short_rows.reach;
    periods = periods < 0 ? 0 : periods / (period_rows * row) + 1;
    room = (rows - done) * span - bytes;
    room = room < 0 ? 0 : room / (period_rows * span) + 1;
    if (periods > room) periods = room;
    TILECORE_ASSERT(periods == 0 ||
                    ((periods - 1) * period_rows + done) * row + self->u.short_rows.reach <= rows * row);
    char *const d = dst + done * span;
    const char *const s = src + done * row;
    switch (self->u.short_rows.vectors) {
    case 1: TILECORE_NAME(expand_periods)(self, d, s, periods, 1); break;
    case 2: TILECORE_NAME(expand_periods)(self, d, s, periods, 2); break;
    case 3: TILECORE_NAME(expand_periods)(self, d, s, periods, 3); break;
    default: TILECORE_NAME(expand_periods)(self, d, s, periods, 4);
    }
    done += periods * period_rows;
    TILECORE_NAME(pattern)(self, dst + done * span, src + done * row, rows - done, repeats);
}

static const tilecore_row_kernel TILECORE_KERNEL(pattern) = {
    "pattern", TILECORE_NAME(pattern), tilecore_can_pattern, tilecore_prepare_pattern};
static const tilecore_row_kernel TILECORE_KERNEL(expand) = {
    "expand", TILECORE_NAME(expand), tilecore_can_expand, tilecore_prepare_expand};
