/* AVX-512 with byte masks: 64-byte vectors. 2017 and later (Intel Skylake servers, AMD Zen 4). Rows up to 64
 * bytes are AVX2's, for bytes are permuted by halves of 16 here too. */

#define TILECORE_NAME(name) tilecore_##name##_avx512bw
#define TILECORE_TARGETED TILECORE_TARGET("avx512f,avx512bw,bmi2")
#include "vectors64.h"
#include "copy.h"
#include "register_rows.h"
#include "join.h"

/* Rows above 64 bytes. Stores that cross a cache line cost double beyond the first-level cache; in it they are
 * cheaper than joints, in rows as short as these, and of rows of whole 16 bytes fewer cross one. */
static const tilecore_row_kernel *TILECORE_NAME(choose_long)(const tilecore_rows *self)
{
    const ptrdiff_t row = self->row;
    if (self->span >= TILECORE_DOUBLING_SPAN && (row < 192 || self->in_first_cache))
        return &TILECORE_NAME(doubling_kernel);
    if (self->in_first_cache ? row <= 256 : row <= 128 && row % 16 == 0) return &TILECORE_NAME(register_rows_kernel);
    return &TILECORE_NAME(join_kernel);
}

static const tilecore_row_kernel *TILECORE_NAME(choose)(const tilecore_rows *self, ptrdiff_t repeats, ptrdiff_t rows)
{
    if (self->row > 64 && rows * repeats > TILECORE_FEW) return TILECORE_NAME(choose_long)(self);
    return tilecore_choose_avx2(self, repeats, rows);
}

TILECORE_SET(avx512bw, TILECORE_HAS_AVX512BW, avx512bw, avx2, TILECORE_BY_COLUMNS, &tilecore_copies_kernel_avx2,
             &tilecore_doubling_kernel_avx2, &TILECORE_NAME(doubling_kernel), &tilecore_expand_kernel_avx2,
             &tilecore_pattern_kernel_avx2, &tilecore_register_rows_kernel_avx2, &TILECORE_NAME(register_rows_kernel),
             &TILECORE_NAME(join_kernel));
#include "undef.h"
