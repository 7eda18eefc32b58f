/* Vectors of 64 bytes, and masks of 64 lanes, of the AVX-512 sets; masked lanes of memory are never touched. */

#define TILECORE_WIDTH 64
#define TILECORE_SUFFIX " 64" /* of the names of kernels that a set has in two widths */
#define TILECORE_VECTOR __m512i
#define TILECORE_LOAD(p) _mm512_loadu_si512((const void *)(p))
#define TILECORE_STORE(p, v) _mm512_storeu_si512((void *)(p), v)
#define TILECORE_STREAM(p, v) _mm512_stream_si512((__m512i *)(void *)(p), v)
#define TILECORE_STREAMS 1
/* The first n lanes, 0 <= n <= 64. */
#define TILECORE_LANES(n) ((__mmask64)_bzhi_u64(~(uint64_t)0, (unsigned)(n)))
#define TILECORE_LOAD_LANES(lanes, p) _mm512_maskz_loadu_epi8(lanes, (const void *)(p))
/* v, with these lanes loaded. */
#define TILECORE_LOAD_INTO(v, lanes, p) _mm512_mask_loadu_epi8(v, lanes, (const void *)(p))
#define TILECORE_STORE_LANES(p, lanes, v) _mm512_mask_storeu_epi8((void *)(p), lanes, v)
