/* A set for AVX-512 VBMI on AMD's processors (Zen 4 and later), of other sets' kernels. These processors store vectors
 * that cross cache lines nearly as quickly as aligned ones, so rows above 32 bytes are stored as they are. */

static const tilecore_row_kernel *tilecore_choose_avx512amd(const tilecore_rows *self, ptrdiff_t repeats,
                                                            ptrdiff_t rows)
{
    const ptrdiff_t row = self->row, span = self->span;
    /* Up to this span `permute` is as quick as `pattern`: spans of whole 16 bytes have short periods. */
    const ptrdiff_t permuted = (row >= 12 && row <= 24) || span % 16 == 0 ? 192 : 128;
    if (row > 32)
        return tilecore_can_register_rows_avx512vbmi(self, rows) ? &tilecore_register_rows_kernel_avx512vbmi
                                                                 : &tilecore_copies_kernel_avx512vbmi;
    if (rows * repeats > TILECORE_FEW && span > 64 && span < 1024 && 8 % row != 0 &&
        !(span <= permuted && tilecore_can_permute_avx512vbmi(self, rows)))
        return tilecore_choose_avx2(self, repeats, rows);
    if (rows * repeats > TILECORE_FEW && span > 192 && 8 % row == 0)
        return &tilecore_copies_kernel_avx512vbmi; /* words */
    return tilecore_choose_permutation(self, repeats, rows, 3);
}

#define tilecore_row_kernels_avx512amd tilecore_row_kernels_avx512vbmi
TILECORE_SET(avx512amd, avx512vbmi, avx2, avx512amd, TILECORE_HAS_AVX512VBMI | TILECORE_IS_AMD, TILECORE_BY_TILES,
             &tilecore_set_avx2);
