/* Plain loops that tile: the machine's limit, for test_limit.py. Each writes the bytes that tilecore writes, in one
 * thread or in two, and returns its nanoseconds.
 *
 *     cc -O3 -march=native -shared -fPIC -pthread loops.c -o loops.so
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define SHORT_ROW 8 /* and the others: as in test_limit.py */
#define SHORT_REPEATS 32
#define ITEM 8

typedef struct {
    char *dst;
    const char *src;
    ptrdiff_t bytes, repeats; /* of the source; of its outermost axis */
    ptrdiff_t rows, columns;  /* of a transposed source, in the order of its memory */
} work;

static void plain(char *dst, const char *src, ptrdiff_t n)
{
    for (; n >= 64; n -= 64, dst += 64, src += 64) memcpy(dst, src, 64);
    if (n > 0) memcpy(dst, src, (size_t)n);
}

#if defined(__x86_64__)
static void past_caches(char *dst, const char *src, ptrdiff_t n)
{
    ptrdiff_t head = -(intptr_t)dst & 63, k;
    if (head > n) head = n;
    plain(dst, src, head);
    for (dst += head, src += head, n -= head; n >= 64; n -= 64, dst += 64, src += 64)
        for (k = 0; k < 64; k += 16)
            _mm_stream_si128((__m128i *)(void *)(dst + k), _mm_loadu_si128((const __m128i *)(const void *)(src + k)));
    plain(dst, src, n);
}

static void rep_movsb(char *dst, const char *src, ptrdiff_t n)
{
    __asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(n) : : "memory");
}
#endif

typedef void (*copy)(char *dst, const char *src, ptrdiff_t n);

/* Each loop does a part of the work: `part` of `parts`, 64 bytes or a row at least. */

/* Long rows: each block of the source is written to all of its places while it is in the cache. */
static void blocks(const work *w, copy put, ptrdiff_t block, int part, int parts)
{
    const ptrdiff_t end = w->bytes * (part + 1) / parts;
    ptrdiff_t at, k;
    for (at = w->bytes * part / parts; at < end; at += block)
        for (k = 0; k < w->repeats; k++)
            put(w->dst + k * w->bytes + at, w->src + at, end - at < block ? end - at : block);
}

/* Short rows: each is stored SHORT_REPEATS times, at once or by way of a block. */
static void short_rows(const work *w, copy put, ptrdiff_t block, int part, int parts)
{
    enum { SPAN = SHORT_ROW * SHORT_REPEATS };
    static _Thread_local char scratch[65536] __attribute__((aligned(64)));
    const ptrdiff_t end = w->bytes / SHORT_ROW * (part + 1) / parts;
    ptrdiff_t row = w->bytes / SHORT_ROW * part / parts, used = 0, k;
    for (; row < end; row++) {
        char *const dst = put ? scratch + used : w->dst + row * SPAN;
        uint64_t value;
        memcpy(&value, w->src + row * SHORT_ROW, SHORT_ROW);
        for (k = 0; k < SHORT_REPEATS; k++) memcpy(dst + k * SHORT_ROW, &value, SHORT_ROW);
        used += SPAN;
        if (put && (used == block || row == end - 1)) {
            put(w->dst + (row + 1) * SPAN - used, scratch, used);
            used = 0;
        }
    }
}

/* A transposed source: tile by tile, into each repeat. `put` is not used. */
static void tiles(const work *w, copy put, ptrdiff_t side, int part, int parts)
{
    const ptrdiff_t end = w->columns * (part + 1) / parts;
    ptrdiff_t row, column, r, c, k;
    (void)put;
    for (column = w->columns * part / parts; column < end; column += side)
        for (row = 0; row < w->rows; row += side)
            for (k = 0; k < w->repeats; k++)
                for (c = column; c < column + side && c < end; c++) {
                    char *const dst = w->dst + k * w->bytes + c * w->rows * ITEM;
                    for (r = row; r < row + side && r < w->rows; r++)
                        memcpy(dst + r * ITEM, w->src + (r * w->columns + c) * ITEM, ITEM);
                }
}

static const struct {
    void (*run)(const work *w, copy put, ptrdiff_t size, int part, int parts);
    copy put;
    ptrdiff_t size;
    const char *name;
} loops[] = {
    {blocks, plain, 16384, "long rows"},
    {blocks, plain, 65536, "long rows"},
    {short_rows, NULL, 0, "short rows"},
    {tiles, NULL, 8, "transposed"},
    {tiles, NULL, 16, "transposed"},
    {tiles, NULL, 64, "transposed"},
#if defined(__x86_64__)
    {blocks, past_caches, 16384, "long rows"},
    {blocks, past_caches, 65536, "long rows"},
    {blocks, rep_movsb, 16384, "long rows"},
    {blocks, rep_movsb, 65536, "long rows"},
    {short_rows, past_caches, 16384, "short rows"},
    {short_rows, past_caches, 65536, "short rows"},
    {short_rows, rep_movsb, 16384, "short rows"},
#endif
};

/* The loop's kind, or NULL behind the last one. */
const char *loop_kind(int loop) { return loop < (int)(sizeof loops / sizeof *loops) ? loops[loop].name : NULL; }

/* What one of `parts` threads does; then its bytes are in memory for the other. */
static void run_part(int loop, const work *w, int part, int parts)
{
    loops[loop].run(w, loops[loop].put, loops[loop].size, part, parts);
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

/* The second thread is created once, and sleeps between calls, as tilecore's do. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static const work *open_work;
static int open_loop, ready, ended;

static void *second(void *unused)
{
    (void)unused;
    for (;;) {
        const work *w;
        pthread_mutex_lock(&lock);
        while (!open_work) pthread_cond_wait(&wake, &lock);
        w = open_work;
        open_work = NULL;
        pthread_mutex_unlock(&lock);
        run_part(open_loop, w, 1, 2);
        __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

long long run_loop(int loop, int threads, const work *w)
{
    long long begin;
    pthread_t thread;
    if (!ready && threads > 1 && pthread_create(&thread, NULL, second, NULL)) abort(); /* nobody would end the wait */
    ready |= threads > 1;
    begin = now();
    if (threads > 1) {
        pthread_mutex_lock(&lock);
        ended = 0, open_loop = loop, open_work = w;
        pthread_mutex_unlock(&lock);
        pthread_cond_signal(&wake);
    }
    run_part(loop, w, 0, threads);
    while (threads > 1 && !__atomic_load_n(&ended, __ATOMIC_ACQUIRE)) {}
    return now() - begin;
}

/* Removes the source from all caches, where there is an instruction for that. */
void flush(const char *src, ptrdiff_t bytes)
{
#if defined(__x86_64__)
    for (ptrdiff_t k = 0; k < bytes; k += 64) _mm_clflush(src + k);
    _mm_mfence();
#else
    (void)src, (void)bytes;
#endif
}
