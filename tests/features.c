/* The set that is chosen, whether REP MOVSB is quick, and from how many quarters of the last cache on stores bypass the
 * caches, by what CPUID and XGETBV say of a processor and its system.
 * Prints what was wrong; the exit status is 0 if nothing was. */
#include "kernels/kernels.h"
#include <cpuid.h>
#include <immintrin.h>
#include <stdio.h>

#define BASIC (bit_OSXSAVE | bit_SSSE3)
#define ALL (bit_AVX512F | bit_AVX512BW | bit_BMI2 | bit_AVX2)

typedef struct {
    const char *set, *vendor;
    unsigned family, leaf1_ecx, leaf7_ebx, vbmi, short_moves, saved, quick;
    int quarters;
} processor;

static const processor processors[] = {
    {"avx512vbmi", "Genu", 6, BASIC, ALL, 1, 1, 0xe7, 1, 2},
    {"avx512amd", "Auth", 26, BASIC, ALL, 1, 1, 0xe7, 1, 4}, /* Zen 5 */
    {"avx512amd", "Auth", 25, BASIC, ALL, 1, 1, 0xe7, 0, 3}, /* Zen 4 */
    {"avx2", "Auth", 25, BASIC, bit_AVX2 | bit_BMI2, 0, 1, 0x07, 0, 2}, /* Zen 3 */
    {"avx512vbmi", "Cent", 26, BASIC, ALL, 1, 1, 0xe7, 0, 2},
    {"avx2", "Genu", 6, BASIC, ALL, 0, 0, 0xe7, 0, 2}, /* without one of the features */
    {"avx2", "Genu", 6, BASIC, ALL & ~bit_AVX512F, 1, 0, 0xe7, 0, 2},
    {"avx2", "Genu", 6, BASIC, ALL & ~bit_AVX512BW, 1, 0, 0xe7, 0, 2},
    {"avx2", "Genu", 6, BASIC, ALL & ~bit_BMI2, 1, 0, 0xe7, 0, 2},
    {"ssse3", "Genu", 6, BASIC, ALL & ~bit_AVX2, 1, 0, 0xe7, 0, 2},
    {"scalar", "Genu", 6, bit_OSXSAVE, 0, 0, 0, 0x07, 0, 2},
    {"avx2", "Genu", 6, BASIC, ALL, 1, 0, 0xc7, 0, 2}, /* registers that the system does not save */
    {"avx2", "Genu", 6, BASIC, ALL, 1, 0, 0xa7, 0, 2},
    {"avx2", "Genu", 6, BASIC, ALL, 1, 0, 0x67, 0, 2},
    {"ssse3", "Genu", 6, BASIC, ALL, 1, 0, 0xe3, 0, 2},
    {"ssse3", "Genu", 6, bit_SSSE3, ALL, 1, 0, 0xe7, 0, 2},
};
static const processor *here = processors;

static int get_cpuid(unsigned leaf, unsigned part, unsigned *eax, unsigned *ebx, unsigned *ecx, unsigned *edx)
{
    if (leaf == 0) memcpy(ebx, here->vendor, 4);
    if (leaf == 1) *eax = here->family < 16 ? here->family << 8 : 15 << 8 | (here->family - 15) << 20;
    if (leaf == 1) *ecx = here->leaf1_ecx;
    if (leaf == 7) *ebx = here->leaf7_ebx, *ecx = here->vbmi << 1, *edx = here->short_moves << 4;
    return (int)part;
}

#undef _xgetbv
#define _xgetbv(number) here->saved
#define __get_cpuid_count get_cpuid
#include "kernels/kernels.c"

int main(void)
{
    const processor *const end = processors + sizeof processors / sizeof *processors;
    int wrong = 0;
    for (; here < end; here++) {
        const unsigned features = tilecore_features(), quick = features & TILECORE_HAS_QUICK_MOVSB;
        const tilecore_set *const *set = tilecore_sets;
        while ((*set)->needs & ~features) set++;
        const int quarters = tilecore_find_processor(features)->quarters;
        if (!strcmp((*set)->name, here->set) && quick == here->quick && quarters == here->quarters) continue;
        printf("processor %d: %s, quick %u, quarters %d\n", (int)(here - processors), (*set)->name, quick, quarters);
        wrong++;
    }
    return wrong;
}
