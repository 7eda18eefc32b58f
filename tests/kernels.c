/* Every kernel of every instruction set of the table that this processor has, on rows of 1 to 260 bytes, and of the
 * larger sizes around which the choice changes, with a page that may not be touched just before or just after source
 * and destination. Prints for each set whether it ran or is missing, how many cases ran, and each that was
 * wrong; a forbidden access, an endless loop, or a kernel that was called wrongly ends the program, with its case.
 *
 *     cc -DTILECORE_CHECKED -I../tilecore/_core kernels.c ../tilecore/_core/kernels/kernels.c -o kernels && ./kernels
 *
 * -DTILECORE_EMULATED='"simde.h"': every set of every processor, in plain C.
 * With arguments: only the sets of these names. For a look at what a crash tells: with "astray" too, each source begins
 * a byte too late; with "unasked", kernels are called for rows that they cannot write.
 * -DMAX_ROWS=5 leaves out the cases of more rows at once: for sanitizers and valgrind, which are slow.
 */
#define _DEFAULT_SOURCE
#define __USE_MINGW_ANSI_STDIO 1 /* %td */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/packing.h"

#if defined(_WIN32)
#include <windows.h>
#else
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>
#endif

#ifndef MAX_ROWS
#define MAX_ROWS 700
#endif

#define ROOM ((ptrdiff_t)1 << 18)

static long cases, wrong;
static char *source, *target; /* ROOM bytes each, between two forbidden pages */
static int asks = 1;          /* whether a kernel is asked if it can write such rows */
static struct {
    const char *set, *kernel;
    ptrdiff_t row, repeats, rows; /* of what packs: its item, columns, rows; of write_small: the form, last */
} running;

static void begin(const tilecore_set *kernels, const char *kernel, ptrdiff_t row, ptrdiff_t repeats, ptrdiff_t rows)
{
    running.set = kernels->name, running.kernel = kernel;
    running.row = row, running.repeats = repeats, running.rows = rows;
#if !defined(_WIN32)
    /* Of processor time: others may be busy. */
    if (cases % 1000 == 0) setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = 10}, NULL);
#endif
    cases++;
}

static void report(const char *fault)
{
    wrong++;
    printf("%s %s: row %td, repeats %td, rows %td: %s\n", running.set, running.kernel, running.row, running.repeats,
           running.rows, fault);
}

static void report_crash(int number)
{
    if (number == SIGABRT) report("called wrongly");
#if !defined(_WIN32)
    else if (number == SIGPROF) report("no end after 10 s");
#endif
    else report("a forbidden access");
    fflush(stdout);
    signal(number, SIG_DFL);
    raise(number);
}

