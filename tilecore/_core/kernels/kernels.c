/* The table of instruction sets, what this processor has, and the bounds that several sets share. The module
 * resources/processor.pyx is linked with it. kernels.h explains the kernels. C11 / C++17; no Python.h. */
#include "packing.h"

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
    TILECORE_IS_AMD = 16 /* stores vectors of 64 bytes across cache lines quickly */
};

#if defined(TILECORE_X86) && !defined(TILECORE_EMULATED)
typedef struct tilecore_registers {
    unsigned eax, ebx, ecx, edx;
} tilecore_registers;

/* Returns CPUID's answer for a leaf and one of its parts: all 0 if the processor does not know the leaf. */
static tilecore_registers tilecore_cpuid(unsigned leaf, unsigned part)
{
    tilecore_registers answer = {0, 0, 0, 0};
#if defined(_MSC_VER) && !defined(__clang__)
    int most[4];
    __cpuid(most, (int)(leaf & 0x80000000)); /* the last leaf of this kind */
    if ((unsigned)most[0] >= leaf) __cpuidex((int *)&answer, (int)leaf, (int)part);
#else
    __get_cpuid_count(leaf, part, &answer.eax, &answer.ebx, &answer.ecx, &answer.edx);
#endif
    return answer;
}

TILECORE_TARGET("xsave")
unsigned tilecore_features(void)
{
    const tilecore_registers leaf0 = tilecore_cpuid(0, 0), leaf1 = tilecore_cpuid(1, 0), leaf7 = tilecore_cpuid(7, 0);
    unsigned saved = 0, features = 0;
    if (leaf1.ecx >> 27 & 1) saved = (unsigned)_xgetbv(0); /* OSXSAVE: the system says which registers it saves */
    if (leaf1.ecx >> 9 & 1) features |= TILECORE_HAS_SSSE3;
    /* XCR0: the 256-bit registers are bits 1 and 2; masks and 512-bit registers are bits 5 to 7. */
    if ((saved & 0x06) == 0x06 && (leaf7.ebx >> 5 & 1)) {
        const unsigned avx512f_bw_bmi2 = 1u << 16 | 1u << 30 | 1u << 8;
        features |= TILECORE_HAS_AVX2;
        if ((saved & 0xe6) == 0xe6 && (leaf7.ebx & avx512f_bw_bmi2) == avx512f_bw_bmi2 && (leaf7.ecx >> 1 & 1))
            features |= TILECORE_HAS_AVX512VBMI;
    }
    if (memcmp(&leaf0.ebx, "Auth", 4) == 0) features |= TILECORE_IS_AMD; /* "AuthenticAMD" */
    /* Fast short REP MOVSB counts if the processor is "GenuineIntel", or AMD's from Zen 5 on: family 26. */
    if ((leaf7.edx >> 4 & 1) &&
        (memcmp(&leaf0.ebx, "Genu", 4) == 0 || (features & TILECORE_IS_AMD && (leaf1.eax >> 20 & 0xff) >= 11)))
        features |= TILECORE_HAS_QUICK_MOVSB;
    return features;
}

/* glibc before 2.38 adds up all third-level caches of an AMD package; a core can use one of them. */
ptrdiff_t tilecore_l3_bytes(void)
{
    const unsigned leaf[2] = {0x8000001d, 4}; /* AMD's; Intel's and others' */
    int k;
    for (k = 0; k < 2; k++) {
        const tilecore_registers cache = tilecore_cpuid(leaf[k], 3);
        if ((cache.eax >> 5 & 7) == 3) /* its level. Ways, partitions, line and sets are each stored less 1 */
            return (ptrdiff_t)((cache.ebx >> 22) + 1) * ((cache.ebx >> 12 & 0x3ff) + 1) * ((cache.ebx & 0xfff) + 1) *
                   (ptrdiff_t)(cache.ecx + 1);
    }
    return 0;
}
#elif defined(TILECORE_EMULATED)
unsigned tilecore_features(void) { return ~(unsigned)TILECORE_HAS_QUICK_MOVSB; }
ptrdiff_t tilecore_l3_bytes(void) { return 0; }
#else /* Every 64-bit Arm has NEON. For a set that some processors lack, ask the system here. */
unsigned tilecore_features(void) { return 0; }
ptrdiff_t tilecore_l3_bytes(void) { return 0; }
#endif

