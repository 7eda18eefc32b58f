/* The table of instruction sets, what this processor has, and the choice of a kernel. kernels.h
 * explains the kernels. C11 / C++17; no Python.h.
 */
#include "kernels.h"

#if defined(TILECORE_EMULATED) /* the tests' header that gives every set's intrinsics in plain C */
#include TILECORE_EMULATED
#elif defined(__x86_64__) || defined(_M_X64)
#define TILECORE_X86 1
#include <immintrin.h>
#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#define TILECORE_TARGET(isa)
#else
#include <cpuid.h>
#define TILECORE_TARGET(isa) __attribute__((target(isa)))
#endif
#elif (defined(__aarch64__) && defined(__ARM_NEON) && !defined(__AARCH64EB__)) || defined(_M_ARM64)
#define TILECORE_NEON 1
#include <arm_neon.h>
#endif

/* ---------------------------------------------------------------- what the processor has */

enum {
    TILECORE_HAS_SSSE3 = 2,
    TILECORE_HAS_AVX2 = 4,
    TILECORE_HAS_AVX512VBMI = 8, /* with AVX512F and AVX512BW, and BMI2 for masks of so many lanes */
    TILECORE_HAS_AMD = 16,       /* stores vectors of 64 bytes across cache lines quickly */
    TILECORE_HAS_HALVES = 32     /* AMD's that stores a vector of 64 bytes as two of 32 */
};

#if defined(TILECORE_X86) && !defined(TILECORE_EMULATED)
enum {
    EAX,
    EBX,
    ECX,
    EDX
};

/* CPUID's answer for a leaf and one of its parts; all 0 for a leaf that the processor does not know. */
static void tilecore_cpuid(unsigned leaf, unsigned part, unsigned registers[4])
{
    memset(registers, 0, 4 * sizeof *registers);
#if defined(_MSC_VER) && !defined(__clang__)
    int most[4];
    __cpuid(most, (int)(leaf & 0x80000000)); /* the last leaf of this kind */
    if ((unsigned)most[0] >= leaf) __cpuidex((int *)registers, (int)leaf, (int)part);
#else
    __get_cpuid_count(leaf, part, &registers[EAX], &registers[EBX], &registers[ECX], &registers[EDX]);
#endif
}

unsigned tilecore_features(void)
{
    unsigned leaf0[4], leaf1[4], leaf7[4], paths[4], saved = 0, features = 0;
    tilecore_cpuid(0, 0, leaf0);
    tilecore_cpuid(1, 0, leaf1);
    tilecore_cpuid(7, 0, leaf7);
    tilecore_cpuid(0x8000001a, 0, paths);
    if (leaf1[ECX] >> 27 & 1) { /* OSXSAVE: the operating system says which registers it saves */
#if defined(_MSC_VER) && !defined(__clang__)
        saved = (unsigned)_xgetbv(0);
#else
        /* XGETBV, spelled as bytes, for it needs no compiler option that way. */
        unsigned high;
        __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(saved), "=d"(high) : "c"(0));
#endif
    }
    if (leaf1[ECX] >> 9 & 1) features |= TILECORE_HAS_SSSE3;
    /* XCR0: the 256-bit registers are bits 1 and 2; masks and 512-bit registers are bits 5 to 7. */
    if ((saved & 0x06) == 0x06 && (leaf7[EBX] >> 5 & 1)) {
        const unsigned avx512f_bw_bmi2 = 1u << 16 | 1u << 30 | 1u << 8;
        features |= TILECORE_HAS_AVX2;
        if ((saved & 0xe6) == 0xe6 && (leaf7[EBX] & avx512f_bw_bmi2) == avx512f_bw_bmi2 && (leaf7[ECX] >> 1 & 1))
            features |= TILECORE_HAS_AVX512VBMI;
    }
    if (memcmp(&leaf0[EBX], "Auth", 4) == 0) features |= TILECORE_HAS_AMD; /* "AuthenticAMD" */
    /* AMD's alone: data paths of 256 bits (bit 2), and of 512 (bit 3). */
    if ((paths[EAX] >> 2 & 3) == 1) features |= TILECORE_HAS_HALVES;
    /* Fast short REP MOVSB, of "GenuineIntel", or of AMD's from Zen 5 on: family 26. */
    if ((leaf7[EDX] >> 4 & 1) &&
        (memcmp(&leaf0[EBX], "Genu", 4) == 0 || (features & TILECORE_HAS_AMD && (leaf1[EAX] >> 20 & 0xff) >= 11)))
        features |= TILECORE_HAS_QUICK_MOVE;
    return features;
}

