/* What the sets that shuffle 16 bytes share: SSSE3, AVX2, NEON. */

#include "copy.h"
#include "register_rows.h"
#include "small.h"
#include "short_rows.h"
#include "transpose.h"
#include "deinterleave.h"

static const tilecore_row_kernel *const TILECORE_NAME(rows)[] = {
    &TILECORE_NAME(copies_kernel), &TILECORE_NAME(doubling_kernel), &TILECORE_NAME(expand_kernel),
    &TILECORE_NAME(pattern_kernel), &TILECORE_NAME(register_rows_kernel), NULL};

static const tilecore_row_kernel *TILECORE_NAME(choose)(const tilecore_rows *self, ptrdiff_t repeats, ptrdiff_t rows)
{
    const ptrdiff_t row = self->row;
    const int few = rows * repeats <= TILECORE_FEW;
    if (row <= 16 && (few || tilecore_copies_pay(self, repeats))) return &TILECORE_NAME(copies_kernel);
    if (few) return row > TILECORE_REGISTERS_ROW ? &TILECORE_NAME(copies_kernel) : &TILECORE_NAME(register_rows_kernel);
    if (tilecore_expand_pays(self, repeats, rows)) return &TILECORE_NAME(expand_kernel);
    /* Two moves of a word take less than a pattern stored by halves, where rows lie apart. */
    if (TILECORE_STORE_WIDTH < 32 && repeats == 2 && 16 % row == 0) return &TILECORE_NAME(copies_kernel);
    /* Of stores of 32 bytes every second one crosses a cache line: aligned ones soon beat them. Of 16 bytes few do. */
    if (row > TILECORE_REGISTERS_ROW ? repeats > 1 : TILECORE_STORE_WIDTH == 32 && self->span >= TILECORE_DOUBLING_SPAN)
        return &TILECORE_NAME(doubling_kernel);
    if (row <= 16) return &TILECORE_NAME(pattern_kernel);
    if (row <= TILECORE_STORE_WIDTH && repeats > 1 && self->dst_pitch == self->span)
        return &TILECORE_NAME(pattern_kernel);
    if (row <= TILECORE_REGISTERS_ROW) return &TILECORE_NAME(register_rows_kernel);
    return &TILECORE_NAME(copies_kernel);
}
