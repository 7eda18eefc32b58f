/* Times the kernels of every instruction set that this processor has, and prints CSV.
 *
 *     cc -O3 -pthread -I../tilecore/_core kernels.c ../tilecore/_core/kernels/kernels.c -o kernels
 *     ./kernels < points.csv
 *
 * Each line of the input is a point: row,repeats,rows,pitch,threads (see below). For each point all
 * kernels that can serve it run in turn, again and again, so that the times of one round compare;
 * each line of the output is one kernel's time in one round. kernels.py makes points and tables.
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/kernels.h"

enum {
    MAX_ENTRANTS = 64,
    MAX_THREADS = 64,
    ROUNDS = 15,
    LARGE_ROUNDS = 7,
    LARGE_BYTES = 1 << 24,
    SAMPLE_NS = 300000, /* a sample lasts at least this long */
    CHAIN = 50000
};

/* `rows` rows of `row` bytes, `pitch` bytes apart in the source, each written `repeats` times. */
typedef struct {
    ptrdiff_t row, repeats, rows, pitch;
    int threads; /* that share the repeats of a single row */
} point;

typedef struct entrant {
    const char *set, *kernel;
    int chosen; /* by tilecore_prepare_rows */
    void (*run)(const struct entrant *self, char *dst, const char *src, ptrdiff_t repeats);
    const point *at;
    const tilecore_kernels *kernels;
    tilecore_rows rows;
} entrant;

/* ---------------------------------------------------------------- what is timed */

static void run_rows(const entrant *self, char *dst, const char *src, ptrdiff_t repeats)
{
    self->rows.write(&self->rows, dst, src, self->at->rows, repeats);
}

static void run_stream(const entrant *self, char *dst, const char *src, ptrdiff_t repeats)
{
    ptrdiff_t i;
    for (i = 0; i < repeats; i++) self->kernels->stream(dst + i * self->at->row, src, self->at->row);
    self->kernels->stream_end();
}

/* As other libraries do it: one call of the C library per repeat. */
static void run_memcpy(const entrant *self, char *dst, const char *src, ptrdiff_t repeats)
{
    const size_t row = (size_t)self->at->row;
    ptrdiff_t i, j;
    for (i = 0; i < self->at->rows; i++, src += self->at->pitch)
        for (j = 0; j < repeats; j++, dst += row) memcpy(dst, src, row);
}

/* The bound: writes as much, reads nothing. */
static void run_memset(const entrant *self, char *dst, const char *src, ptrdiff_t repeats)
{
    memset(dst, *src, (size_t)(self->at->row * self->at->rows * repeats));
}

/* ---------------------------------------------------------------- who can serve a point */

static void fail(const char *why)
{
    fprintf(stderr, "kernels: %s\n", why);
    exit(1);
}

static int list_entrants(entrant *list, const point *at)
{
    const unsigned features = tilecore_features();
    const tilecore_kernels *const *set;
    int n = 0;
    list[n++] = (entrant){.set = "libc", .kernel = "memset", .run = run_memset, .at = at};
    list[n++] = (entrant){.set = "libc", .kernel = "memcpy", .run = run_memcpy, .at = at};
    for (set = tilecore_sets; *set; set++) {
        const tilecore_kernels *const kernels = *set;
        const int single = at->rows == 1, dense = at->pitch == at->row;
        const tilecore_row_kernel *const *kernel;
        tilecore_rows rows;
        tilecore_write_rows choice;
        if (kernels->needs & ~features) continue;
        tilecore_prepare_rows(&rows, kernels, at->row, at->repeats, at->pitch, at->row * at->repeats, at->rows,
                              at->row * at->repeats * at->rows <= TILECORE_BLOCK_BYTES);
        choice = rows.write;
        for (kernel = kernels->rows; *kernel; kernel++) {
            if ((*kernel)->can && !(*kernel)->can(&rows, at->repeats, at->rows)) continue;
            if (n == MAX_ENTRANTS - 2) fail("more kernels than MAX_ENTRANTS");
            rows.write = (*kernel)->write;
            if ((*kernel)->prepare) (*kernel)->prepare(&rows);
            list[n++] = (entrant){kernels->name, (*kernel)->name, rows.write == choice, run_rows, at, kernels, rows};
        }
        if (single && dense && at->repeats > 1 && kernels->stream != kernels->copy)
            list[n++] = (entrant){kernels->name, "stream", 0, run_stream, at, kernels, rows};
    }
    return n;
}

