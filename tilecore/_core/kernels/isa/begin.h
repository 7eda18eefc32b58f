/* The beginning of a set: what it must define, and what it may. A set defines these macros, includes this file and the
 * kernels that it has, and ends with TILECORE_SET and end.h. The kernels use these macros alone; permute.h, which only
 * AVX-512 has, uses others too. A macro that is new here also needs its #undef in end.h: otherwise the next set in
 * kernels.c has it too. docs/changes.md lists the other places of a new set.
 *
 *     all sets       TILECORE_NAME(name)    the name of a function or type of this set: tilecore_##name##_avx2
 *
 *     either         TILECORE_WIDTH         bytes of a vector: 32; or 64, and then register_rows.h calls AVX2's
 *                    TILECORE_VECTOR        its type, of a known size, because arrays and structs hold it. A sizeless
 *                                           one (RISC-V's, SVE) needs a fixed width (-mrvv-vector-bits) or a wrapper
 *                    TILECORE_LOAD(p), TILECORE_STORE(p, v)    at any address
 *     or             TILECORE_HALF          the type of a register of 16 bytes: two are a vector, below
 *                    TILECORE_LOAD_HALF(p), TILECORE_STORE_HALF(p, h)
 *
 *     optional       TILECORE_TARGETED      an attribute of each function, for the compiler: else none
 *                    TILECORE_SUFFIX        in the names of kernels that a set has in two widths: else ""
 *                    TILECORE_STORE_WIDTH   bytes that a store writes at once: else those of a vector
 *                    TILECORE_STREAM(p, v)  stores a vector past the caches, at an aligned address: else an ordinary
 *                                           store. It needs x86, because `stream_end` (copy.h) is x86's fence
 *
 *     to shuffle     TILECORE_LOAD_HALVES(low, high)    16 bytes from each address. shuffle_set.h needs these macros;
 *                    TILECORE_WORDS(a, b, c, d)         without them transpose.h moves items in plain C
 *                    TILECORE_SHUFFLE(v, mask)          in each half of 16 bytes: 0 for a byte of the mask from 0x80 on
 *                    TILECORE_OR(a, b)
 *                    TILECORE_ZIP(end, bits, a, b)      items of `bits` bits, in turn, of the `lo` or `hi` 8 bytes of a
 *                                                       and b, in each register
 *
 * With TILECORE_HALF, a set defines STREAM, WORDS, SHUFFLE and OR for halves: TILECORE_STREAM_HALF(p, h),
 * TILECORE_WORDS_HALF(a, b) and so on. */
#if !defined(TILECORE_NAME) || !(defined(TILECORE_VECTOR) || defined(TILECORE_HALF))
#error "a set defines TILECORE_NAME, and TILECORE_VECTOR or TILECORE_HALF"
#endif
#define TILECORE_KERNEL(name) TILECORE_NAME(name##_kernel)
#if !defined(TILECORE_TARGETED)
#define TILECORE_TARGETED
#endif
#if !defined(TILECORE_SUFFIX)
#define TILECORE_SUFFIX ""
#endif

#if defined(TILECORE_HALF) /* ---------------------------------------------------------------- two registers */
#if !defined(TILECORE_LOAD_HALF) || !defined(TILECORE_STORE_HALF)
#error "a set of halves defines TILECORE_LOAD_HALF and TILECORE_STORE_HALF"
#endif
typedef struct {
    TILECORE_HALF low, high;
} TILECORE_NAME(vector);
#define TILECORE_VECTOR TILECORE_NAME(vector)
#define TILECORE_WIDTH 32 /* of both halves */
#define TILECORE_STORE_WIDTH 16
TILECORE_INLINE TILECORE_TARGETED TILECORE_VECTOR TILECORE_NAME(load_halves)(const char *low, const char *high)
{
    const TILECORE_VECTOR v = {TILECORE_LOAD_HALF(low), TILECORE_LOAD_HALF(high)};
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
    const TILECORE_VECTOR v = {TILECORE_WORDS_HALF(a, b), TILECORE_WORDS_HALF(c, d)};
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
#endif

#if !defined(TILECORE_WIDTH) || !defined(TILECORE_LOAD) || !defined(TILECORE_STORE)
#error "a set of whole vectors defines TILECORE_WIDTH, TILECORE_LOAD and TILECORE_STORE"
#endif
#if !defined(TILECORE_STORE_WIDTH)
#define TILECORE_STORE_WIDTH TILECORE_WIDTH
#endif
