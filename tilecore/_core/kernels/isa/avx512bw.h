/* AVX-512 with byte masks: 64-byte vectors. 2017 and later (Intel Skylake servers, AMD Zen 4). Rows up to 32
 * bytes are AVX2's, for bytes are permuted by halves of 16 here too.
 */

#define TILECORE_NAME(name) tilecore_##name##_avx512bw
#define TILECORE_TARGETED TILECORE_TARGET("avx512f,avx512bw,bmi2")
#include "vectors64.h"

#include "copy.h"

#include "hold.h"

#include "join.h"

/* Rows above 64 bytes. Stores that cross a cache line cost double behind the first-level cache; in it they are
 * cheaper than joints, in rows as short as these. Of rows of whole half lines few stores of 32 bytes cross one. */
static const tilecore_row_kernel *TILECORE_NAME(choose_long)(const tilecore_rows *self)
{
    const ptrdiff_t row = self->row;
    const int half_lines = row % 32 == 0;
    if (row <= 96 ? half_lines || self->in_first_cache : row == 128) return &tilecore_hold_kernel_avx2;
    if (row <= 256 && (half_lines || (self->in_first_cache && row <= 192))) return &TILECORE_NAME(hold_kernel);
    return &TILECORE_NAME(join_kernel);
}

static const tilecore_row_kernel *TILECORE_NAME(choose)(const tilecore_rows *self, ptrdiff_t repeats, ptrdiff_t rows)
{
    if (self->row <= 64 && (repeats == 1 || rows * repeats > TILECORE_FEW))
        return tilecore_choose_avx2(self, repeats, rows);
    if (rows * repeats <= TILECORE_FEW) return &TILECORE_NAME(longer_kernel);
    return TILECORE_NAME(choose_long)(self);
}

static const tilecore_kernels tilecore_set_avx512bw = {
    "avx512bw",
    TILECORE_HAS_AVX512BW,
    TILECORE_NAME(copy),
    TILECORE_NAME(stream),
    TILECORE_NAME(stream_end),
    TILECORE_NAME(replicate),
    TILECORE_NAME(choose),
    {&tilecore_gather_kernel_avx2, &tilecore_expand_kernel_avx2, &tilecore_pattern_kernel_avx2,
     &tilecore_hold_kernel_avx2, &TILECORE_NAME(hold_kernel), &TILECORE_NAME(join_kernel),
     &TILECORE_NAME(longer_kernel), NULL},
};

#include "end.h"