/* ROOM bytes that may be touched, and none before or after them. */
static char *guarded(void)
{
#if defined(_WIN32)
    const ptrdiff_t page = 4096;
    DWORD before;
    char *memory = (char *)VirtualAlloc(NULL, (SIZE_T)(ROOM + 2 * page), MEM_RESERVE | MEM_COMMIT, PAGE_NOACCESS);
    const int made = memory && VirtualProtect(memory + page, (SIZE_T)ROOM, PAGE_READWRITE, &before);
#else
    const ptrdiff_t page = sysconf(_SC_PAGESIZE);
    char *memory = (char *)mmap(NULL, (size_t)(ROOM + 2 * page), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const int made = memory != MAP_FAILED && !mprotect(memory + page, (size_t)ROOM, PROT_READ | PROT_WRITE);
#endif
    if (!made) {
        printf("no memory between guard pages\n");
        exit(2);
    }
    return memory + page;
}

/* Where n bytes begin that touch the forbidden page before them, or the one after them. */
static char *place(char *memory, ptrdiff_t n, int behind) { return behind ? memory + ROOM - n : memory; }

static void check(const char *dst, const char *src, ptrdiff_t src_pitch, ptrdiff_t dst_pitch)
{
    const ptrdiff_t row = running.row, repeats = running.repeats;
    for (ptrdiff_t i = 0; i < running.rows; i++) {
        const char *const first = dst + i * dst_pitch;
        /* The first copy is the row, and each other one is the one before it. */
        if (memcmp(first, src + i * src_pitch, (size_t)row) == 0 &&
            memcmp(first + row, first, (size_t)(row * (repeats - 1))) == 0)
            continue;
        report("wrong bytes");
        return;
    }
}

static void check_gaps(const char *dst, ptrdiff_t pitch, ptrdiff_t row, ptrdiff_t rows)
{
    for (ptrdiff_t r = 0; r < rows - 1; r++)
        for (ptrdiff_t i = row; i < pitch; i++)
            if (dst[r * pitch + i] != 0x55) {
                report("wrote between rows");
                return;
            }
}

/* The kernel that is chosen can write such rows; the set lists it, and this program runs it by itself too. */
static void check_choice(const tilecore_set *kernels, const tilecore_rows *chosen, ptrdiff_t rows)
{
    for (; kernels; kernels = kernels->borrows_from)
        for (const tilecore_row_kernel *const *kernel = kernels->row_kernels; *kernel; kernel++)
            if ((*kernel)->write == chosen->write) {
                running.kernel = (*kernel)->name;
                if ((*kernel)->can && !(*kernel)->can(chosen, rows)) report("chosen, though it cannot");
                return;
            }
    report("the chosen kernel is not listed");
}

/* Whether another kernel is chosen, or can, for rows of one byte less. */
static int is_bound(const tilecore_set *kernels, ptrdiff_t row, ptrdiff_t repeats, ptrdiff_t rows)
{
    tilecore_rows now, before;
    for (int in_first_cache = 0; in_first_cache < 2; in_first_cache++) {
        tilecore_prepare_rows(&now, kernels, row, repeats, row, row * repeats, rows, in_first_cache);
        tilecore_prepare_rows(&before, kernels, row - 1, repeats, row - 1, (row - 1) * repeats, rows, in_first_cache);
        if (now.write != before.write) return 1;
    }
    for (; kernels; kernels = kernels->borrows_from)
        for (const tilecore_row_kernel *const *kernel = kernels->row_kernels; *kernel; kernel++)
            if ((*kernel)->can && (*kernel)->can(&now, rows) != (*kernel)->can(&before, rows)) return 1;
    return 0;
}

/* The kernel that is chosen (`kernel` NULL), or one that could have been. */
static void check_rows(const tilecore_set *kernels, const tilecore_row_kernel *kernel, ptrdiff_t row,
                       ptrdiff_t repeats, ptrdiff_t rows)
{
    const ptrdiff_t span = row * repeats;
    for (int behind = 0; behind < 2; behind++) {
        for (int apart = 0; apart < 7; apart++) {
            /* Rows together; apart in the source and the destination; the source reversed; apart in the
             * source alone; in the destination alone; the same source row for all; the destination reversed. */
            const ptrdiff_t src_gap = apart == 1 ? 5 : (apart == 3) * 2 * row;
            const ptrdiff_t gap = apart == 1 ? 5 : apart == 4 || apart == 5;
            const ptrdiff_t step = apart == 5 ? 0 : row + src_gap, pitch = span + gap;
            const ptrdiff_t src_pitch = apart == 2 ? -step : step, dst_pitch = apart == 6 ? -pitch : pitch;
            const ptrdiff_t n_src = (rows - 1) * step + row, n_dst = rows * pitch - gap;
            const char *src;
            char *dst;
            /* What was prepared serves fewer rows too. */
            const ptrdiff_t most = rows > 1 && !behind ? 32 * rows : rows;
            tilecore_rows prepared;
            if (n_src > ROOM || n_dst > ROOM) continue;
            src = place(source, n_src, behind) + (apart == 2 ? (rows - 1) * step : 0);
            dst = place(target, n_dst, behind);
            memset(dst, 0x55, (size_t)n_dst);
            if (apart == 6) dst += (rows - 1) * pitch;
            begin(kernels, kernel ? kernel->name : "rows", row, repeats, rows);
            tilecore_prepare_rows(&prepared, kernels, row, repeats, src_pitch, dst_pitch, most, behind);
            if (kernel) {
                if (asks && kernel->can && !kernel->can(&prepared, most)) continue;
                if (kernel->prepare) kernel->prepare(&prepared, most);
                prepared.write = kernel->write;
            } else check_choice(kernels, &prepared, most);
            prepared.write(&prepared, dst, src, rows, repeats);
            check(dst, src, src_pitch, dst_pitch);
            check_gaps(dst, dst_pitch, span, rows);
            if (rows == 1 && repeats > 1) { /* part of what was prepared */
                memset(dst, 0x55, (size_t)span);
                begin(kernels, running.kernel, row, repeats - 1, 1);
                prepared.write(&prepared, dst, src, 1, repeats - 1);
                check(dst, src, step, dst_pitch);
                if (dst[span - row] != 0x55) report("wrote behind");
            }
        }
    }
}

/* What packs: `count` items of each of `rows` rows, at `step` items within a row and `pitch` from row to row, to
 * contiguous rows of the output, or to columns where it is `turned`. Nothing is written between those. */
static void check_packed(const char *dst, ptrdiff_t dst_row, ptrdiff_t dst_item, const char *src, ptrdiff_t pitch,
                         ptrdiff_t step, ptrdiff_t rows, ptrdiff_t count)
{
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t i = 0; i < count; i++)
            if (memcmp(dst + r * dst_row + i * dst_item, src + r * pitch + i * step, (size_t)running.row) != 0) {
                report("wrong items");
                return;
            }
}

