/* AVX-512 VBMI where a vector of 64 bytes is stored as two halves (AMD Zen 4): two vectors of 32 are stored as quickly,
 * and hardly slower where they cross cache lines. The kernels are those of other sets.
 */

static const tilecore_row_kernel *tilecore_choose_avx512half(const tilecore_rows *self, ptrdiff_t repeats,
                                                             ptrdiff_t rows)
{
    const ptrdiff_t row = self->row, span = self->span;
    const ptrdiff_t permuted = row > 16 && row <= 24 ? 192 : 128; /* the spans that `permute` writes as quickly */
    if (rows * repeats > TILECORE_FEW) {
        /* Rows of whole cache lines are copied in aligned vectors as they are. */
        if (row > 32 && span >= (row > 128 ? 1 : 2) * TILECORE_DOUBLING_SPAN && (row % 64 || self->in_first_cache))
            return &tilecore_doubling_kernel_avx2;
        /* More copies than these repay the permutations of `rotate`. */
        if (row > 32 && row <= 256 && (row < 128 ? repeats <= 8 : row % 32))
            return &tilecore_register_rows_kernel_avx512bw;
        if (row <= 32 && span > 64 && repeats <= (row > 16 ? 8 : 16) && !tilecore_is_word(self) &&
            !(span <= permuted && tilecore_can_permute_avx512vbmi(self, repeats, rows)))
            return tilecore_choose_avx2(self, repeats, rows);
    }
    return tilecore_choose_avx512vbmi(self, repeats, rows);
}

TILECORE_SET(avx512half, TILECORE_HAS_AVX512VBMI | TILECORE_HAS_HALVES, avx2, avx2, TILECORE_BY_TILES,
             &tilecore_copies_kernel_avx2, &tilecore_copies_kernel_avx512bw, &tilecore_doubling_kernel_avx2,
             &tilecore_doubling_kernel_avx512bw, &tilecore_expand_kernel_avx2, &tilecore_pattern_kernel_avx2,
             &tilecore_register_rows_kernel_avx2, &tilecore_register_rows_kernel_avx512bw,
             &tilecore_permute_kernel_avx512vbmi, &tilecore_rotate_kernel_avx512vbmi,
             &tilecore_spread_kernel_avx512vbmi, &tilecore_join_kernel_avx512bw);
