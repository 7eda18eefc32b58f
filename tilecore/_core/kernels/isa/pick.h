/* Items that lie at steps, and items of several rows in turn, by shuffles: `pick`, `weave`. A part of the sets that
 * shuffle 16 bytes; so there is no include guard.
 */

enum { TILECORE_NAME(none) = 0x80 }; /* a shuffle makes 0 of it */

/* dst[i * item] = src[i * step * item]. Each half of a vector of the output lies within `pieces` times 16 bytes of the
 * source, each of which is shuffled to where its items go. The bytes after the last item of a vector are read up to the
 * next item, so the last vector is left to `copies`. */
TILECORE_TARGETED static ptrdiff_t TILECORE_NAME(pick)(char *dst, const char *src, ptrdiff_t step, ptrdiff_t count,
                                                       ptrdiff_t item)
{
    const ptrdiff_t pieces = step < 0 ? -step : step, half = 16 * step, items = 32 / item;
    uint8_t mask[TILECORE_MOST_PIECES][32];
    TILECORE_VECTOR v;
    ptrdiff_t i, k, b;
    for (b = 0; b < 16; b++) {
        ptrdiff_t at = b / item * step * item + b % item;
        if (step < 0) at += 16 * pieces - item;
        for (k = 0; k < pieces; k++)
            mask[k][b] = mask[k][b + 16] = (uint8_t)(at / 16 == k ? at % 16 : TILECORE_NAME(none));
    }
    if (step < 0) src -= 16 * pieces - item;
    for (i = 0; i + items < count; i += items, src += 2 * half, dst += 32) {
        v = TILECORE_SHUFFLE(TILECORE_LOAD_HALVES(src, src + half), TILECORE_LOAD(mask[0]));
        for (k = 1; k < pieces; k++)
            v = TILECORE_OR(v, TILECORE_SHUFFLE(TILECORE_LOAD_HALVES(src + 16 * k, src + half + 16 * k),
                                                TILECORE_LOAD(mask[k])));
        TILECORE_STORE(dst, v);
    }
    return i;
}

/* dst[(i * rows + r) * item] = src[r * pitch + i * item], for up to 4 rows. After `period` vectors of the output, the
 * items lie again as in the first. Returns how many of each row were written, for the last are left to `copies`. */
TILECORE_TARGETED static ptrdiff_t TILECORE_NAME(weave)(char *dst, const char *src, ptrdiff_t pitch, ptrdiff_t rows,
                                                        ptrdiff_t count, ptrdiff_t item)
{
    const ptrdiff_t group = rows * item, period = rows == 3 ? 3 : 1, items = 32 * period / group;
    uint8_t mask[3][4][32];
    ptrdiff_t low[3], high[3], i, k, r, b;
    for (k = 0; k < period; k++) {
        low[k] = 32 * k / group * item;
        high[k] = (32 * k + 16) / group * item;
        for (b = 0; b < 32; b++) {
            const ptrdiff_t at = 32 * k + b, first = b < 16 ? low[k] : high[k];
            for (r = 0; r < rows; r++)
                mask[k][r][b] = (uint8_t)(at / item % rows == r ? at / group * item - first + at % item
                                                                : TILECORE_NAME(none));
        }
    }
    for (i = 0; (i + items) * item + 16 <= count * item; i += items, src += items * item) {
        for (k = 0; k < period; k++, dst += 32) {
            TILECORE_VECTOR v =
                TILECORE_SHUFFLE(TILECORE_LOAD_HALVES(src + low[k], src + high[k]), TILECORE_LOAD(mask[k][0]));
            for (r = 1; r < rows; r++) {
                const char *const row = src + r * pitch;
                v = TILECORE_OR(v, TILECORE_SHUFFLE(TILECORE_LOAD_HALVES(row + low[k], row + high[k]),
                                                    TILECORE_LOAD(mask[k][r])));
            }
            TILECORE_STORE(dst, v);
        }
    }
    return i;
}
