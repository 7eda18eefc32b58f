/* AVX-512 with permutations of bytes over a whole vector of 64. 2019 and later (Intel Ice Lake, AMD Zen 4). */

#define TILECORE_NAME(name) tilecore_##name##_avx512vbmi
#define TILECORE_TARGETED TILECORE_TARGET("avx512f,avx512bw,avx512vbmi,bmi2")
#include "vectors64.h"

#include "permute.h"

static const tilecore_row_kernel *TILECORE_NAME(choose)(const tilecore_rows *self, ptrdiff_t repeats, ptrdiff_t rows)
{
    if (repeats == 1 && self->row <= 32) {
        /* Of 16 bytes a load and a store each are quicker. */
        if (rows >= 16 && self->row != 16 && (self->row > 16 || TILECORE_NAME(spread_rows)(self) > 1))
            return &TILECORE_NAME(spread_kernel);
        return &tilecore_gather_kernel_avx2;
    }
    if (rows * repeats <= TILECORE_FEW) return &tilecore_longer_kernel_avx512bw;
    if (self->row > 128 || (self->row > 64 && (self->row % 32 == 0 || self->in_first_cache)))
        return tilecore_choose_long_avx512bw(self);
    /* Up to 4 KB are written before the index of these rows pays; stores that are not aligned cost little there. */
    if (self->row > 32 && self->in_first_cache && (self->row == 64 || rows * self->span <= 4096))
        return &tilecore_hold_kernel_avx2;
    if (TILECORE_NAME(can_permute)(self, repeats, rows)) return &TILECORE_NAME(permute_kernel);
    if (TILECORE_NAME(can_rotate)(self, repeats, rows)) return &TILECORE_NAME(rotate_kernel);
    return &TILECORE_NAME(spread_kernel);
}

static const tilecore_kernels tilecore_set_avx512vbmi = {
    "avx512vbmi",
    TILECORE_HAS_AVX512VBMI,
    tilecore_copy_avx512bw,
    tilecore_stream_avx512bw,
    tilecore_stream_end_avx512bw,
    tilecore_replicate_avx512bw,
    TILECORE_NAME(choose),
    {&tilecore_gather_kernel_avx2, &TILECORE_NAME(permute_kernel), &TILECORE_NAME(rotate_kernel),
     &TILECORE_NAME(spread_kernel), &tilecore_hold_kernel_avx2, &tilecore_hold_kernel_avx512bw,
     &tilecore_join_kernel_avx512bw, &tilecore_longer_kernel_avx512bw, NULL},
};

#include "end.h"
