/* `register_rows` (tilecore_register_rows_avx2) holds rows of up to eight vectors in registers. */

/* Writes a copy by `vectors` stores, the last of which overlaps the one before. The row is longer than `vectors` - 1
 * vectors, and at most `vectors` long. */
TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(register_vectors)(
    const tilecore_rows *self, char *dst, const char *src, ptrdiff_t rows, ptrdiff_t repeats, const int vectors)
{
    const ptrdiff_t row = self->row, w = TILECORE_WIDTH, last = row - w;
    const ptrdiff_t src_pitch = self->src_pitch, dst_pitch = self->dst_pitch;
    for (; rows > 0; rows--, dst += dst_pitch, src += src_pitch) {
        TILECORE_VECTOR v[7];
        const TILECORE_VECTOR z = TILECORE_LOAD(src + last);
        char *d = dst;
        ptrdiff_t i;
        int k;
        TILECORE_UNROLL
        for (k = 0; k < vectors - 1; k++) v[k] = TILECORE_LOAD(src + k * w);
        for (i = 0; i < repeats; i++, d += row) {
            TILECORE_UNROLL
            for (k = 0; k < vectors - 1; k++) TILECORE_STORE(d + k * w, v[k]);
            TILECORE_STORE(d + last, z);
        }
    }
}

#if TILECORE_WIDTH == 32
/* Writes rows up to 48 bytes by two or three halves: unaligned, a store of a vector takes two to three times as long,
 * and one of half a vector hardly longer. The row is longer than 16 bytes, and at most `halves` halves long. */
TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(register_halves)(
    const tilecore_rows *self, char *dst, const char *src, ptrdiff_t rows, ptrdiff_t repeats, const int halves)
{
    const ptrdiff_t row = self->row, last = row - 16, middle = halves > 2 ? 16 : 0;
    for (; rows > 0; rows--, dst += self->dst_pitch, src += self->src_pitch) {
        char a[16], b[16], z[16], *d = dst;
        ptrdiff_t i;
        memcpy(a, src, 16), memcpy(b, src + middle, 16), memcpy(z, src + last, 16);
        for (i = 0; i < repeats; i++, d += row) {
            memcpy(d, a, 16);
            if (halves > 2) memcpy(d + 16, b, 16);
            memcpy(d + last, z, 16);
        }
    }
}
#endif

TILECORE_TARGETED static void TILECORE_NAME(register_rows)(const tilecore_rows *self, char *dst, const char *src,
                                                           ptrdiff_t rows, ptrdiff_t repeats)
{
    const ptrdiff_t row = self->row;
    TILECORE_ASSERT(row > 16 && row <= TILECORE_REGISTERS_ROW);
#if TILECORE_WIDTH == 32
    if (row <= 32) {
        TILECORE_NAME(register_halves)(self, dst, src, rows, repeats, 2);
        return;
    }
    if (row <= 48) {
        TILECORE_NAME(register_halves)(self, dst, src, rows, repeats, 3);
        return;
    }
#else
    if (row <= 96) { /* three vectors of 32 bytes: two of 64 bytes would overlap by half */
        tilecore_register_rows_avx2(self, dst, src, rows, repeats);
        return;
    }
#endif
    switch ((row - 1) / TILECORE_WIDTH) {
    case 1: TILECORE_NAME(register_vectors)(self, dst, src, rows, repeats, 2); return;
    case 2: TILECORE_NAME(register_vectors)(self, dst, src, rows, repeats, 3); return;
    case 3: TILECORE_NAME(register_vectors)(self, dst, src, rows, repeats, 4); return;
    case 4: TILECORE_NAME(register_vectors)(self, dst, src, rows, repeats, 5); return;
    case 5: TILECORE_NAME(register_vectors)(self, dst, src, rows, repeats, 6); return;
    case 6: TILECORE_NAME(register_vectors)(self, dst, src, rows, repeats, 7); return;
    default: TILECORE_NAME(register_vectors)(self, dst, src, rows, repeats, 8);
    }
}

static int TILECORE_NAME(can_register_rows)(const tilecore_rows *self, ptrdiff_t rows)
{
    (void)rows;
    return self->row > 16 && self->row <= TILECORE_REGISTERS_ROW;
}

static const tilecore_row_kernel TILECORE_KERNEL(register_rows) = {
    "register_rows" TILECORE_SUFFIX, TILECORE_NAME(register_rows), TILECORE_NAME(can_register_rows), NULL};
