/* AVX-512 with permutations of bytes over a whole vector of 64. 2019 and later (Intel Ice Lake). */

#define TILECORE_NAME(name) tilecore_##name##_avx512vbmi
#define TILECORE_TARGETED TILECORE_TARGET("avx512f,avx512bw,avx512vbmi,bmi2")
#include "vectors64.h"
#include "permute.h"

static const tilecore_row_kernel *TILECORE_NAME(choose)(const tilecore_rows *self, ptrdiff_t repeats, ptrdiff_t rows)
{
    const ptrdiff_t row = self->row;
    const int apart = self->dst_pitch != self->span; /* no two spans share a vector */
    if (rows * repeats <= TILECORE_FEW)
        return tilecore_can_register_rows_avx512bw(self, repeats, rows) ? &tilecore_register_rows_kernel_avx512bw
                                                                        : &tilecore_copies_kernel_avx512bw;
    if (repeats == 1 && row < 128) { /* rows that lie apart */
        /* Words are moved as quickly one by one, where a vector would hold two of them. */
        const ptrdiff_t most = row <= 16 && row % 4 == 0 ? 2 : 1;
        if (rows >= 16 && row <= 64 && TILECORE_NAME(spread_rows)(self) > most) return &TILECORE_NAME(spread_kernel);
        return row > 16 ? &tilecore_register_rows_kernel_avx512bw : &tilecore_copies_kernel_avx512bw;
    }
    if (row >= 128 || (row > 64 && self->in_first_cache)) return tilecore_choose_long_avx512bw(self);
    if (self->in_first_cache && self->span >= 2 * TILECORE_DOUBLING_SPAN) return &tilecore_doubling_kernel_avx512bw;
    /* Up to 4 KB are written before the index of these rows pays; stores that are not aligned cost little there. */
    if (row > 32 && self->in_first_cache && rows * self->span <= 4096) return &tilecore_register_rows_kernel_avx512bw;
    if (TILECORE_NAME(can_permute)(self, repeats, rows)) return &TILECORE_NAME(permute_kernel);
    if (self->span <= 64) return &TILECORE_NAME(spread_kernel);
    /* Of words of one size the compiler makes whole vectors. */
    if ((apart ? 16 : 8) % row == 0) return &tilecore_copies_kernel_avx512bw;
    if (apart && row > 16 && row <= 64 && repeats <= 8) return &tilecore_register_rows_kernel_avx512bw;
    return &TILECORE_NAME(rotate_kernel);
}

TILECORE_SET(avx512vbmi, TILECORE_HAS_AVX512VBMI, avx512bw, avx2, TILECORE_BY_COLUMNS, &tilecore_copies_kernel_avx512bw,
             &tilecore_doubling_kernel_avx512bw, &TILECORE_NAME(permute_kernel), &TILECORE_NAME(rotate_kernel),
             &TILECORE_NAME(spread_kernel), &tilecore_register_rows_kernel_avx512bw, &tilecore_join_kernel_avx512bw);
#include "undef.h"
