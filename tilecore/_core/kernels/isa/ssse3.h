/* SSSE3 shuffles 16 bytes. Every x86-64 processor since 2011 has it. */
#define TILECORE_NAME(name) tilecore_##name##_ssse3
#define TILECORE_TARGETED TILECORE_TARGET("ssse3")
#define TILECORE_HALF __m128i
#define TILECORE_LOAD_HALF(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define TILECORE_STORE_HALF(p, h) _mm_storeu_si128((__m128i *)(void *)(p), h)
#define TILECORE_STREAM_HALF(p, h) _mm_stream_si128((__m128i *)(void *)(p), h)
#define TILECORE_WORDS_HALF(low, high) _mm_set_epi64x((long long)(high), (long long)(low))
#define TILECORE_SHUFFLE_HALF(h, mask) _mm_shuffle_epi8(h, mask)
#define TILECORE_OR_HALF(a, b) _mm_or_si128(a, b)
#define TILECORE_ZIP(end, bits, a, b) _mm_unpack##end##_epi##bits(a, b)
#include "begin.h"
#include "shuffle_set.h"

TILECORE_SET(ssse3, ssse3, ssse3, ssse3, TILECORE_HAS_SSSE3, TILECORE_BY_TILES, NULL);
#include "end.h"
