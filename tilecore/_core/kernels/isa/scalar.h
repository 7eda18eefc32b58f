/* Plain C: the portable fallback. */

#define TILECORE_NAME(name) tilecore_##name##_scalar
#define TILECORE_TARGETED
typedef struct {
    uint64_t word[2];
} tilecore_half;
#define TILECORE_HALF tilecore_half
TILECORE_INLINE TILECORE_HALF TILECORE_NAME(load_half)(const char *p)
{
    TILECORE_HALF h;
    memcpy(&h, p, 16);
    return h;
}
#define TILECORE_LOAD_HALF(p) TILECORE_NAME(load_half)((const char *)(p))
TILECORE_INLINE void TILECORE_NAME(store_half)(void *p, TILECORE_HALF h) { memcpy(p, &h, 16); }
#define TILECORE_STORE_HALF(p, h) TILECORE_NAME(store_half)(p, h)
#include "vectors32_in_halves.h"
#include "copy.h"
#include "register_rows.h"
#include "small.h"
#include "transpose.h"

static const tilecore_row_kernel *const TILECORE_NAME(rows)[] = {
    &TILECORE_NAME(copies_kernel), &TILECORE_NAME(doubling_kernel), &TILECORE_NAME(register_rows_kernel), NULL};

static const tilecore_row_kernel *TILECORE_NAME(choose)(const tilecore_rows *self, ptrdiff_t repeats, ptrdiff_t rows)
{
    const ptrdiff_t row = self->row, min_span = tilecore_has_size(self) ? TILECORE_DOUBLING_SPAN : 128;
    if (row > 16 && row <= TILECORE_REGISTERS_ROW) return &TILECORE_NAME(register_rows_kernel);
    if (rows * repeats > TILECORE_FEW && repeats > 1 && self->span >= min_span) return &TILECORE_NAME(doubling_kernel);
    return &TILECORE_NAME(copies_kernel);
}

#define tilecore_deinterleave_scalar NULL
TILECORE_SET(scalar, 0, scalar, scalar, TILECORE_BY_TILES, TILECORE_NAME(choose), TILECORE_NAME(rows), NULL);
#include "undef.h"
