/* AVX2 shuffles vectors of 32 bytes by halves. Processors from 2013 on have it (Haswell, Excavator). */
#define TILECORE_NAME(name) tilecore_##name##_avx2
#define TILECORE_TARGETED TILECORE_TARGET("avx2")
#define TILECORE_WIDTH 32
#define TILECORE_VECTOR __m256i
#define TILECORE_LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define TILECORE_STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define TILECORE_STREAM(p, v) _mm256_stream_si256((__m256i *)(void *)(p), v)
#define TILECORE_LOAD_HALVES(low, high) \
    _mm256_inserti128_si256( \
        _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(low))), \
        _mm_loadu_si128((const __m128i *)(const void *)(high)), 1)
#define TILECORE_WORDS(a, b, c, d) \
    _mm256_set_epi64x((long long)(d), (long long)(c), (long long)(b), (long long)(a))
#define TILECORE_SHUFFLE(v, mask) _mm256_shuffle_epi8(v, mask)
#define TILECORE_OR(a, b) _mm256_or_si256(a, b)
#define TILECORE_ZIP(end, bits, a, b) _mm256_unpack##end##_epi##bits(a, b)
#include "begin.h"
#include "shuffle_set.h"

TILECORE_SET(avx2, avx2, avx2, avx2, TILECORE_HAS_AVX2, TILECORE_BY_TILES, NULL);
#include "end.h"
