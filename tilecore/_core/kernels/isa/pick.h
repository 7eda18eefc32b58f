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
TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(pick_pieces)(char *dst, const char *src, ptrdiff_t step,
                                                                  ptrdiff_t count, ptrdiff_t item,
                                                                  uint8_t (*mask)[32], const int pieces)
{
    const ptrdiff_t half = 16 * step, items = 32 / item;
    const char *from = src - (step < 0 ? 16 * pieces - item : 0);
    ptrdiff_t i;
    int k;
    for (i = 0; i + items < count; i += items, from += 2 * half) {
        TILECORE_VECTOR v = TILECORE_SHUFFLE(TILECORE_LOAD_HALVES(from, from + half), TILECORE_LOAD(mask[0]));
        for (k = 1; k < pieces; k++)
            v = TILECORE_OR(v, TILECORE_SHUFFLE(TILECORE_LOAD_HALVES(from + 16 * k, from + half + 16 * k),
                                                TILECORE_LOAD(mask[k])));
        TILECORE_STORE(dst + i * item, v);
    }
    TILECORE_NAME(copy_items)(dst + i * item, item, src + i * step * item, step * item, count - i, item);
}

TILECORE_TARGETED static void TILECORE_NAME(pick)(char *dst, ptrdiff_t dst_pitch, const char *src, ptrdiff_t src_pitch,
                                                  ptrdiff_t rows, ptrdiff_t step, ptrdiff_t count, ptrdiff_t item)
{
    const int pieces = (int)(step < 0 ? -step : step);
    uint8_t mask[TILECORE_MOST_STEP][32];
    ptrdiff_t k, b;
    for (b = 0; b < 16; b++) {
        const ptrdiff_t at = b / item * step * item + b % item + (step < 0 ? 16 * pieces - item : 0);
        for (k = 0; k < pieces; k++)
            mask[k][b] = mask[k][b + 16] = (uint8_t)(at / 16 == k ? at % 16 : TILECORE_NO_BYTE);
    }
    for (; rows > 0; rows--, dst += dst_pitch, src += src_pitch) {
        switch (pieces) {
        case 1: TILECORE_NAME(pick_pieces)(dst, src, step, count, item, mask, 1); break;
        case 2: TILECORE_NAME(pick_pieces)(dst, src, step, count, item, mask, 2); break;
        case 3: TILECORE_NAME(pick_pieces)(dst, src, step, count, item, mask, 3); break;
        case 4: TILECORE_NAME(pick_pieces)(dst, src, step, count, item, mask, 4); break;
        default: TILECORE_NAME(pick_pieces)(dst, src, step, count, item, mask, pieces);
        }
    }
}

/* A period is so many vectors of the output after which the rows take turns as at first. */
TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(weave_rows)(char *dst, const char *src, ptrdiff_t pitch,
                                                                 ptrdiff_t count, ptrdiff_t item, const int rows)
{
    const int period = rows == 3 ? 3 : 1;
    const ptrdiff_t group = rows * item, items = 32 * period / group;
    uint8_t mask[3][4][32];
    ptrdiff_t low[3], high[3], i, k, b;
    int r;
    for (k = 0; k < period; k++) {
        low[k] = 32 * k / group * item;
        high[k] = (32 * k + 16) / group * item;
        for (b = 0; b < 32; b++) {
            const ptrdiff_t at = 32 * k + b, first = b < 16 ? low[k] : high[k];
            for (r = 0; r < rows; r++)
                mask[k][r][b] =
                    (uint8_t)(at / item % rows == r ? at / group * item - first + at % item : TILECORE_NO_BYTE);
        }
    }
    for (i = 0; (i + items) * item + 16 <= count * item; i += items) {
        const char *const from = src + i * item;
        for (k = 0; k < period; k++, dst += 32) {
            TILECORE_VECTOR v =
                TILECORE_SHUFFLE(TILECORE_LOAD_HALVES(from + low[k], from + high[k]), TILECORE_LOAD(mask[k][0]));
            for (r = 1; r < rows; r++) {
                const char *const row = from + r * pitch;
                v = TILECORE_OR(v, TILECORE_SHUFFLE(TILECORE_LOAD_HALVES(row + low[k], row + high[k]),
                                                    TILECORE_LOAD(mask[k][r])));
            }
            TILECORE_STORE(dst, v);
        }
    }
    for (r = 0; r < rows; r++)
        TILECORE_NAME(copy_items)(dst + r * item, group, src + r * pitch + i * item, item, count - i, item);
}

TILECORE_TARGETED static void TILECORE_NAME(weave)(char *dst, const char *src, ptrdiff_t pitch, ptrdiff_t rows,
                                                   ptrdiff_t count, ptrdiff_t item)
{
    if (rows == 2) TILECORE_NAME(weave_rows)(dst, src, pitch, count, item, 2);
    else if (rows == 3) TILECORE_NAME(weave_rows)(dst, src, pitch, count, item, 3);
    else TILECORE_NAME(weave_rows)(dst, src, pitch, count, item, 4);
}
