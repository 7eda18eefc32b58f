/* Rows above 64 bytes in aligned stores alone, whatever their length: `join`, of AVX-512. */

/* The vector in which one copy of a row ends and the next begins is two loads, each of its own lanes:
 *
 *     copy j        ...aaaaaaaaaaaaaaaaaaaaaaa|
 *     copy j + 1                              |bbbbbbbbbbbbbbbbbbb...
 *     stores        ..][......aligned......aaabbbbbbbbbb][......aligned......
 */
TILECORE_TARGETED static void TILECORE_NAME(join_dense)(const tilecore_rows *self, char *dst, const char *src,
                                                        ptrdiff_t rows, ptrdiff_t repeats)
{
    const ptrdiff_t row = self->row, src_pitch = self->src_pitch;
    const ptrdiff_t shift = 64 - (ptrdiff_t)((uintptr_t)dst & 63);
    ptrdiff_t at = shift, copies = repeats; /* `at` of this copy's bytes are written */
    TILECORE_STORE(dst, TILECORE_LOAD(src));
    dst += shift;
    for (;;) {
        const char *next = src;
        for (; at <= row - 256; at += 256, dst += 256) TILECORE_FOUR(TILECORE_STORE, dst, src + at, 64);
        for (; at <= row - 64; at += 64, dst += 64) TILECORE_STORE(dst, TILECORE_LOAD(src + at));
        const ptrdiff_t left = row - at;
        if (--copies == 0) {
            if (--rows == 0) {
                TILECORE_STORE(dst + left - 64, TILECORE_LOAD(src + row - 64));
                return;
            }
            copies = repeats;
            next += src_pitch;
        }
        const __mmask64 lanes = TILECORE_LANES(left);
        TILECORE_STORE(dst, TILECORE_LOAD_INTO(TILECORE_LOAD_LANES(lanes, src + at), ~lanes, next - left));
        dst += 64;
        at = 64 - left;
        src = next;
    }
}

TILECORE_TARGETED static void TILECORE_NAME(join)(const tilecore_rows *self, char *dst, const char *src,
                                                  ptrdiff_t rows, ptrdiff_t repeats)
{
    if (rows == 1 || self->dst_pitch == self->row * repeats) {
        TILECORE_NAME(join_dense)(self, dst, src, rows, repeats);
        return;
    }
    for (; rows > 0; rows--, dst += self->dst_pitch, src += self->src_pitch)
        TILECORE_NAME(join_dense)(self, dst, src, 1, repeats);
}

static int TILECORE_NAME(can_join)(const tilecore_rows *self, ptrdiff_t repeats, ptrdiff_t rows)
{
    (void)repeats, (void)rows;
    return self->row > 64;
}

static const tilecore_row_kernel TILECORE_NAME(join_kernel) = {
    "join", TILECORE_NAME(join), TILECORE_NAME(can_join), NULL};
