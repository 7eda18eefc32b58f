/* AVX-512 with byte masks: 64-byte vectors. 2017 and later (Intel Skylake servers, AMD Zen 4). Rows up to 32
 * bytes are AVX2's, for bytes are permuted by halves of 16 here too. */

#define TILECORE_NAME(name) tilecore_##name##_avx512bw
#define TILECORE_TARGETED TILECORE_TARGET("avx512f,avx512bw,bmi2")
#include "vectors64.h"
#include "copy.h"
#include "hold.h"
#include "join.h"

/* Of words of one size the compiler makes whole vectors. */
static int tilecore_is_word(const tilecore_rows *self)
{
    return self->row <= 8 && (self->row & (self->row - 1)) == 0;
}

/* Rows above 64 bytes. Stores that cross a cache line cost double beyond the first-level cache; in it they are
 * cheaper than joints, in rows as short as these, and of rows of whole 16 bytes fewer cross one. */
static const tilecore_row_kernel *TILECORE_NAME(choose_long)(const tilecore_rows *self)
{
    const ptrdiff_t row = self->row;
    if (self->span >= TILECORE_DOUBLING_SPAN && (row < 192 || self->in_first_cache))
        return &TILECORE_NAME(doubling_kernel);
    if (self->in_first_cache ? row <= 256 : row <= 128 && row % 16 == 0) return &TILECORE_NAME(hold_kernel);
    return &TILECORE_NAME(join_kernel);
}

static const tilecore_row_kernel *TILECORE_NAME(choose)(const tilecore_rows *self, ptrdiff_t repeats, ptrdiff_t rows)
{
    const ptrdiff_t row = self->row;
    const int few = rows * repeats <= TILECORE_FEW;
    if (row <= 16 && (few || tilecore_copies_pay(self, repeats))) return &TILECORE_NAME(copies_kernel);
    if (few) return row <= 256 ? &TILECORE_NAME(hold_kernel) : &TILECORE_NAME(copies_kernel);
    if (row > 64) return TILECORE_NAME(choose_long)(self);
    if (tilecore_is_word(self) && self->span >= 128) return &TILECORE_NAME(copies_kernel);
    if (self->span >= TILECORE_DOUBLING_SPAN) return &TILECORE_NAME(doubling_kernel);
    if (row > 32 || (row > 16 && (repeats == 1 || self->dst_pitch != self->span))) return &TILECORE_NAME(hold_kernel);
    if (tilecore_expand_pays(self, repeats, rows)) return &tilecore_expand_kernel_avx2;
    return &tilecore_pattern_kernel_avx2;
}

TILECORE_SET(avx512bw, TILECORE_HAS_AVX512BW, avx512bw, avx2, TILECORE_BY_COLUMNS, &TILECORE_NAME(copies_kernel),
             &TILECORE_NAME(doubling_kernel), &tilecore_expand_kernel_avx2, &tilecore_pattern_kernel_avx2,
             &TILECORE_NAME(hold_kernel), &TILECORE_NAME(join_kernel));
#include "end.h"
