/* The kernels and the choice of the sets that shuffle 16 bytes, SSSE3, AVX2 and NEON: each includes this. */
#if !defined(TILECORE_LOAD_HALVES) || !defined(TILECORE_WORDS) || !defined(TILECORE_SHUFFLE) || \
    !defined(TILECORE_OR) || !defined(TILECORE_ZIP)
#error "a set that shuffles lacks a macro: see begin.h"
#endif
#include "copy.h"
#include "register_rows.h"
#include "small.h"
#include "short_rows.h"
#include "transpose.h"
#include "deinterleave.h"

static const tilecore_row_kernel *TILECORE_NAME(choose)(const tilecore_rows *self, ptrdiff_t repeats, ptrdiff_t rows)
{
    const ptrdiff_t row = self->row, span = self->span;
    const int few = rows * repeats <= TILECORE_FEW, cached = rows * span <= TILECORE_FIRST_CACHE_BYTES;
    if (row <= 16 && (few || tilecore_copies_pay(self, repeats))) return &TILECORE_KERNEL(copies);
    if (few) return row > TILECORE_REGISTERS_ROW ? &TILECORE_KERNEL(copies) : &TILECORE_KERNEL(register_rows);
    /* `copies` of words are loops that the compiler vectorises. Spans of whole vectors leave no scalar tail, and short
     * spans no mispredicted branch. */
    if (TILECORE_STORE_WIDTH == 32 && cached && (row == 4 || row == 8) && span >= 64 && span < 448 && span % 32 == 0)
        return &TILECORE_KERNEL(copies);
    if (tilecore_can_expand(self, rows)) return &TILECORE_KERNEL(expand);
    /* If rows lie apart, two moves of a word take less time than a pattern stored by halves. */
    if (TILECORE_STORE_WIDTH < 32 && repeats == 2 && 16 % row == 0) return &TILECORE_KERNEL(copies);
    /* Every second store of 32 bytes crosses a cache line, so aligned ones soon pay. Of 16 bytes, few cross one. */
    if (row > TILECORE_REGISTERS_ROW ? repeats > 1 : TILECORE_STORE_WIDTH == 32 && span >= TILECORE_DOUBLING_SPAN)
        return &TILECORE_KERNEL(doubling);
    if (row <= 16 || (row < TILECORE_STORE_WIDTH && repeats > 1 && self->dst_pitch == span))
        return &TILECORE_KERNEL(pattern);
    if (row <= TILECORE_REGISTERS_ROW) return &TILECORE_KERNEL(register_rows);
    return &TILECORE_KERNEL(copies);
}

static const tilecore_row_kernel *const TILECORE_NAME(row_kernels)[] = {
    &TILECORE_KERNEL(copies), &TILECORE_KERNEL(doubling), &TILECORE_KERNEL(expand),
    &TILECORE_KERNEL(pattern), &TILECORE_KERNEL(register_rows), NULL};
