/* The micro-kernels of tilecore: small loops that write rows of bytes, chosen by size, never by
 * dtype. Usable from a plain C program; no Python.h, no allocation, no error.
 *
 * Example: two rows of three bytes, each written four times.
 *
 *     char dst[24];
 *     tilecore_rows rows;
 *     const tilecore_kernels *kernels = tilecore_choose_kernels(tilecore_detect_isa());
 *     tilecore_prepare_rows(&rows, kernels, 3, 4, 3, 12, 2);
 *     rows.write(&rows, dst, "abcxyz", 2, 4);          // abcabcabcabcxyzxyzxyzxyz
 *
 * Which kernel serves a row of `row` bytes that is written `repeats` times:
 *
 *     repeats == 1, row <= 32 gather    rows that lie apart in the source (strided input)
 *     few rows, or row > 128  longer    one copy per repeat
 *     row <= 32               pattern   as many copies as fit 32 bytes in one register, stored
 *                                       at steps of whole rows, each store overlapping the last
 *     row <= 128              hold      the row in two to four registers, stored per repeat
 *
 * but for many rows up to 16 bytes that lie together and come out short,
 *
 *     row*repeats <= 40,      expand    one shuffle per 16 output bytes, in aligned stores alone,
 *     or <= 64 with a period            whatever the row's end; the masks repeat every
 *     of few stores                     lcm(32, row*repeats) bytes
 *
 * and over all sizes `copy` (contiguous bytes), `replicate` (a block again and again behind
 * itself) and `stream` (copy that bypasses the cache, for outputs far larger than it).
 *
 * No kernel reads outside its source rows or writes outside its destination rows. Source and
 * destination never overlap. Pointers need no alignment.
 */
#ifndef TILECORE_KERNELS_H
#define TILECORE_KERNELS_H

#include <string.h>

#include "config.h"

enum {
    TILECORE_FEW = 8,           /* written rows up to which a copy each is quickest */
    TILECORE_EXPAND_ROW = 16,   /* a shuffle takes from 16 source bytes */
    /* row*repeats up to which expand beats pattern: always, and where the masks fit registers */
    TILECORE_EXPAND_SPAN = 40,
    TILECORE_EXPAND_FEW_SPAN = 64,
    TILECORE_EXPAND_FEW = 3,
    TILECORE_PLAIN_SPAN = 64, /* without shuffles a pattern takes longer to make than so many bytes */
    TILECORE_EXPAND_MIN = 16, /* periods of output from which making the masks pays */
    TILECORE_PATTERN_ROW = 32,
    TILECORE_HOLD_ROW = 128,
    TILECORE_DOUBLING_BYTES = 8192 /* replicate re-reads at most this much */
};

struct tilecore_kernels;

/* A prepared choice of kernel for rows of one shape. Filled by tilecore_prepare_rows. */
typedef struct tilecore_rows {
    ptrdiff_t row;       /* bytes of one row */
    ptrdiff_t src_pitch; /* bytes from one source row to the next; may be 0 or negative */
    ptrdiff_t dst_pitch; /* bytes from one written row to the next */
    ptrdiff_t span;      /* row * repeats */
    /* Writes `rows` rows, each `repeats` times. (expand takes `repeats` from `span`.) */
    void (*write)(const struct tilecore_rows *self, char *dst, const char *src, ptrdiff_t rows,
                  ptrdiff_t repeats);
    const struct tilecore_kernels *kernels;
    /* pattern: byte j of the register is this byte of what was loaded */
    uint8_t pattern_mask[32];
    /* expand: one period of `vectors` 32-byte stores reads `period_rows` rows */
    int vectors;
    ptrdiff_t period_rows;
    ptrdiff_t reach;                            /* source bytes that the loads of one period touch */
    uint16_t offset[TILECORE_EXPAND_SPAN][2];   /* where each half of a vector is loaded */
    TILECORE_ALIGNED uint8_t mask[TILECORE_EXPAND_SPAN][32];
} tilecore_rows;

typedef void (*tilecore_write_rows)(const tilecore_rows *self, char *dst, const char *src,
                                    ptrdiff_t rows, ptrdiff_t repeats);

/* The kernels of one instruction set. */
typedef struct tilecore_kernels {
    const char *name;
    void (*copy)(char *dst, const char *src, ptrdiff_t bytes);
    /* As copy; the bytes are in memory for other threads after `stream_end`. */
    void (*stream)(char *dst, const char *src, ptrdiff_t bytes);
    void (*stream_end)(void);
    /* The first `bytes` bytes of dst, written `count` - 1 times more, directly behind. */
    void (*replicate)(char *dst, ptrdiff_t bytes, ptrdiff_t count);
    tilecore_write_rows gather, expand, pattern, hold, longer; /* expand may be NULL */
} tilecore_kernels;

/* One of four 16-bit numbers in a 64-bit one, in the order of memory. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define TILECORE_OFFSET(four, i) ((ptrdiff_t)((four) >> 16 * (3 - (i)) & 0xffff))
#else
#define TILECORE_OFFSET(four, i) ((ptrdiff_t)((four) >> 16 * (i) & 0xffff))
#endif

/* ---------------------------------------------------------------- one instance per instruction set */

#define TILECORE_ISA TILECORE_ISA_SCALAR
#define TILECORE_NAME(name) tilecore_##name##_scalar
#define TILECORE_TARGETED
#include "kernels_isa.h"

