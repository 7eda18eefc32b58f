/* A vector of 32 bytes as two halves of 16, for sets with registers of 16. */

typedef struct {
    TILECORE_HALF low, high;
} TILECORE_NAME(vector);
#define TILECORE_VECTOR TILECORE_NAME(vector)
#define TILECORE_WIDTH 32 /* of both halves */
#define TILECORE_STORE_WIDTH 16
#define TILECORE_SUFFIX ""
TILECORE_INLINE TILECORE_TARGETED TILECORE_VECTOR TILECORE_NAME(load_halves)(const char *low, const char *high)
{
    TILECORE_VECTOR v;
    v.low = TILECORE_LOAD_HALF(low);
    v.high = TILECORE_LOAD_HALF(high);
    return v;
}
#define TILECORE_LOAD_HALVES(low, high) \
    TILECORE_NAME(load_halves)((const char *)(low), (const char *)(high))
#define TILECORE_LOAD(p) TILECORE_LOAD_HALVES(p, (const char *)(p) + 16)
#define TILECORE_STORE(p, v) (TILECORE_STORE_HALF(p, (v).low), TILECORE_STORE_HALF((char *)(p) + 16, (v).high))
#if defined(TILECORE_STREAM_HALF)
#define TILECORE_STREAM(p, v) (TILECORE_STREAM_HALF(p, (v).low), TILECORE_STREAM_HALF((char *)(p) + 16, (v).high))
#endif
#if defined(TILECORE_SHUFFLE_HALF)
TILECORE_INLINE TILECORE_TARGETED TILECORE_VECTOR TILECORE_NAME(words)(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    TILECORE_VECTOR v;
    v.low = TILECORE_WORDS_HALF(a, b);
    v.high = TILECORE_WORDS_HALF(c, d);
    return v;
}
TILECORE_INLINE TILECORE_TARGETED TILECORE_VECTOR TILECORE_NAME(shuffle)(TILECORE_VECTOR v, TILECORE_VECTOR mask)
{
    v.low = TILECORE_SHUFFLE_HALF(v.low, mask.low);
    v.high = TILECORE_SHUFFLE_HALF(v.high, mask.high);
    return v;
}
TILECORE_INLINE TILECORE_TARGETED TILECORE_VECTOR TILECORE_NAME(either)(TILECORE_VECTOR a, TILECORE_VECTOR b)
{
    a.low = TILECORE_OR_HALF(a.low, b.low);
    a.high = TILECORE_OR_HALF(a.high, b.high);
    return a;
}
#define TILECORE_OR(a, b) TILECORE_NAME(either)(a, b)
#define TILECORE_WORDS(a, b, c, d) TILECORE_NAME(words)(a, b, c, d)
#define TILECORE_SHUFFLE(v, mask) TILECORE_NAME(shuffle)(v, mask)
#endif
