/* Short rows in vectors of 32 bytes that are shuffled by halves of 16: `pattern`, `expand`, of the sets up to AVX2. */

/* One row up to 32 bytes, as often as it fits, in one register: two words of it, that may overlap. `word`, at most the
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
    /* While 31 bytes follow that a later row will write again, a row may end with a store that
     * runs over its end. */
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
    if (row > 16) TILECORE_NAME(pattern_word)(self, dst, src, rows, repeats, 16);
    else if (row >= 8) TILECORE_NAME(pattern_word)(self, dst, src, rows, repeats, 8);
    else if (row >= 4) TILECORE_NAME(pattern_word)(self, dst, src, rows, repeats, 4);
    else if (row >= 2) TILECORE_NAME(pattern_word)(self, dst, src, rows, repeats, 2);
    else TILECORE_NAME(pattern_word)(self, dst, src, rows, repeats, 1);
}

/* Whole periods. With up to three vectors in one, all masks stay in registers. */
TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(expand_few)(const tilecore_rows *self, char *dst, const char *src,
                                                                 ptrdiff_t periods, const int vectors)
{
    const ptrdiff_t advance = self->u.short_rows.period_rows * self->row;
    const ptrdiff_t dst_advance = self->u.short_rows.period_rows * self->span;
    TILECORE_VECTOR mask[3];
    ptrdiff_t low[3], high[3];
    int v;
    for (v = 0; v < vectors; v++) {
        mask[v] = TILECORE_LOAD(self->u.short_rows.mask[v]);
        low[v] = self->u.short_rows.offset[v][0];
        high[v] = self->u.short_rows.offset[v][1];
    }
    for (; periods > 0; periods--, src += advance, dst += dst_advance) {
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
    const ptrdiff_t advance = self->u.short_rows.period_rows * self->row;
    const int vectors = self->u.short_rows.vectors;
    int v;
    for (; periods > 0; periods--, src += advance, dst += 32 * vectors) {
        for (v = 0; v < vectors; v++) {
            const uint16_t *const offset = self->u.short_rows.offset[v];
            const TILECORE_VECTOR x = TILECORE_LOAD_HALVES(src + offset[0], src + offset[1]);
            TILECORE_STORE(dst + 32 * v, TILECORE_SHUFFLE(x, TILECORE_LOAD(self->u.short_rows.mask[v])));
        }
    }
}

/* As can_expand states. Loads may pass the end of a row, and never that of the last one. */
TILECORE_TARGETED static void TILECORE_NAME(expand)(const tilecore_rows *self, char *dst, const char *src,
                                                    ptrdiff_t rows, ptrdiff_t repeats)
{
    const ptrdiff_t row = self->row, span = self->span, period_rows = self->u.short_rows.period_rows;
    const ptrdiff_t bytes = 32 * self->u.short_rows.vectors;
    ptrdiff_t done = 0, periods, room;
    /* Rows until the output is aligned; for some spans it never is. */
    if (period_rows * span == bytes)
        while (done < 32 && done < rows && ((uintptr_t)(dst + done * span) & 31)) done++;
    if (done == 32) done = 0;
    TILECORE_NAME(pattern)(self, dst, src, done, repeats);
    /* The last period is one that reads no further than the source's end, and writes no further than the output's. */
    periods = rows * row - done * row - self->u.short_rows.reach;
    periods = periods < 0 ? 0 : periods / (period_rows * row) + 1;
    room = (rows - done) * span - bytes;
    room = room < 0 ? 0 : room / (period_rows * span) + 1;
    if (periods > room) periods = room;
    char *const d = dst + done * span;
    const char *const s = src + done * row;
    switch (self->u.short_rows.vectors) {
    case 1: TILECORE_NAME(expand_few)(self, d, s, periods, 1); break;
    case 2: TILECORE_NAME(expand_few)(self, d, s, periods, 2); break;
    case 3: TILECORE_NAME(expand_few)(self, d, s, periods, 3); break;
    default: TILECORE_NAME(expand_many)(self, d, s, periods);
    }
    done += periods * period_rows;
    TILECORE_NAME(pattern)(self, dst + done * span, src + done * row, rows - done, repeats);
}

static const tilecore_row_kernel TILECORE_NAME(pattern_kernel) = {
    "pattern", TILECORE_NAME(pattern), tilecore_can_pattern, tilecore_prepare_pattern};
static const tilecore_row_kernel TILECORE_NAME(expand_kernel) = {
    "expand", TILECORE_NAME(expand), tilecore_can_expand, tilecore_prepare_expand};
