/* Compilers, and the sizes that several files use. The bounds of rows are in kernels.c and in each set's `choose`,
 * those of threads in workers.h. Plain C11 / C++17; no Python.h. */
#ifndef TILECORE_CONFIG_H
#define TILECORE_CONFIG_H

#include <stddef.h>
#include <stdint.h>

/* ---------------------------------------------------------------- tunables, each with its reason */

/* Bytes of output that are produced at once and, where they repeat, copied on while still hot: half of the smallest
 * first-level cache, so what they are copied to does not push them out. Into 1 to 6 MB, one thread, 32 KiB take 1.1 to
 * 1.25 times as long on Zen 3, and 1.5 times on Zen 5. */
#define TILECORE_BLOCK_BYTES 16384

/* From this much output on the GIL is released: releasing and taking it back costs about 0.1 us. */
#define TILECORE_NOGIL_BYTES 65536

/* From this much output on several threads write it: workers.h says how many. No tested host loses from this bound on:
 * to wake a virtual processor takes as long as one core takes to write 2 MB into its cache. One thread's time over
 * two's: Zen 4 2.2 MB 0.84, 3 MB 1.0, 4 to 9 MB 1.05 to 1.25; Zen 3 1.6 MB 0.8, 2 to 4 MB 1.0; Sapphire Rapids 2 MB 1.4
 * to 2.0. Into new memory, where the first touch of a huge page takes as long as to write it, from twice as much on:
 * Zen 4 6 MB 1.0, 8 to 500 MB 1.25 to 2.0. Told in the docstrings of tile and get_num_threads, in tilecore.h,
 * docs/threads.md and docs/numba.md. */
#define TILECORE_THREAD_BYTES ((ptrdiff_t)4 << 20)

/* A call in the main thread checks for signals this often, and reads the clock each time that it has written this much:
 * less than 0.1 s, even of bytes that lie 4 KiB apart in the source. At least TILECORE_THREAD_BYTES: what is written
 * between two checks is worth several threads. */
#define TILECORE_CHECK_MILLISECONDS 50
#define TILECORE_CHECK_BYTES ((ptrdiff_t)4 << 20)

/* Results from this size on lie in recycled memory (arena.h): from this size on glibc maps memory, and gives the top
 * of its heap back whenever a program drops arrays of several sizes. */
#ifndef TILECORE_LEAST_RECYCLED_BYTES
#define TILECORE_LEAST_RECYCLED_BYTES ((ptrdiff_t)128 << 10)
#endif

/* Recycled memory comes in granules, from arenas of at least this many bytes, which are opened in steps of this many
 * granules. */
#define TILECORE_GRANULE_BYTES ((ptrdiff_t)32 << 10)
#define TILECORE_ARENA_BYTES ((ptrdiff_t)(sizeof(void *) > 4 ? 1024 : 64) << 20)
#define TILECORE_OPENED 256

/* The idle pages that a program keeps beyond the most that it had in use at once: programs vary. */
#define TILECORE_SPARE_BYTES ((ptrdiff_t)64 << 20)

/* From this size on the system is asked for address limits in each call: 0.3 us, of more than 100. */
#define TILECORE_ASKED_BYTES ((ptrdiff_t)4 << 20)

/* Idle memory that is not asked for in this time goes back. New memory takes 0.1 to 0.6 s a gigabyte: a program
 * that needs a gigabyte a little less often loses 1 % by it. */
#ifndef TILECORE_IDLE_MILLISECONDS
#define TILECORE_IDLE_MILLISECONDS 60000
#endif

/* The cost of sharing pages among repeats, in bytes that an ordinary result would write in that time (8 a
 * nanosecond): 4 us for a mapping, and 1.1 to 2.4 GB/s into a file in memory. The gain is in time, at least. */
#define TILECORE_MAPPING_COST 32768
#define TILECORE_FILE_COST 6
#define TILECORE_MAPPED_GAIN 2

/* Non-temporal stores replace ordinary ones for outputs beyond this part of the last-level cache: they do not read a
 * line before they overwrite it. Smaller outputs fit the cache. */
#define TILECORE_STREAM_BYTES(cache) ((cache) / 8 * 5)
/* The last-level cache where the system does not tell its size. */
#define TILECORE_LAST_CACHE_BYTES ((ptrdiff_t)32 << 20)
/* The most to count on of a last-level cache: one of 100 to 300 MiB is shared with other machines. With one of 105 MiB
 * non-temporal stores took as long as others into 16 MiB, with one thread 0.6 to 1.0 of their time into 24 MiB, with
 * two 0.7 to 0.9 into 32 MiB; also where the result was read next. */
#define TILECORE_LAST_CACHE_MOST ((ptrdiff_t)40 << 20)

/* Blocks from this size on are copied by the C library, where its copy is known to be quick for all alignments
 * (TILECORE_HAS_QUICK_MEMCPY): 1.2 times as fast into 8 to 32 MiB, because REP MOVSB does not read what it overwrites.
 * Our own copy of smaller ones is quicker: 1.3 times for 400 bytes. */
#define TILECORE_LIBC_COPY_BYTES 8192

/* ---------------------------------------------------------------- compiler */

#if defined(_MSC_VER) && !defined(__clang__)
#define TILECORE_COMPILER "MSVC"
#define TILECORE_INLINE static __forceinline
#define TILECORE_NOINLINE __declspec(noinline)
#define TILECORE_UNROLL
#define TILECORE_UNUSED
#define TILECORE_ALIGNED __declspec(align(32))
#else /* GCC, Clang, and those that take their place */
#define TILECORE_INLINE static inline __attribute__((always_inline, unused))
#define TILECORE_NOINLINE __attribute__((noinline))
#define TILECORE_UNUSED __attribute__((unused))
#define TILECORE_ALIGNED __attribute__((aligned(32)))
#if defined(__clang__)
#define TILECORE_COMPILER "clang " __clang_version__
#define TILECORE_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TILECORE_COMPILER "gcc " __VERSION__
#define TILECORE_UNROLL _Pragma("GCC unroll 16")
#endif
#endif

/* a * b for a, b >= 0 into *product; 1 where it does not fit a ptrdiff_t. */
TILECORE_INLINE int tilecore_multiply(ptrdiff_t a, ptrdiff_t b, ptrdiff_t *product)
{
#if defined(_MSC_VER) && !defined(__clang__)
    if (a != 0 && b > PTRDIFF_MAX / a) return 1;
    *product = a * b;
    return 0;
#else
    return __builtin_mul_overflow(a, b, product);
#endif
}

#endif /* TILECORE_CONFIG_H */
