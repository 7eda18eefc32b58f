/* The micro-kernels of tilecore: small loops that write rows of bytes, chosen by size, never by dtype. write/ calls
 * them, by resources/processor.pxd. A plain C program can call them too: no Python.h, no allocation, no error.
 *
 * A *row* lies together in the source and is written again and again. A *span* is a row with all of its copies, so it
 * has row * repeats bytes. Usually rows touch, and so do spans; else src_pitch and dst_pitch are their distances.
 *
 * Example: two rows of three bytes, each written four times, by a set that this processor has (see `needs`).
 *
 *     char dst[24];
 *     tilecore_rows rows;
 *     tilecore_prepare_rows(&rows, tilecore_sets[0], 3, 4, 3, 12, 2, 1);
 *     rows.write(&rows, dst, "abcxyz", 2, 4);          // abcabcabcabcxyzxyzxyzxyz
 *
 * Why not one memcpy per copy? A call takes as long as 50 to 100 bytes take. A store that crosses a cache line takes
 * twice as long as another, and every second store of odd rows crosses one. So most kernels do not ask where a row
 * goes, but which source bytes make a whole, aligned vector of the output. Here vectors of 8 bytes begin at each '|':
 *
 *     source   abcxyz
 *     output   abcabcab|cabcxyzx|yzxyzxyz
 *     index    01201201 20123453 45345345     which source byte each output byte is
 *
 * One load of the source, one permutation by the index and one store make each vector. A *period* is the vectors up to
 * the next one that begins where a span does; after it the indices repeat. Here it is 3 vectors, in general span /
 * gcd(span, width). The *joint* is the vector in which one span ends and the next begins. It needs two rows:
 *
 *     abcabcab|cabcabca|bcabcabc|abcxyzxy|zxyzxyzx     rotate: one row in a register, permuted for each vector
 *                                ~~~~~~~~ joint
 *
 * If there are more than eight copies in all, `choose` of each set chooses a kernel by these sizes, in bytes. Plain C
 * has only the last three kernels.
 *
 *     kernel         AVX2, SSSE3, NEON          VBMI, Intel's                       VBMI, AMD's
 *     permute                                   rows to 32, spans to 192            rows to 32, spans to 128 or 192
 *     rotate                                    rows to 32, longer spans            the same, from 1024 on
 *     spread                                    rows to 64 that lie apart, spans    the same
 *                                               to 64
 *     expand         rows to 16, spans to 64
 *     pattern        rows to 16, longer spans;  25 to 31, twice or three times      3 to 31, spans from 129 (12 to 24:
 *                    AVX2: to 31 that touch                                    193) to 1023
 *     register_rows  to 256                     32 to 256; to 512 in cache 1        32 to 512
 *     doubling       above 256; by AVX2 all     above 128 beyond cache 1, as AVX2
 *                    spans from 2048 on
 *     copies         all others, such as rows that are written once, and words with gaps after them
 *
 *     permute        loads an index for each vector of a period
 *     rotate         keeps the row in a register, and permutes it anew for each vector
 *     spread         moves as many rows as a vector holds, by one load and one store of their lanes alone
 *     expand         works as permute, but shuffles each 16 bytes by themselves; writes a few vectors of whole spans
 *     pattern        puts as many copies as fit 32 bytes in a register, and stores it at steps of whole rows
 *     register_rows  holds a row in two to eight vectors, or halves of them, and stores these for each copy; the last
 *                    overlaps
 *     doubling       copies what is written so far after itself, again and again
 *     copies         writes each copy by itself
 *
 * Each set also has `copy` (contiguous bytes), `replicate` (a block again and again after itself) and `stream` (a copy
 * that bypasses the caches, for outputs from TILECORE_STREAM_BYTES on), of any number of bytes. A source without
 * contiguous rows is first packed to contiguous rows (write/panels.pyx), by item sizes:
 *
 *     transpose      transposes tiles in registers, by perfect shuffles: 16 items of a byte from each of 32 rows
 *     deinterleave   shuffles a few 16 bytes each: items at steps, also backward, alone or in groups of 2 to 4 that lie
 *                    together or come from as many rows
 *
 * kernels.c has the table of instruction sets, the best first. All that chooses or runs a set walks this table. A set
 * is a file in isa/: its vectors, in the macros that begin.h lists; its `choose`; and its entry in the table,
 * TILECORE_SET. isa/ also holds the kernels, each written once, in these macros. Each set includes the kernels that it
 * has, so these files have no include guards. For AVX2, TILECORE_NAME(pattern) in short_rows.h is
 * tilecore_pattern_avx2, and TILECORE_KERNEL(pattern), its tilecore_row_kernel, is tilecore_pattern_kernel_avx2. To add
 * a kernel or a set, follow docs/changes.md: it lists every place.
 *
 * Safety. These rules hold for all functions here and in isa/ that do not state otherwise. A function reads the source
 * rows that its arguments describe, and no other byte: the next page may be forbidden. It writes each byte of the
 * destination rows, and none before, between or after them. It never touches masked lanes. Source and destination do
 * not overlap, nor do destination rows. Pointers need no alignment, pitches may be negative, and counts are at least 1.
 * A kernel states what else it needs by TILECORE_ASSERT, which checks it. */