static void check_packing(const tilecore_set *kernels, ptrdiff_t item, ptrdiff_t rows, ptrdiff_t count, int behind,
                          ptrdiff_t gap)
{
    static TILECORE_ALIGNED char cells[TILECORE_CELL_BYTES];
    tilecore_shuffles shuffles;
    /* `rows` rows of `count` items become columns. A pitch of 1024 is one whose lines are staged; each row has one item
     * in its first line there. */
    for (int how = TILECORE_BY_TILES; how <= TILECORE_BY_STREAM; how++) {
        const ptrdiff_t pitch = gap == 2 && count * item <= 1024 ? 1024 : (count + gap) * item;
        const ptrdiff_t skew = gap == 2 && !behind ? 64 - item : 0;
        const ptrdiff_t dst_pitch = rows * item + gap;
        const ptrdiff_t n_src = (rows - 1) * pitch + count * item, n_dst = (count - 1) * dst_pitch + rows * item;
        if (skew + n_src <= ROOM && n_dst <= ROOM) {
            const char *const src = place(source, n_src, behind) + skew, *const last = src + (rows - 1) * pitch;
            char *const dst = place(target, n_dst, behind), *const end = dst + (count - 1) * dst_pitch;
            memset(dst, 0x55, (size_t)n_dst);
            begin(kernels, "transpose", item, count, rows);
            kernels->transpose(dst, dst_pitch, src, pitch, rows, count, item, how, cells);
            check_packed(dst, item, dst_pitch, src, pitch, item, rows, count);
            check_gaps(dst, dst_pitch, rows * item, count);
            /* Rows and columns reversed. */
            memset(dst, 0x55, (size_t)n_dst);
            kernels->transpose(end, -dst_pitch, last, -pitch, rows, count, item, how, gap ? cells : NULL);
            check_packed(end, item, -dst_pitch, last, -pitch, item, rows, count);
        }
    }
    for (ptrdiff_t step = -16; step <= 16 && kernels->deinterleave && rows < 5; step++) {
        const ptrdiff_t along = step / 2 * (step % 2 ? 1 : item); /* odd: of bytes, so items may overlap */
        const ptrdiff_t width = (along < 0 ? -along : along) * (count - 1) + item;
        const ptrdiff_t pitch = width + gap, dst_pitch = count * item + gap;
        const ptrdiff_t n_src = (rows - 1) * pitch + width, n_dst = (rows - 1) * dst_pitch + count * item;
        const char *const src = place(source, n_src, behind) + (along < 0 ? width - item : 0);
        char *const dst = place(target, n_dst, behind);
        if (along == 0 || !tilecore_prepare_deinterleave(&shuffles, 1, 0, along, item)) continue;
        memset(dst, 0x55, (size_t)n_dst);
        begin(kernels, "deinterleave", item, count, rows);
        kernels->deinterleave(&shuffles, dst, dst_pitch, src, pitch, rows, count, behind);
        check_packed(dst, dst_pitch, item, src, pitch, along, rows, count);
        check_gaps(dst, dst_pitch, count * item, rows);
    }
    if (!kernels->deinterleave || rows < 2 || rows > 4) return;
    for (ptrdiff_t step = 0; step < 4; step++) { /* groups: rows; and together */
        const ptrdiff_t between = step < 2 ? (count + gap) * item : item;
        const ptrdiff_t along = step % 2 ? -between : between, groups = step < 2 ? item : (rows + gap) * item;
        const ptrdiff_t n_src = (rows - 1) * between + (count - 1) * groups + item;
        const char *const src = place(source, n_src, behind) + (step % 2 ? (rows - 1) * between : 0);
        char *const dst = place(target, rows * count * item, behind);
        begin(kernels, "deinterleave, groups", item, count, rows);
        tilecore_prepare_deinterleave(&shuffles, rows, along, groups, item);
        kernels->deinterleave(&shuffles, dst, 0, src, 0, 1, count, behind);
        check_packed(dst, item, rows * item, src, along, groups, rows, count);
        if (step < 2) continue;
        tilecore_prepare_deinterleave(&shuffles, rows, along, -groups, item);
        kernels->deinterleave(&shuffles, dst, 0, src + (count - 1) * groups, 0, 1, count, behind);
        check_packed(dst, item, rows * item, src + (count - 1) * groups, along, -groups, rows, count);
    }
}