/* ---------------------------------------------------------------- time */

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* Cycles per nanosecond at this moment: a chain of additions takes one cycle each. Needs no
 * counter, and sees the frequency that the core really runs at. */
static double clock_ghz(void)
{
    double start, best = 1e300;
    int i, attempt;
    for (attempt = 0; attempt < 3; attempt++) {
        size_t x = 1, y = (size_t)attempt;
        start = now_ns();
        for (i = 0; i < CHAIN / 8; i++) {
#if defined(__GNUC__) || defined(__clang__)
#define ADD \
    x += y; \
    __asm__ volatile("" : "+r"(x), "+r"(y));
            ADD ADD ADD ADD ADD ADD ADD ADD
#endif
        }
        if (now_ns() - start < best) best = now_ns() - start;
    }
    return CHAIN / best;
}

typedef struct {
    const entrant *who;
    char *dst;
    const char *src;
    ptrdiff_t next; /* the first part that no thread has taken yet */
} job;

/* Each thread takes parts of the repeats, as many parts as there are threads, until none is left. */
static void *do_parts(void *what)
{
    job *const all = what;
    const point *const at = all->who->at;
    ptrdiff_t part;
    while ((part = __atomic_fetch_add(&all->next, 1, __ATOMIC_RELAXED)) < at->threads) {
        const ptrdiff_t first = at->repeats * part / at->threads;
        const ptrdiff_t last = at->repeats * (part + 1) / at->threads;
        all->who->run(all->who, all->dst + first * at->row, all->src, last - first);
    }
    return NULL;
}

static double sample_ns(job *what, int times)
{
    const int threads = what->who->at->threads;
    double start = now_ns();
    for (int i = 0; i < times; i++) {
        what->next = 0;
        pthread_t other[MAX_THREADS];
        int k;
        for (k = 1; k < threads; k++)
            if (pthread_create(&other[k], NULL, do_parts, what)) fail("no thread");
        do_parts(what);
        for (k = 1; k < threads; k++) pthread_join(other[k], NULL);
    }
    return (now_ns() - start) / times;
}

/* ---------------------------------------------------------------- one point */

static void verify(job *what, ptrdiff_t bytes)
{
    const point *const at = what->who->at;
    ptrdiff_t i, k, j = 0;
    memset(what->dst, 0, (size_t)bytes);
    sample_ns(what, 1);
    for (i = 0; i < at->rows; i++)
        for (k = 0; k < at->repeats; k++, j += at->row)
            if (memcmp(what->dst + j, what->src + i * at->pitch, (size_t)at->row)) fail("wrong bytes");
}

static void time_point(const point *at)
{
    static entrant list[MAX_ENTRANTS];
    const ptrdiff_t bytes = at->row * at->repeats * at->rows, source = at->pitch * at->rows;
    const int n = list_entrants(list, at);
    const int rounds = bytes < LARGE_BYTES ? ROUNDS : LARGE_ROUNDS;
    int times[MAX_ENTRANTS];
    char *const dst = malloc((size_t)bytes + 64), *const src = malloc((size_t)source);
    if (!dst || !src) fail("not enough memory");
    for (ptrdiff_t i = 0; i < source; i++) src[i] = (char)(i % 251 + 1);
    for (int k = 0; k < n; k++) {
        job what = {&list[k], dst, src, 0};
        if (list[k].run != run_memset) verify(&what, bytes);
        else memset(dst, 1, (size_t)bytes);
        double least = sample_ns(&what, 1);
        for (int i = 0; i < 4; i++) {
            const double again = sample_ns(&what, 1);
            if (again < least) least = again;
        }
        times[k] = (int)(SAMPLE_NS / least) + 1;
    }
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < n; i++) {
            const int k = round % 2 ? n - 1 - i : i; /* to and fro, so that drift cancels */
            job what = {&list[k], dst, src, 0};
            const double ghz = clock_ghz();
            sample_ns(&what, 1);
            printf("%td,%td,%td,%td,%d,%td,%s,%s,%d,%d,%.1f,%.4f\n", at->row, at->repeats, at->rows,
                   at->pitch, at->threads, bytes, list[k].set, list[k].kernel, list[k].chosen, round,
                   sample_ns(&what, times[k]), ghz);
        }
    }
    free(dst);
    free(src);
}

int main(void)
{
    point at;
    puts("row,repeats,rows,pitch,threads,bytes,set,kernel,chosen,round,ns,ghz");
    while (scanf("%td,%td,%td,%td,%d", &at.row, &at.repeats, &at.rows, &at.pitch, &at.threads) == 5)
        time_point(&at);
    return 0;
}