#pragma once

#include <string.h>

#include "../config.h"

/* States what a kernel needs of its caller. Only tests, sanitizers and fuzzing check it, by -DTILECORE_CHECKED. */
#if defined(TILECORE_CHECKED)
#include <stdio.h>
#include <stdlib.h>
#define TILECORE_ASSERT(need) \
    ((need) ? (void)0 : (fprintf(stderr, "%s:%d: %s needs %s\n", __FILE__, __LINE__, __func__, #need), abort()))
#else
#define TILECORE_ASSERT(need) ((void)sizeof(need)) /* does nothing */
#endif

enum {
    TILECORE_EXPAND_VECTORS = 4, /* the most vectors of a period of expand: registers hold their masks */
    TILECORE_INDEX_BYTES = 256    /* what a byte can count */
};

typedef struct tilecore_rows tilecore_rows;

/* Writes `rows` rows, each `repeats` times: reads `row` bytes at src + i * src_pitch, and writes their span at dst + i
 * * dst_pitch. It may write less than was prepared: fewer rows, or fewer repeats of a single prepared row. */
typedef void (*tilecore_write_rows)(const tilecore_rows *self, char *dst, const char *src, ptrdiff_t rows,
                                    ptrdiff_t repeats);

/* Rows of one shape, and the kernel that was chosen for them. Filled by tilecore_prepare_rows. */
struct tilecore_rows {
    ptrdiff_t row;       /* bytes of one row */
    ptrdiff_t src_pitch; /* bytes from one source row to the next; may be 0 or negative */
    ptrdiff_t dst_pitch; /* bytes from one span to the next */
    ptrdiff_t span;      /* row * repeats */
    int in_first_cache;  /* whether the output, once written, lies in the first-level cache */
    tilecore_write_rows write;
    union { /* what a kernel has prepared for itself */
        struct {
            uint8_t pattern[32]; /* byte j of the register is this byte of what was loaded */
            int vectors;         /* 32-byte stores of one period, which reads `period_rows` rows */
            ptrdiff_t period_rows;
            ptrdiff_t reach; /* source bytes that the loads of one period touch */
            uint16_t offset[TILECORE_EXPAND_VECTORS][2]; /* where each half of a vector is loaded */
            TILECORE_ALIGNED uint8_t mask[TILECORE_EXPAND_VECTORS][32];
        } short_rows;
        struct {
            uint8_t index[64];
            uint64_t from, to; /* lanes of the source and of the output */
            ptrdiff_t rows;    /* the number in a vector */
        } spread;
        uint8_t index[TILECORE_INDEX_BYTES]; /* byte k of the output is this byte of the source */
    } u;
};

/* One way to write rows. */
typedef struct tilecore_row_kernel {
    const char *name;
    tilecore_write_rows write;
    /* For tests and benchmarks: whether it may write rows of this shape. NULL: it may write all. */
    int (*can)(const tilecore_rows *self, ptrdiff_t rows);
    /* Fills `u` of the rows. NULL: the kernel needs nothing there. */
    void (*prepare)(tilecore_rows *self, ptrdiff_t rows);
} tilecore_row_kernel;

/* ---------------------------------------------------------------- instruction sets */
enum {
    TILECORE_CELL_ROWS = 128,
    TILECORE_PREFETCHED_ROWS = 16, /* a transposition prefetches a line of the row so many rows below */
    TILECORE_CELL_BYTES = 2 * (TILECORE_CELL_ROWS + 64) * 64, /* of source and output: their lines, and 64 before */
    /* Rows that lie whole multiples of this apart compete for a few lines of the first-level cache. So a transposition
     * first copies their lines to cells, their panels are squares, and rows in scratch lie a line farther apart. */
    TILECORE_ALIAS_BYTES = 1024
};

/* `transpose` writes tile by tile; column by column, where it can; or past the caches, in whole lines. */
enum {
    TILECORE_BY_TILES,
    TILECORE_BY_COLUMNS,
    TILECORE_BY_STREAM,
};

typedef struct tilecore_shuffles tilecore_shuffles; /* packing.h */

/* The kernels of one instruction set. */
typedef struct tilecore_set {
    const char *name;
    unsigned needs; /* bits of tilecore_features */
    void (*copy)(char *dst, const char *src, ptrdiff_t bytes); /* also of 0 bytes */
    /* Does what `copy` does, past the caches. Other threads see the bytes after `stream_end`. */
    void (*stream)(char *dst, const char *src, ptrdiff_t bytes);
    void (*stream_end)(void);
    /* Writes the first `bytes` bytes of dst `count` - 1 times more, directly after them. Touches dst alone. */
    void (*replicate)(char *dst, ptrdiff_t bytes, ptrdiff_t count);
    /* Writes a whole small result, not empty, C-contiguous from C-contiguous: TILECORE_NAME(write_small), small.h. */
    void (*write_small)(const struct tilecore_set *self, int ndim, const ptrdiff_t *shape, const ptrdiff_t *repeats,
                        ptrdiff_t itemsize, char *dst, const char *src);
    /* Packs items of 1, 2, 4, 8 or 16 bytes, and of no other size, from a strided source to contiguous rows, in one of
     * the ways above: dst[c * dst_pitch + r * item] = src[r * src_pitch + c * item]. After `stream_end` other threads
     * see what bypassed the caches. `cells`: scratch of TILECORE_CELL_BYTES, for stores past the caches, and for a
     * src_pitch of whole TILECORE_ALIAS_BYTES. NULL: it uses ordinary stores and no cells. */
    void (*transpose)(char *dst, ptrdiff_t dst_pitch, const char *src, ptrdiff_t src_pitch, ptrdiff_t rows,
                      ptrdiff_t columns, ptrdiff_t item, int store_mode, char *cells);
    /* Packs rows of `count` groups of items at steps, as prepared; with `stream`, past the caches. Reads from the first
     * item's address to the last one's, also between items. NULL: the set has none. */
    void (*deinterleave)(const tilecore_shuffles *self, char *dst, ptrdiff_t dst_pitch, const char *src,
                         ptrdiff_t src_pitch, ptrdiff_t rows, ptrdiff_t count, int stream);
    int large_store_mode; /* the store_mode of `transpose` for large outputs that do not bypass the caches */
    const tilecore_row_kernel *(*choose)(const tilecore_rows *self, ptrdiff_t repeats, ptrdiff_t rows);
    /* For tests and benchmarks: what `choose` chooses from, then NULL; and the set that it borrows from, or NULL. */
    const tilecore_row_kernel *const *row_kernels;
    const struct tilecore_set *borrows_from;
} tilecore_set;

/* From the best to the plainest, then NULL. Every processor has the last. */
extern const tilecore_set *const tilecore_sets[];

/* A bit of tilecore_features that no set needs: REP MOVSB is quick, for all alignments. */
enum { TILECORE_HAS_QUICK_MOVSB = 1 };

/* What is faster on a processor: no instruction reports it. */
typedef struct tilecore_processor {
    unsigned has;          /* bits of tilecore_features */
    int quarters;          /* of the last cache, from which on outputs are written past the caches */
    ptrdiff_t movsb_bytes; /* blocks from this size on are copied by REP MOVSB */
} tilecore_processor;

/* The row of a processor with these features. */
const tilecore_processor *tilecore_find_processor(unsigned features);

/* Copies as memcpy does, also 0 bytes, by REP MOVSB where there is one. */
TILECORE_INLINE void tilecore_movsb(char *dst, const char *src, ptrdiff_t bytes)
{
#if defined(__x86_64__)
    __asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(bytes) : : "memory");
#else /* on Windows MSVC's memcpy chooses it by itself */
    memcpy(dst, src, (size_t)bytes);
#endif
}

/* What the processor has and the operating system saves. A set needs all its bits. Slow on virtual machines. */
unsigned tilecore_features(void);

/* The size of the third-level cache; 0: none, or not known. */
ptrdiff_t tilecore_l3_bytes(void);

/* Chooses the kernel for `rows` rows of `row` bytes, each written `repeats` times. `in_first_cache`: what is written
 * meanwhile is so little that it stays in the first-level cache. */
TILECORE_INLINE void tilecore_prepare_rows(tilecore_rows *self, const tilecore_set *kernels, ptrdiff_t row,
                                           ptrdiff_t repeats, ptrdiff_t src_pitch, ptrdiff_t dst_pitch,
                                           ptrdiff_t rows, int in_first_cache)
{
    const tilecore_row_kernel *kernel;
    TILECORE_ASSERT(row > 0 && repeats > 0 && rows > 0);
    TILECORE_ASSERT(rows == 1 || dst_pitch >= row * repeats || -dst_pitch >= row * repeats);
    self->row = row;
    self->src_pitch = src_pitch;
    self->dst_pitch = dst_pitch;
    self->span = row * repeats;
    self->in_first_cache = in_first_cache;
    kernel = kernels->choose(self, repeats, rows);
    if (kernel->prepare) kernel->prepare(self, rows);
    self->write = kernel->write;
}