/* glibc before 2.38 adds up all third-level caches of an AMD package; a core can use one of them. */
ptrdiff_t tilecore_l3_bytes(void)
{
    unsigned leaf[2] = {0x8000001d, 4}, cache[4], k; /* AMD's; Intel's and others' */
    for (k = 0; k < 2; k++) {
        tilecore_cpuid(leaf[k], 3, cache);
        if ((cache[EAX] >> 5 & 7) == 3) /* its level; each factor is stored less 1: ways, partitions, line, sets */
            return (ptrdiff_t)((cache[EBX] >> 22) + 1) * ((cache[EBX] >> 12 & 0x3ff) + 1) * ((cache[EBX] & 0xfff) + 1) *
                   (ptrdiff_t)(cache[ECX] + 1);
    }
    return 0;
}
#else /* every set of the table can be used: NEON is part of every 64-bit Arm */
unsigned tilecore_features(void) { return ~(unsigned)TILECORE_HAS_QUICK_MOVE; }
ptrdiff_t tilecore_l3_bytes(void) { return 0; }
#endif

/* ---------------------------------------------------------------- what the choice goes by */

enum {
    TILECORE_FEW_COST = 640,  /* see row_cost in small.h */
    TILECORE_FEW = 8,         /* written rows up to which nothing is worth preparing */
    TILECORE_EXPAND_ROW = 16, /* a shuffle takes from 16 source bytes */
    /* row*repeats up to which expand beats pattern: always, and where the masks fit registers */
    TILECORE_EXPAND_SPAN = 40,
    TILECORE_EXPAND_FEW_SPAN = 64,
    TILECORE_EXPAND_FEW = 3,
    TILECORE_EXPAND_MIN = 16, /* periods of output from which making the masks of aligned vectors pays */
    TILECORE_EXPAND_ROWS = 24,      /* rows from which one mask for several of them pays */
    TILECORE_EXPAND_ALIGNED = 4096, /* bytes of output from which another vector's mask pays */
    TILECORE_PATTERN_ROW = 32,
    TILECORE_DOUBLING_SPAN = 2048, /* row*repeats from which doubling beats rows in registers, and a copy each */
    TILECORE_DOUBLING_BYTES = 8192 /* replicate re-reads at most this much */
};

/* Rows up to this size are held in registers. */
#define TILECORE_REGISTERS_ROW (8 * TILECORE_WIDTH)

/* Sizes that `copies` has code of their own for. */
static int tilecore_has_size(const tilecore_rows *self)
{
    const ptrdiff_t row = self->row;
    return row <= 4 || row == 6 || row == 8 || row == 12 || row == 16;
}

/* ---------------------------------------------------------------- short rows, 16 bytes to a shuffle */

#if defined(TILECORE_X86) || defined(TILECORE_NEON)

/* How many 32-byte stores until rows of `span` bytes begin at a multiple of 32 again. */
static int tilecore_period(ptrdiff_t span)
{
    int vectors = (int)span;
    while (vectors % 2 == 0 && vectors * 16 % span == 0) vectors /= 2;
    return vectors;
}

/* Rows up to 16 bytes that are copied more quickly than in patterns: rows written once; and spans that lie apart in the
 * output, whose end no later store may run over: a pattern writes it slowly. */
static int tilecore_copies_pay(const tilecore_rows *self, ptrdiff_t repeats)
{
    const ptrdiff_t row = self->row;
    if (repeats > 1 && (self->dst_pitch == self->span || row == 1)) return 0;
    return tilecore_has_size(self) && (row == 2 || row % 4 == 0 || self->span <= 48);
}

static int tilecore_can_pattern(const tilecore_rows *self, ptrdiff_t repeats, ptrdiff_t rows)
{
    (void)repeats, (void)rows;
    return self->row <= TILECORE_PATTERN_ROW;
}

static int tilecore_can_expand(const tilecore_rows *self, ptrdiff_t repeats, ptrdiff_t rows)
{
    (void)repeats;
    return rows > 1 && self->row <= TILECORE_EXPAND_ROW && self->src_pitch == self->row &&
           self->dst_pitch == self->span && self->span <= TILECORE_EXPAND_FEW_SPAN &&
           (self->span <= TILECORE_EXPAND_SPAN || tilecore_period(self->span) <= TILECORE_EXPAND_FEW);
}

