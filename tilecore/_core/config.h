/* Compilers, and sizes that several files or the documentation use; the other headers of _core include it. The bounds
 * of rows are in kernels.c, short_rows.h and each set's `choose`, those of chunks in workers.h. C11 / C++17; no
 * Python.h. */
#pragma once

#if !defined(_GNU_SOURCE) /* runtime/ needs it on Linux; Python.h defines it too */
#define _GNU_SOURCE 1
#endif
#include <stddef.h>
#include <stdint.h>

/* The smallest first-level cache for data; and what is assumed of the last-level cache if its size is not known. */
#define TILECORE_FIRST_CACHE_BYTES 32768
#define TILECORE_LAST_CACHE_BYTES ((ptrdiff_t)32 << 20)
/* The share of a last cache that one program can count on. Many cores share a cache above the second size. */
#define TILECORE_OWN_CACHE_BYTES (40 << 20)
#define TILECORE_SHARED_CACHE_BYTES (240 << 20)
#define TILECORE_CACHE_QUARTERS(l3, n) (((l3) < TILECORE_OWN_CACHE_BYTES ? (l3) : TILECORE_OWN_CACHE_BYTES) / 4 * (n))

/* Outputs from this size on are written by stores past the caches, which do not read a line before they overwrite it.
 * Found by the time of a tiling and of what uses its result, in a program that makes other arrays.
 *
 *     last cache       bound
 *     up to 240 MiB    2, 3 or 4 quarters of it (tilecore_processor), and at most as many of 40 MiB
 *     larger           a twelfth of it */
#define TILECORE_STREAM_BYTES(l3, n) ((l3) > TILECORE_SHARED_CACHE_BYTES ? (l3) / 12 : TILECORE_CACHE_QUARTERS(l3, n))

/* A block is so many bytes of output, made at once and, if they repeat, copied while still in the first-level cache:
 * half of that, so that copies do not evict it. */
#define TILECORE_BLOCK_BYTES (TILECORE_FIRST_CACHE_BYTES / 2)

/* From this much output on the GIL is released: releasing and acquiring it costs about 0.1 us. */
#define TILECORE_NOGIL_BYTES 65536

/* From this much output on several threads may write it: learn_threads.c finds out whether that is faster. For new
 * pages, without `threads=`, the bound is higher, because the first touch of a huge page takes as long as writing it.
 * `SIZES` in tests/test_docs.py lists the texts that state these bounds. */
#define TILECORE_THREAD_BYTES ((ptrdiff_t)1 << 20)
#define TILECORE_NEW_THREAD_BYTES ((ptrdiff_t)8 << 20)
/* Two threads may write TILECORE_THREAD_BYTES. Of three or more, each writes at least this much. */
#define TILECORE_BYTES_A_THREAD ((ptrdiff_t)2 << 20)

/* The maximum number of threads that write one result. Larger numbers mean the same. */
#define TILECORE_MAX_THREADS 256

/* What threads do: blocks, and bands of regions; panels; arrays of a list. Each kind has records in learn_threads.c. */
enum tilecore_task_kinds { TILECORE_BLOCKS,
                           TILECORE_PANELS,
                           TILECORE_ARRAYS,
                           TILECORE_TASK_KINDS };

/* A call in the main thread that writes at least TILECORE_CHECK_BYTES checks for signals after
 * TILECORE_FIRST_CHECK_NANOSECONDS, then every TILECORE_CHECK_NANOSECONDS. It reads the clock after each chunk
 * (workers.c), and after TILECORE_CHECK_BYTES of smaller parts: to write these takes less than 0.1 s, even if they lie
 * 4 KiB apart in the source. */
#define TILECORE_CHECK_NANOSECONDS 50000000
#define TILECORE_FIRST_CHECK_NANOSECONDS 5000000
#define TILECORE_CHECK_BYTES ((ptrdiff_t)4 << 20)

/* Results below this size are small: write/results.pyx creates and writes them at once, without a choice of panels and
 * threads, if the source is contiguous, or packs into 4 KiB. Others lie in recycled memory (arena.c), if they are at
 * most the recycle limit: from this size on glibc maps pages, and it trims its heap whenever a program frees arrays of
 * several sizes. */
#ifndef TILECORE_SMALL_BYTES
#define TILECORE_SMALL_BYTES ((ptrdiff_t)128 << 10)
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#define TILECORE_COMPILER "MSVC"
#define TILECORE_INLINE static __forceinline
#define TILECORE_NOINLINE __declspec(noinline)
#define TILECORE_UNROLL
#define TILECORE_PREFETCH(at) ((void)0)
#define TILECORE_ALIGNED __declspec(align(32))
#else /* GCC, Clang, and compatible compilers */
#define TILECORE_INLINE static inline __attribute__((always_inline, unused))
#define TILECORE_NOINLINE __attribute__((noinline))
#define TILECORE_ALIGNED __attribute__((aligned(32)))
#define TILECORE_PREFETCH(at) __builtin_prefetch(at)
#if defined(__clang__)
#define TILECORE_COMPILER "clang " __clang_version__
#define TILECORE_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TILECORE_COMPILER "gcc " __VERSION__
#define TILECORE_UNROLL _Pragma("GCC unroll 16")
#endif
#endif

/* Sets *product to a * b, for a, b >= 0. Returns 1 if that does not fit a ptrdiff_t. For b < 0 both mean nothing. */
TILECORE_INLINE int tilecore_multiply(ptrdiff_t a, ptrdiff_t b, ptrdiff_t *product)
{
#if defined(_MSC_VER) && !defined(__clang__)
    *product = 0;
    if (b < 0 || (a != 0 && b > PTRDIFF_MAX / a)) return 1;
    *product = a * b;
    return 0;
#else
    return __builtin_mul_overflow(a, b, product);
#endif
}

/* What calls learn is kept by classes of sizes: two for each power of two, from 1 MiB on. */
#define TILECORE_SIZE_CLASSES 20
TILECORE_INLINE int tilecore_size_class(ptrdiff_t bytes)
{
    int size = 0;
    for (bytes >>= 19; bytes > 3 && size < TILECORE_SIZE_CLASSES - 2; bytes >>= 1) size += 2;
    return size + (bytes > 2);
}
