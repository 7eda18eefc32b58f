/* AVX-512 VBMI permutes all bytes of a vector of 64, and masks loads and stores. Intel has it since Ice Lake (2019). */
#define TILECORE_NAME(name) tilecore_##name##_avx512vbmi
#define TILECORE_TARGETED TILECORE_TARGET("avx512f,avx512bw,avx512vbmi,bmi2")
#define TILECORE_WIDTH 64
#define TILECORE_SUFFIX " 64"
#define TILECORE_VECTOR __m512i
#define TILECORE_LOAD(p) _mm512_loadu_si512((const void *)(p))
#define TILECORE_STORE(p, v) _mm512_storeu_si512((void *)(p), v)
#define TILECORE_STREAM(p, v) _mm512_stream_si512((__m512i *)(void *)(p), v)
/* The first n lanes, 0 <= n <= 64. */
#define TILECORE_LANES(n) ((__mmask64)_bzhi_u64(~(uint64_t)0, (unsigned)(n)))
#define TILECORE_LOAD_LANES(lanes, p) _mm512_maskz_loadu_epi8(lanes, (const void *)(p))
#define TILECORE_STORE_LANES(p, lanes, v) _mm512_mask_storeu_epi8((void *)(p), lanes, v)
#include "begin.h"
#include "copy.h"
#include "register_rows.h"
#include "small.h"
#include "permute.h"

/* Chooses for rows of up to 32 bytes, and for few rows, in Intel's set, below, and AMD's, avx512amd.h. Of words of 1 to
 * 16 bytes that lie apart, `spread` is faster if one store writes more than `words`. */
static const tilecore_row_kernel *tilecore_choose_permutation(const tilecore_rows *self, ptrdiff_t repeats,
                                                              ptrdiff_t rows, ptrdiff_t words)
{
    const ptrdiff_t row = self->row;
    const int apart = self->dst_pitch != self->span; /* then no two spans share a vector */
    const int fits = TILECORE_NAME(can_register_rows)(self, rows);
    const tilecore_row_kernel *const each = fits ? &TILECORE_KERNEL(register_rows) : &TILECORE_KERNEL(copies);
    if (rows * repeats <= TILECORE_FEW) return each;
    if (repeats == 1) { /* rows that lie apart */
        const ptrdiff_t few = row % 3 ? words : 2, most = tilecore_has_size(self) ? few : fits; /* `fits`: one */
        if (rows >= 16 && row <= 64 && TILECORE_NAME(spread_rows)(self) > most) return &TILECORE_KERNEL(spread);
        return each;
    }
    if (row > 32) return each;
    if (TILECORE_NAME(can_permute)(self, rows)) return &TILECORE_KERNEL(permute);
    if (self->span <= 64) return &TILECORE_KERNEL(spread);
    /* The compiler vectorises copies of words by unaligned stores; only their tail is scalar. */
    if (apart ? 16 % row == 0 : 8 % row == 0 && self->in_first_cache && self->span % 32 <= 8 * row)
        return &TILECORE_KERNEL(copies);
    if (apart && row > 16 && repeats <= 16) return each;
    return &TILECORE_KERNEL(rotate);
}

/* Beyond the first-level cache of Intel's processors, stores of 64 bytes that cross lines are slow: for these rows
 * AVX2's choice is faster. Within that cache, `permute` is faster for the shorter rows. */
static const tilecore_row_kernel *tilecore_choose_avx512vbmi(const tilecore_rows *self, ptrdiff_t repeats,
                                                             ptrdiff_t rows)
{
    const ptrdiff_t row = self->row;
    const int few = row > 24 && row <= 32 && repeats <= 3 && rows * self->span > TILECORE_FIRST_CACHE_BYTES;
    if (repeats > 1 && (few || (row > 128 && !self->in_first_cache)))
        return tilecore_choose_avx2(self, repeats, rows);
    return tilecore_choose_permutation(self, repeats, rows, 2);
}

static const tilecore_row_kernel *const tilecore_row_kernels_avx512vbmi[] = {
    &TILECORE_KERNEL(copies), &TILECORE_KERNEL(register_rows), &TILECORE_KERNEL(permute),
    &TILECORE_KERNEL(rotate), &TILECORE_KERNEL(spread), NULL};

TILECORE_SET(avx512vbmi, avx512vbmi, avx2, avx512vbmi, TILECORE_HAS_AVX512VBMI, TILECORE_BY_COLUMNS,
             &tilecore_set_avx2);
#include "end.h"