static void check_bytes(const tilecore_set *kernels, ptrdiff_t bytes, int behind)
{
    static const ptrdiff_t counts[] = {1, 2, 3, 50, 200};
    const char *const src = place(source, bytes, behind);
    char *dst = place(target, bytes, behind);
    memset(dst, 0x55, (size_t)bytes);
    begin(kernels, "copy", bytes, 1, 1);
    kernels->copy(dst, src, bytes);
    check(dst, src, bytes, bytes);
    memset(dst, 0x55, (size_t)bytes);
    begin(kernels, "stream", bytes, 1, 1);
    kernels->stream(dst, src, bytes);
    kernels->stream_end();
    check(dst, src, bytes, bytes);
    for (size_t j = 0; j < sizeof counts / sizeof *counts && bytes * counts[j] <= ROOM; j++) {
        dst = place(target, bytes * counts[j], behind);
        memcpy(dst, src, (size_t)bytes);
        begin(kernels, "replicate", bytes, counts[j], 1);
        kernels->replicate(dst, bytes, counts[j]);
        check(dst, src, bytes, bytes);
    }
}

/* The tiling by its rule, an axis at a time; returns its bytes. */
static ptrdiff_t tile(char *dst, const char *src, int ndim, const ptrdiff_t *shape, const ptrdiff_t *repeats,
                      ptrdiff_t itemsize)
{
    ptrdiff_t inner = itemsize, bytes = 0;
    if (ndim == 0) return memcpy(dst, src, (size_t)itemsize), itemsize;
    for (int axis = 1; axis < ndim; axis++) inner *= shape[axis];
    for (ptrdiff_t i = 0; i < shape[0]; i++)
        bytes += tile(dst + bytes, src + i * inner, ndim - 1, shape + 1, repeats + 1, itemsize);
    for (ptrdiff_t i = 1; i < repeats[0]; i++) memcpy(dst + i * bytes, dst, (size_t)bytes);
    return bytes * repeats[0];
}

/* Small results: `row` items that are repeated, inside axes of every kind. */
static void check_small(const tilecore_set *kernels, ptrdiff_t row, ptrdiff_t repeats, ptrdiff_t itemsize)
{
    static const struct {
        int ndim;
        ptrdiff_t shape[16], repeats[16]; /* 0: what is asked for */
    } forms[] = {
        {1, {0}, {0}},
        {2, {3, 0}, {2, 0}},
        {2, {40, 0}, {3, 0}},
        {2, {300, 0}, {1, 0}},
        {3, {0, 2, 3}, {0, 1, 1}},
        {4, {2, 1, 3, 0}, {2, 3, 1, 0}},
        {4, {2, 3, 2, 0}, {1, 2, 7, 0}},
        {5, {1, 2, 1, 24, 0}, {2, 1, 3, 2, 0}},
        {16, {1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 0}, {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 2, 1, 1, 1, 0}},
        {15, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 0}, {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0}},
    };
    static char expected[1 << 16];
    for (int f = 0; f < (int)(sizeof forms / sizeof *forms); f++) {
        ptrdiff_t shape[16], times[16], n_src = itemsize, n_dst = itemsize;
        for (int k = 0; k < forms[f].ndim; k++) {
            shape[k] = forms[f].shape[k] ? forms[f].shape[k] : row;
            times[k] = forms[f].repeats[k] ? forms[f].repeats[k] : repeats;
            n_src *= shape[k], n_dst *= shape[k] * times[k];
        }
        for (int behind = 0; behind < 2 && n_dst < 1 << 16; behind++) {
            const char *const src = place(source, n_src, behind);
            char *const dst = place(target, n_dst, behind);
            memset(dst, 0x55, (size_t)n_dst);
            tile(expected, src, forms[f].ndim, shape, times, itemsize);
            begin(kernels, "write_small", row * itemsize, repeats, f);
            kernels->write_small(kernels, forms[f].ndim, shape, times, itemsize, dst, src);
            if (memcmp(dst, expected, (size_t)n_dst) != 0) report("wrong bytes");
        }
    }
}

