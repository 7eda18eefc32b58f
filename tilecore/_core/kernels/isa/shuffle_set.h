/* What the sets that shuffle 16 bytes share: SSSE3, AVX2, NEON. */

#include "copy.h"
#include "register_rows.h"
#include "small.h"
#include "short_rows.h"
#include "transpose.h"
#include "deinterleave.h"

static const tilecore_row_kernel *TILECORE_NAME(choose)(const tilecore_rows *self, ptrdiff_t repeats, ptrdiff_t rows)
{
    const ptrdiff_t row = self->row;
    const int few = rows * repeats <= TILECORE_FEW;
    if (row <= 16 && (few || tilecore_copies_pay(self, repeats))) return &TILECORE_KERNEL(copies);
    if (few) return row > TILECORE_REGISTERS_ROW ? &TILECORE_KERNEL(copies) : &TILECORE_KERNEL(register_rows);
    /* With stores of 32 bytes, `expand` does not pay for a longer span that two stores of a pattern write. */
    if (tilecore_can_expand(self, rows) &&
        (TILECORE_STORE_WIDTH == 16 || self->span <= 48 || self->span > 2 * (32 / row * row)))
        return &TILECORE_KERNEL(expand);
    /* Two moves of a word take less than a pattern stored by halves, where rows lie apart. */
    if (TILECORE_STORE_WIDTH < 32 && repeats == 2 && 16 % row == 0) return &TILECORE_KERNEL(copies);
    /* Of stores of 32 bytes every second one crosses a cache line: aligned ones soon beat them. Of 16 bytes few do. */
    if (row > TILECORE_REGISTERS_ROW ? repeats > 1 : TILECORE_STORE_WIDTH == 32 && self->span >= TILECORE_DOUBLING_SPAN)
        return &TILECORE_KERNEL(doubling);
    if (row <= 16) return &TILECORE_KERNEL(pattern);
    if (row < TILECORE_STORE_WIDTH && repeats > 1 && self->dst_pitch == self->span)
        return &TILECORE_KERNEL(pattern);
    if (row <= TILECORE_REGISTERS_ROW) return &TILECORE_KERNEL(register_rows);
    return &TILECORE_KERNEL(copies);
}