/* Whether all vectors of a period are prepared, and stores aligned. Otherwise there is one vector of whole spans, which
 * the next store overlaps: its mask is made sooner. */
static int tilecore_expand_aligns(const tilecore_rows *self, ptrdiff_t rows)
{
    return self->span > 16 || rows * self->span >= TILECORE_EXPAND_ALIGNED * (ptrdiff_t)(tilecore_period(self->span) - 1);
}

static int tilecore_expand_pays(const tilecore_rows *self, ptrdiff_t repeats, ptrdiff_t rows)
{
    return tilecore_can_expand(self, repeats, rows) &&
           (self->span <= 16 ? rows >= TILECORE_EXPAND_ROWS
                             : rows * self->span >= TILECORE_EXPAND_MIN * 32 * (ptrdiff_t)tilecore_period(self->span));
}

/* Rows up to 16 bytes are loaded as two overlapping words, the longest that fit, into the two halves of
 * 16 bytes; longer ones as two overlapping halves of 32 bytes. */
static void tilecore_prepare_pattern(tilecore_rows *self, ptrdiff_t rows)
{
    /* clang-format off */
    (void)rows;
    const ptrdiff_t row = self->row;
    const int word = row > 16 ? 16 : row >= 8 ? 8 : row >= 4 ? 4 : row >= 2 ? 2 : 1;
    int j, column = 0;
    for (j = 0; j < 32; j++) {
        self->u.short_rows.pattern[j] =
            word == 16 ? (uint8_t)(j < 16 ? j : j < row ? j + 16 - row : 0)
                       : (uint8_t)(column < word ? column : 8 + column - (row - word));
        if (++column == row) column = 0;
    }
    /* clang-format on */
}

/* The masks and offsets of expand for one period, by halves of 16 output bytes. Each half comes from
 * at most 16 neighbouring source bytes: the end of a row and the start of the next, or one row where
 * a copy ends within the half. */
static void tilecore_prepare_expand(tilecore_rows *self, ptrdiff_t rows)
{
    const ptrdiff_t row = self->row, span = self->span, repeats = span / row;
    const int vectors = tilecore_expand_aligns(self, rows) ? tilecore_period(span) : 1;
    ptrdiff_t first = 0, column = 0, copy = 0; /* of the next output byte */
    int half, j;
    tilecore_prepare_pattern(self, rows); /* which writes what is not a whole period */
    self->u.short_rows.vectors = vectors;
    self->u.short_rows.period_rows = vectors * 32 / span;
    self->u.short_rows.reach = 0;
    for (half = 0; half < 2 * vectors; half++) {
        const int again = row - column < 16 && copy + 1 < repeats; /* the row's start follows its end */
        const ptrdiff_t least = again ? first : first + column;
        for (j = 0; j < 16; j++) {
            self->u.short_rows.mask[half / 2][16 * (half % 2) + j] = (uint8_t)(first + column - least);
            if (++column == row) {
                column = 0;
                if (++copy == repeats) copy = 0, first += row;
            }
        }
        self->u.short_rows.offset[half / 2][half % 2] = (uint16_t)least;
        if (least + 16 > self->u.short_rows.reach) self->u.short_rows.reach = least + 16;
    }
}

#endif

/* ---------------------------------------------------------------- the table */

/* A set's row of the table: the sets that its kernels for bytes are of, and those that pack; then the other fields. */
#define TILECORE_SET(set, needs, bytes, packing, ...) \
    static const tilecore_kernels tilecore_set_##set = { \
        #set, needs, tilecore_copy_##bytes, tilecore_stream_##bytes, tilecore_stream_end_##bytes, \
        tilecore_replicate_##bytes, tilecore_write_small_##bytes, tilecore_transpose_##packing, tilecore_deinterleave_##packing, __VA_ARGS__}

#include "isa/scalar.h"
#if defined(TILECORE_X86)
#include "isa/ssse3.h"
#include "isa/avx2.h"
#include "isa/avx512vbmi.h"
#include "isa/avx512amd.h"
#endif
#if defined(TILECORE_NEON)
#include "isa/arm64.h"
#endif

const tilecore_kernels *const tilecore_sets[] = {
#if defined(TILECORE_X86)
    &tilecore_set_avx512half,
    &tilecore_set_avx512amd,
    &tilecore_set_avx512vbmi,
    &tilecore_set_avx2,
    &tilecore_set_ssse3,
#endif
#if defined(TILECORE_NEON)
    &tilecore_set_arm64,
#endif
    &tilecore_set_scalar,
    NULL,
};