static void check_set(const tilecore_set *kernels)
{
    static const ptrdiff_t repeats[] = {1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 64, 300}, rows[] = {1, 2, 3, 5, 40, 700};
    static const ptrdiff_t extents[] = {1, 2, 3, 4, 5, 15, 16, 17, 31, 32, 33, 64, 67, 127, 128, 129, 272};
    const size_t all = sizeof extents / sizeof *extents;
    for (ptrdiff_t i = 1; i <= 4200; i++)
        for (size_t j = 0; j < sizeof repeats / sizeof *repeats; j++)
            for (size_t k = 0; k < sizeof rows / sizeof *rows && rows[k] <= MAX_ROWS; k++) {
                const ptrdiff_t n = repeats[j], m = rows[k];
                if (n == 300 && m > 1 && i > 64) continue; /* megabytes, and nothing new */
                if (i > 260 && !is_bound(kernels, i, n, m) && !is_bound(kernels, i + 1, n, m)) continue;
                check_rows(kernels, NULL, i, n, m);
                for (const tilecore_set *of = kernels; of && m < 700; of = of->borrows_from)
                    for (const tilecore_row_kernel *const *kernel = of->row_kernels; *kernel; kernel++)
                        check_rows(kernels, *kernel, i, n, m);
            }
    for (ptrdiff_t i = 1; i <= 70; i++)
        for (ptrdiff_t j = 1; j <= 70; j += j < 20 ? 1 : 7)
            for (ptrdiff_t itemsize = 1; itemsize <= 4; itemsize += 3) check_small(kernels, i, j, itemsize);
    for (ptrdiff_t i = 64; i < 1 << 15; i += i / 7) check_small(kernels, i, 2, 1), check_small(kernels, 2, i, 1);
    /* To more than the unrolled loops, at every alignment; and than `replicate` copies at once: 8192. */
    for (ptrdiff_t i = 1; i < 9000; i += i < 520 || i == 8192 ? 1 : 7)
        check_bytes(kernels, i, 0), check_bytes(kernels, i, 1);
    for (ptrdiff_t i = 1; i <= 16; i *= 2) {
        for (size_t j = 0; j < all; j++)
            for (size_t k = 0; k < 6 * all; k++)
                check_packing(kernels, i, extents[j], extents[k / 6], k & 1, (ptrdiff_t)(k / 2 % 3));
        for (size_t k = 0; k < 24; k++) /* more than deinterleave stores past the caches at once */
            check_packing(kernels, i, 1 + (ptrdiff_t)(k / 6), 7800 / i, k & 1, (ptrdiff_t)(k / 2 % 3));
    }
}

int main(int n, char **names)
{
    const unsigned features = tilecore_features();
    source = guarded();
    target = guarded();
    for (ptrdiff_t i = 0; i < ROOM; i++) source[i] = (char)((uint64_t)i * 2654435761u >> 13);
    for (int a = 1; a < n; a++) source += strcmp(names[a], "astray") == 0, asks &= strcmp(names[a], "unasked") != 0;
    signal(SIGSEGV, report_crash);
    signal(SIGABRT, report_crash);
#if !defined(_WIN32)
    signal(SIGPROF, report_crash);
    signal(SIGBUS, report_crash);
#endif
    for (const tilecore_set *const *set = tilecore_sets; *set; set++) {
        const char *fate = "left out";
        int wanted = n == 1;
        for (int a = 1; a < n; a++) wanted |= strcmp(names[a], (*set)->name) == 0;
        if ((*set)->needs & ~features) fate = "missing";
        else if (wanted) check_set(*set), fate = "ran";
        printf("%s %s\n", (*set)->name, fate);
    }
    printf("%ld cases, %ld wrong\n", cases, wrong);
    return wrong != 0;
}
