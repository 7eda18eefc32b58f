/* Calls each kernel of each instruction set that this processor has, for kernels.py.
 *
 *     cc -O3 -falign-loops=64 -shared -fPIC -I../tilecore/_core kernels.c ../tilecore/_core/kernels/kernels.c \
 *         -o kernels.so
 */
#include <stdlib.h>

#include "kernels/kernels.h"

/* Writes `rows` rows of `row` bytes, `pitch` bytes apart in the source, each `repeats` times. */
typedef struct job {
    struct job *next;
    const char *set, *kernel;
    int chosen; /* by tilecore_prepare_rows */
    void (*run)(const struct job *self, char *dst, const char *src);
    ptrdiff_t row, repeats, rows, pitch;
    const tilecore_set *kernels;
    tilecore_rows prepared;
} job;

static void run_rows(const job *self, char *dst, const char *src)
{
    self->prepared.write(&self->prepared, dst, src, self->rows, self->repeats);
}

static void run_stream(const job *self, char *dst, const char *src)
{
    for (ptrdiff_t i = 0; i < self->repeats; i++) self->kernels->stream(dst + i * self->row, src, self->row);
    self->kernels->stream_end();
}

/* As other libraries do it: one call of the C library per repeat. */
static void run_memcpy(const job *self, char *dst, const char *src)
{
    const size_t row = (size_t)self->row;
    for (ptrdiff_t i = 0; i < self->rows; i++, src += self->pitch)
        for (ptrdiff_t j = 0; j < self->repeats; j++, dst += row) memcpy(dst, src, row);
}

/* The bounds: they write as much, and read nothing. memset may be REP STOSB. */
static void run_memset(const job *self, char *dst, const char *src)
{
    memset(dst, *src, (size_t)(self->row * self->rows * self->repeats));
}

/* Aligned stores of the widest vectors, in a loop of the compiler's. */
#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static void run_stores(const job *self, char *dst, const char *src)
{
    typedef char vector __attribute__((vector_size(64)));
    char *const end = dst + self->row * self->rows * self->repeats;
    vector v, *to = (vector *)(((uintptr_t)dst + 63) & ~(uintptr_t)63), *const last = (vector *)(end - 64);
    memset(&v, *src, 64);
    for (; dst < (char *)to && dst < end; dst++) *dst = *src;
    for (; to <= last; to++) *(volatile vector *)to = v; /* not a call of memset */
    for (dst = (char *)to; dst < end; dst++) *dst = *src;
}

static job *add(job *next, const char *set, const char *kernel, void (*run)(const job *, char *, const char *),
                const job *from)
{
    job *const made = malloc(sizeof *made);
    if (!made) abort();
    *made = *from;
    made->next = next, made->set = set, made->kernel = kernel, made->run = run;
    return made;
}

job *list_jobs(ptrdiff_t row, ptrdiff_t repeats, ptrdiff_t rows, ptrdiff_t pitch)
{
    const unsigned features = tilecore_features();
    const tilecore_set *const *set;
    job at = {.row = row, .repeats = repeats, .rows = rows, .pitch = pitch};
    job *list = add(add(NULL, "libc", "memset", run_memset, &at), "libc", "memcpy", run_memcpy, &at);
    list = add(list, "libc", "stores", run_stores, &at);
    for (set = tilecore_sets; *set; set++) {
        const tilecore_set *const kernels = *set, *of;
        const tilecore_row_kernel *const *kernel;
        tilecore_write_rows choice;
        if (kernels->needs & ~features) continue;
        tilecore_prepare_rows(&at.prepared, kernels, row, repeats, pitch, row * repeats, rows,
                              row * repeats * rows <= TILECORE_BLOCK_BYTES);
        choice = at.prepared.write;
        at.kernels = kernels;
        for (of = kernels; of; of = of->borrows_from)
            for (kernel = of->row_kernels; *kernel; kernel++) {
                if ((*kernel)->can && !(*kernel)->can(&at.prepared, rows)) continue;
                if ((*kernel)->prepare) (*kernel)->prepare(&at.prepared, rows);
                at.prepared.write = (*kernel)->write;
                at.chosen = at.prepared.write == choice;
                list = add(list, kernels->name, (*kernel)->name, run_rows, &at);
            }
        at.chosen = 0;
        if (rows == 1 && row * repeats > TILECORE_BLOCK_BYTES && kernels->stream != kernels->copy)
            list = add(list, kernels->name, "stream", run_stream, &at);
    }
    return list;
}

void run_job(const job *self, char *dst, const char *src, int times)
{
    while (times--) self->run(self, dst, src);
}
