/* Items at steps, and the items of several rows in turn, by shuffles: `pick`, `weave`. A part of the sets that shuffle
 * 16 bytes; so there is no include guard.
 */

/* Items that are left, one by one. */
TILECORE_TARGETED static void TILECORE_NAME(copy_items)(char *dst, ptrdiff_t dst_pitch, const char *src,
                                                        ptrdiff_t src_pitch, ptrdiff_t count, ptrdiff_t item)
{
    tilecore_rows rows;
    rows.row = item;
    rows.src_pitch = src_pitch;
    rows.dst_pitch = dst_pitch;
    TILECORE_NAME(copies)(&rows, dst, src, count, 1);
}

/* Each half of a vector of the output lies within `pieces` times 16 bytes of the source; each of those is shuffled to
 * where its items go, the rest of it to 0. What is read ends where the next item does, so a last vector is left. */
TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(pick_pieces)(const tilecore_shuffles *self, char *dst,
                                                                  const char *src, ptrdiff_t count, const int pieces)
{
    const ptrdiff_t item = self->item, step = self->step, half = 16 * step, items = 32 / item;
    const char *from = src - (step < 0 ? 16 * pieces - item : 0);
    TILECORE_VECTOR mask[TILECORE_MOST_STEP];
    ptrdiff_t i;
    int k;
    for (k = 0; k < pieces; k++) mask[k] = TILECORE_LOAD(self->mask[k]);
    for (i = 0; i + items < count; i += items, from += 2 * half) {
        TILECORE_VECTOR v = TILECORE_SHUFFLE(TILECORE_LOAD_HALVES(from, from + half), mask[0]);
        for (k = 1; k < pieces; k++)
            v = TILECORE_OR(
                v, TILECORE_SHUFFLE(TILECORE_LOAD_HALVES(from + 16 * k, from + half + 16 * k), mask[k]));
        TILECORE_STORE(dst + i * item, v);
    }
    TILECORE_NAME(copy_items)(dst + i * item, item, src + i * step * item, step * item, count - i, item);
}

TILECORE_TARGETED static void TILECORE_NAME(pick)(const tilecore_shuffles *self, char *dst, ptrdiff_t dst_pitch,
                                                  const char *src, ptrdiff_t src_pitch, ptrdiff_t rows,
                                                  ptrdiff_t count)
{
    const int pieces = (int)(self->step < 0 ? -self->step : self->step);
    for (; rows > 0; rows--, dst += dst_pitch, src += src_pitch) {
        switch (pieces) {
        case 1: TILECORE_NAME(pick_pieces)(self, dst, src, count, 1); break;
        case 2: TILECORE_NAME(pick_pieces)(self, dst, src, count, 2); break;
        case 3: TILECORE_NAME(pick_pieces)(self, dst, src, count, 3); break;
        case 4: TILECORE_NAME(pick_pieces)(self, dst, src, count, 4); break;
        default: TILECORE_NAME(pick_pieces)(self, dst, src, count, pieces);
        }
    }
}

TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(weave_rows)(const tilecore_shuffles *self, char *dst,
                                                                 const char *src, ptrdiff_t pitch, ptrdiff_t count,
                                                                 const int rows)
{
    const int period = rows == 3 ? 3 : 1;
    const ptrdiff_t item = self->item, group = rows * item, items = 32 * period / group;
    ptrdiff_t i;
    int k, r;
    for (i = 0; (i + items) * item + 16 <= count * item; i += items) {
        const char *const from = src + i * item;
        for (k = 0; k < period; k++, dst += 32) {
            const ptrdiff_t low = self->low[k], high = self->high[k];
            TILECORE_VECTOR v =
                TILECORE_SHUFFLE(TILECORE_LOAD_HALVES(from + low, from + high), TILECORE_LOAD(self->mask[4 * k]));
            for (r = 1; r < rows; r++) {
                const char *const row = from + r * pitch;
                v = TILECORE_OR(v, TILECORE_SHUFFLE(TILECORE_LOAD_HALVES(row + low, row + high),
                                                    TILECORE_LOAD(self->mask[4 * k + r])));
            }
            TILECORE_STORE(dst, v);
        }
    }
    for (r = 0; r < rows; r++)
        TILECORE_NAME(copy_items)(dst + r * item, group, src + r * pitch + i * item, item, count - i, item);
}

TILECORE_TARGETED static void TILECORE_NAME(weave)(const tilecore_shuffles *self, char *dst, const char *src,
                                                   ptrdiff_t pitch, ptrdiff_t count)
{
    if (self->rows == 2) TILECORE_NAME(weave_rows)(self, dst, src, pitch, count, 2);
    else if (self->rows == 3) TILECORE_NAME(weave_rows)(self, dst, src, pitch, count, 3);
    else TILECORE_NAME(weave_rows)(self, dst, src, pitch, count, 4);
}