/* Blocks from this size on are copied by REP MOVSB, if it is quick, because it does not read lines before it overwrites
 * them. For smaller blocks `copy` is faster. */
#define TILECORE_MOVSB_BYTES 8192

/* The first row whose features all match applies. Those named were measured, by whole programs (stores) and by long
 * rows (REP MOVSB). Zen 4 without AVX-512 counts as Zen 3. */
static const tilecore_processor tilecore_processors[] = {
    {TILECORE_IS_AMD | TILECORE_HAS_QUICK_MOVSB, 4, TILECORE_MOVSB_BYTES}, /* Zen 5 */
    {TILECORE_HAS_QUICK_MOVSB, 2, TILECORE_MOVSB_BYTES},                   /* Emerald Rapids, Granite Rapids */
    {TILECORE_IS_AMD | TILECORE_HAS_AVX512VBMI, 3, PTRDIFF_MAX},           /* Zen 4 */
    {0, 2, PTRDIFF_MAX},                                                   /* all others; measured on Zen 3 */
};

const tilecore_processor *tilecore_find_processor(unsigned features)
{
    const tilecore_processor *row = tilecore_processors;
    while (row->has & ~features) row++;
    return row;
}

/* ---------------------------------------------------------------- what sets share */

enum {
    TILECORE_FEW_COST = 640,  /* see tilecore_row_cost */
    TILECORE_FEW = 8,         /* up to so many written rows nothing is worth preparing */
    TILECORE_DOUBLING_SPAN = 2048, /* from this span on `doubling` beats `register_rows` and `copies` */
    TILECORE_DOUBLING_BYTES = 8192 /* `replicate` reads at most this much again */
};

/* Rows up to this size are held in registers. */
#define TILECORE_REGISTERS_ROW (8 * TILECORE_WIDTH)

/* Estimates what a row and its copies cost in few_rows (small.h). From a total of TILECORE_FEW_COST on it pays to
 * prepare a kernel, which writes several short rows at once, and holds long ones in registers. */
TILECORE_INLINE ptrdiff_t tilecore_row_cost(ptrdiff_t row, ptrdiff_t copies)
{
    ptrdiff_t cost = row < 8 ? 4 : 2;
    if (row <= 8 && !(row & (row - 1))) return row * copies < 16 ? 3 : 1;
    if (row > 16) cost = row <= 64 ? 10 : 32;
    return cost * (copies < 64 ? copies : 16);
}

/* Loads a row of 1, 2, 4 or 8 bytes, as often as it fits 8 bytes. */
TILECORE_INLINE uint64_t tilecore_load_word(const char *src, const ptrdiff_t row)
{
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (row) {
    case 1: return (uint8_t)*src * UINT64_C(0x0101010101010101);
    case 2: memcpy(&two, src, 2); return two * UINT64_C(0x0001000100010001);
    case 4: memcpy(&four, src, 4); return four * UINT64_C(0x0000000100000001);
    default: memcpy(&eight, src, 8); return eight;
    }
}

/* Whether `copies` has code for this size. */
static int tilecore_has_size(const tilecore_rows *self)
{
    const ptrdiff_t row = self->row;
    return row <= 4 || row == 6 || row == 8 || row == 12 || row == 16;
}

/* Defines the set `name`. `moves`, `packs` and `chooses` name the sets whose functions it uses; each may be itself. */
#define TILECORE_SET(name, moves, packs, chooses, needs, large_store_mode, borrows_from) \
    static const tilecore_set tilecore_set_##name = { \
        #name, needs, tilecore_copy_##moves, tilecore_stream_##moves, tilecore_stream_end_##moves, \
        tilecore_replicate_##moves, tilecore_write_small_##moves, tilecore_transpose_##packs, \
        tilecore_deinterleave_##packs, large_store_mode, tilecore_choose_##chooses, tilecore_row_kernels_##chooses, \
        borrows_from}

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

const tilecore_set *const tilecore_sets[] = {
#if defined(TILECORE_X86)
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
