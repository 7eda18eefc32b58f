/* Plain C, the portable fallback. */
#define TILECORE_NAME(name) tilecore_##name##_scalar
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
#include "begin.h"
#include "copy.h"
#include "register_rows.h"
#include "small.h"
#include "transpose.h"

static const tilecore_row_kernel *TILECORE_NAME(choose)(const tilecore_rows *self, ptrdiff_t repeats, ptrdiff_t rows)
{
    const ptrdiff_t row = self->row, min_span = tilecore_has_size(self) ? TILECORE_DOUBLING_SPAN : 128;
    if (row > 16 && row <= TILECORE_REGISTERS_ROW) return &TILECORE_KERNEL(register_rows);
    if (rows * repeats > TILECORE_FEW && repeats > 1 && self->span >= min_span) return &TILECORE_KERNEL(doubling);
    return &TILECORE_KERNEL(copies);
}

static const tilecore_row_kernel *const tilecore_row_kernels_scalar[] = {
    &TILECORE_KERNEL(copies), &TILECORE_KERNEL(doubling), &TILECORE_KERNEL(register_rows), NULL};

#define tilecore_deinterleave_scalar NULL /* there is none */
TILECORE_SET(scalar, scalar, scalar, scalar, 0, TILECORE_BY_TILES, NULL);
#include "end.h"
