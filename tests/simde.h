/* Every instruction set's intrinsics in plain C, by SIMDe (https://github.com/simd-everywhere/simde; Debian's
 * libsimde-dev, PyPI's simde-py), for kernels that this processor cannot run. kernels.c includes it when it is
 * compiled with -DTILECORE_EMULATED='"simde.h"'.
 */
#include <string.h>

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/arm/neon.h>
#include <simde/x86/avx512.h>

#define TILECORE_X86 1
#define TILECORE_NEON 1
#define TILECORE_TARGET(isa)

/* What SIMDe lacks: stores past the caches; masked loads and stores of bytes, which touch no masked byte. */
#define _mm512_stream_si512 _mm512_store_si512
#define __mmask64 simde__mmask64
#define _bzhi_u64(x, n) ((n) > 63 ? (x) : (x) & (((uint64_t)1 << (n)) - 1))
#define _mm512_mask_loadu_epi8 emulated_load
#define _mm512_maskz_loadu_epi8(lanes, from) emulated_load(_mm512_setzero_si512(), lanes, from)
#define _mm512_mask_storeu_epi8 emulated_store

static inline __m512i emulated_load(__m512i v, __mmask64 lanes, const void *from)
{
    char bytes[64];
    memcpy(bytes, &v, 64);
    for (int i = 0; i < 64; i++)
        if (lanes >> i & 1) bytes[i] = ((const char *)from)[i];
    memcpy(&v, bytes, 64);
    return v;
}

static inline void emulated_store(void *to, __mmask64 lanes, __m512i v)
{
    char bytes[64];
    memcpy(bytes, &v, 64);
    for (int i = 0; i < 64; i++)
        if (lanes >> i & 1) ((char *)to)[i] = bytes[i];
}