#if defined(TILECORE_X86)
#define TILECORE_ISA TILECORE_ISA_SSSE3
#define TILECORE_NAME(name) tilecore_##name##_ssse3
#define TILECORE_TARGETED TILECORE_TARGET("ssse3")
#include "kernels_isa.h"

#define TILECORE_ISA TILECORE_ISA_AVX2
#define TILECORE_NAME(name) tilecore_##name##_avx2
#define TILECORE_TARGETED TILECORE_TARGET("avx2")
#include "kernels_isa.h"
#endif

#if defined(TILECORE_NEON)
#define TILECORE_ISA TILECORE_ISA_ARM64
#define TILECORE_NAME(name) tilecore_##name##_arm64
#define TILECORE_TARGETED
#include "kernels_isa.h"
#endif

TILECORE_UNUSED static const tilecore_kernels *tilecore_choose_kernels(int isa)
{
    switch (isa) {
#if defined(TILECORE_X86)
    case TILECORE_ISA_SSSE3: return &tilecore_kernels_ssse3;
    case TILECORE_ISA_AVX2: return &tilecore_kernels_avx2;
#endif
#if defined(TILECORE_NEON)
    case TILECORE_ISA_ARM64: return &tilecore_kernels_arm64;
#endif
    default: return &tilecore_kernels_scalar;
    }
}

/* ---------------------------------------------------------------- the choice */

/* How many 32-byte stores until rows of `span` bytes begin at a multiple of 32 again. */
static int tilecore_period(ptrdiff_t span)
{
    int vectors = (int)span;
    while (vectors % 2 == 0 && vectors * 16 % span == 0) vectors /= 2;
    return vectors;
}

/* The masks and offsets of expand for one period, by halves of 16 output bytes. Each half comes from
 * at most 16 neighbouring source bytes: the end of a row and the start of the next, or one row where
 * a copy ends within the half. */
static void tilecore_prepare_expand(tilecore_rows *self)
{
    const ptrdiff_t row = self->row, span = self->span;
    ptrdiff_t first = 0, column = 0, copy = 0; /* of the next output byte */
    int half, j;
    self->period_rows = self->vectors * 32 / span;
    self->reach = 0;
    for (half = 0; half < 2 * self->vectors; half++) {
        ptrdiff_t source[16], least = PTRDIFF_MAX;
        for (j = 0; j < 16; j++) {
            source[j] = first + column;
            if (source[j] < least) least = source[j];
            if (++column == row) {
                column = 0;
                if (++copy * row == span) copy = 0, first += row;
            }
        }
        for (j = 0; j < 16; j++) self->mask[half / 2][16 * (half % 2) + j] = (uint8_t)(source[j] - least);
        self->offset[half / 2][half % 2] = (uint16_t)least;
        if (least + 16 > self->reach) self->reach = least + 16;
    }
}

/* Chooses the kernel for `rows` rows of `row` bytes (at least 1), each written `repeats` times. */
TILECORE_UNUSED static void tilecore_prepare_rows(tilecore_rows *self, const tilecore_kernels *kernels,
                                                  ptrdiff_t row, ptrdiff_t repeats,
                                                  ptrdiff_t src_pitch, ptrdiff_t dst_pitch,
                                                  ptrdiff_t rows)
{
    self->row = row;
    self->src_pitch = src_pitch;
    self->dst_pitch = dst_pitch;
    self->span = row * repeats;
    self->kernels = kernels;
    if (repeats == 1 && row <= TILECORE_PATTERN_ROW) {
        self->write = kernels->gather;
        return;
    }
    if (rows * repeats <= TILECORE_FEW) { /* not worth preparing for */
        self->write = kernels->longer;
        return;
    }
    if (!kernels->expand && self->span <= TILECORE_PLAIN_SPAN) {
        self->write = kernels->gather;
        return;
    }
    self->write = row <= TILECORE_PATTERN_ROW ? kernels->pattern
                  : row <= TILECORE_HOLD_ROW  ? kernels->hold
                                              : kernels->longer;
    if (row <= TILECORE_PATTERN_ROW) {
        /* Rows up to 16 bytes are loaded as two overlapping words, the longest that fit, into
         * the two halves of 16 bytes; longer ones as two overlapping halves of 32 bytes. */
        /* clang-format off */
        const int word = row > 16 ? 16 : row >= 8 ? 8 : row >= 4 ? 4 : row >= 2 ? 2 : 1;
        int j, column = 0;
        for (j = 0; j < 32; j++) {
            self->pattern_mask[j] =
                word == 16 ? (uint8_t)(j < 16 ? j : j < row ? j + 16 - row : 0)
                           : (uint8_t)(column < word ? column : 8 + column - (row - word));
            if (++column == row) column = 0;
        }
        /* clang-format on */
    }
    if (kernels->expand && row <= TILECORE_EXPAND_ROW && self->span <= TILECORE_EXPAND_FEW_SPAN &&
        src_pitch == row && dst_pitch == self->span) {
        self->vectors = tilecore_period(self->span);
        if ((self->span <= TILECORE_EXPAND_SPAN || self->vectors <= TILECORE_EXPAND_FEW) &&
            rows * self->span >= TILECORE_EXPAND_MIN * 32 * (ptrdiff_t)self->vectors) {
            tilecore_prepare_expand(self);
            self->write = kernels->expand;
        }
    }
}

#endif /* TILECORE_KERNELS_H */
