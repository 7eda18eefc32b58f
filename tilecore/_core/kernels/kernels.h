/* ESSAY */
#ifndef TILECORE_KERNELS_H
#define TILECORE_KERNELS_H

#include <string.h>

#include "config.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* ---------------------------------------------------------------- rows */

enum {
    TILECORE_EXPAND_VECTORS = 40, /* the most vectors of a period that expand prepares */
    TILECORE_INDEX_BYTES = 256    /* what a byte can count */
};

/* Rows of one shape, and the kernel that was chosen for them. Filled by tilecore_prepare_rows. */
typedef struct tilecore_rows {
    ptrdiff_t row;       /* bytes of one row */
    ptrdiff_t src_pitch; /* bytes from one source row to the next; may be 0 or negative */
    ptrdiff_t dst_pitch; /* bytes from one span to the next */
    ptrdiff_t span;      /* row * repeats */
    int in_first_cache;            /* the output, once written, lies in the first-level cache */
    /* Writes `rows` rows, each `repeats` times. What was prepared may be written in parts: fewer
     * rows, or a single row with fewer repeats. */
    void (*write)(const struct tilecore_rows *self, char *dst, const char *src, ptrdiff_t rows,
                  ptrdiff_t repeats);
    /* What a kernel has prepared for itself. */
    union {
        struct {
            uint8_t pattern[32]; /* byte j of the register is this byte of what was loaded */
            int vectors;         /* 32-byte stores of one period, which reads `period_rows` rows */
            ptrdiff_t period_rows;
            ptrdiff_t reach; /* source bytes that the loads of one period touch */
            uint16_t offset[TILECORE_EXPAND_VECTORS][2]; /* where each half of a vector is loaded */
            TILECORE_ALIGNED uint8_t mask[TILECORE_EXPAND_VECTORS][32];
        } narrow;
        uint8_t index[TILECORE_INDEX_BYTES]; /* byte k of the output is this byte of the source */
    } u;
} tilecore_rows;

typedef void (*tilecore_write_rows)(const tilecore_rows *self, char *dst, const char *src,
                                    ptrdiff_t rows, ptrdiff_t repeats);

/* One way to write rows. */
typedef struct tilecore_row_kernel {
    const char *name;
    tilecore_write_rows write;
    /* Whether it can write rows of this shape; NULL: rows of all shapes. */
    int (*can)(const tilecore_rows *self, ptrdiff_t repeats, ptrdiff_t rows);
    /* Makes what it needs beforehand; NULL: nothing. */
    void (*prepare)(tilecore_rows *self);
} tilecore_row_kernel;

/* ---------------------------------------------------------------- instruction sets */

/* The kernels of one instruction set. */
typedef struct tilecore_kernels {
    const char *name;
    unsigned needs; /* of tilecore_features */
    void (*copy)(char *dst, const char *src, ptrdiff_t bytes);
    /* As copy; the bytes are in memory for other threads after `stream_end`. */
    void (*stream)(char *dst, const char *src, ptrdiff_t bytes);
    void (*stream_end)(void);
    /* The first `bytes` bytes of dst, written `count` - 1 times more, directly behind. */
    void (*replicate)(char *dst, ptrdiff_t bytes, ptrdiff_t count);
    const tilecore_row_kernel *(*choose)(const tilecore_rows *self, ptrdiff_t repeats, ptrdiff_t rows);
    const tilecore_row_kernel *rows[8]; /* all that `choose` chooses from, then NULL */
} tilecore_kernels;

/* From the best to the plainest, then NULL. The last can be used everywhere. */
extern const tilecore_kernels *const tilecore_sets[];

/* What the processor has and the operating system saves: a set can be used where all that it needs
 * is there. Slow on virtual machines. */
unsigned tilecore_features(void);

/* Chooses the kernel for `rows` rows of `row` bytes (at least 1), each written `repeats` times. `in_first_cache`: all the
 * output, whoever else writes to it, is so small that it lies in the first-level cache. */
void tilecore_prepare_rows(tilecore_rows *self, const tilecore_kernels *kernels, ptrdiff_t row,
                           ptrdiff_t repeats, ptrdiff_t src_pitch, ptrdiff_t dst_pitch, ptrdiff_t rows,
                           int in_first_cache);

#if defined(__cplusplus)
}
#endif

#endif /* TILECORE_KERNELS_H */
