/* Every kernel of every instruction set of the table that this processor has, on rows of 1 to 519 bytes,
 * with a page that may not be touched directly before or directly behind source and destination. Prints
 * for each set whether it ran or is missing, how many cases ran, and each that was wrong; a forbidden
 * access ends the program.
 *
 *     cc -I../tilecore/_core kernels.c ../tilecore/_core/kernels/kernels.c -o kernels && ./kernels
 *
 * -DTILECORE_EMULATED='"simde.h"': every set of every processor, in plain C.
 * With arguments: only the sets of these names.
 * -DMOST_ROWS=5 leaves out the cases of more rows at once: for sanitizers and valgrind, which are slow.
 */
#define _DEFAULT_SOURCE
#define __USE_MINGW_ANSI_STDIO 1 /* %td */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/kernels.h"

#if defined(_WIN32)
#include <windows.h>
#else
#include <sys/mman.h>
#include <unistd.h>
#endif

#ifndef MOST_ROWS
#define MOST_ROWS 700
#endif

#define ROOM ((ptrdiff_t)1 << 18)

static long cases, wrong;
static char *source, *target; /* ROOM bytes each, between two forbidden pages */

/* ROOM bytes that may be touched, and none before or behind. */
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

/* Where n bytes begin that touch the forbidden page before them, or the one behind. */
static char *place(char *memory, ptrdiff_t n, int behind) { return behind ? memory + ROOM - n : memory; }

static void check(const char *kernels, const char *what, const char *dst, const char *src, ptrdiff_t rows,
                  ptrdiff_t repeats, ptrdiff_t row, ptrdiff_t src_pitch, ptrdiff_t dst_pitch)
{
    ptrdiff_t i, k;
    cases++;
    for (i = 0; i < rows; i++) {
        const char *const first = dst + i * dst_pitch, *const expected = src + i * src_pitch;
        /* The first copy is the row, and each other one is the one before it. */
        if (memcmp(first, expected, (size_t)row) == 0 &&
            memcmp(first + row, first, (size_t)(row * (repeats - 1))) == 0)
            continue;
        for (k = 0; first[k] == expected[k % row]; k++) {}
        wrong++;
        printf("%s %s: row %td, repeats %td, rows %td: at row %td, repeat %td, byte %td\n", kernels, what, row,
               repeats, rows, i, k / row, k % row);
        return;
    }
}

static void check_gaps(const char *kernels, const char *what, const char *dst, ptrdiff_t pitch, ptrdiff_t row,
                       ptrdiff_t rows)
{
    ptrdiff_t r, i;
    for (r = 0; r < rows - 1; r++)
        for (i = row; i < pitch; i++)
            if (dst[r * pitch + i] != 0x55) {
                wrong++;
                printf("%s %s: rows of %td bytes, %td apart: wrote between them\n", kernels, what, row, pitch);
                return;
            }
}

/* What is chosen is of those that the set lists, and that this program runs one by one. */
static void check_choice(const tilecore_kernels *kernels, const tilecore_rows *chosen, ptrdiff_t repeats)
{
    const tilecore_row_kernel *const *kernel = kernels->rows;
    while (*kernel && (*kernel)->write != chosen->write) kernel++;
    if (*kernel) return;
    wrong++;
    printf("%s: row %td, repeats %td: the chosen kernel is not listed\n", kernels->name, chosen->row, repeats);
}

/* The kernel that is chosen (`kernel` NULL), or one that could have been. */
static void check_rows(const tilecore_kernels *kernels, const tilecore_row_kernel *kernel, ptrdiff_t row,
                       ptrdiff_t repeats, ptrdiff_t rows)
{
    const ptrdiff_t span = row * repeats;
    const char *const what = kernel ? kernel->name : "rows";
    int behind, apart;
    for (behind = 0; behind < 2; behind++) {
        for (apart = 0; apart < 7; apart++) {
            /* Rows together; apart in the source and the destination; the source back to front; apart in the
             * source alone; in the destination alone; the same source row for all; the destination back to front. */
            const ptrdiff_t src_gap = apart == 1 ? 5 : apart == 3 ? 2 * row
                                                                  : 0;
            const ptrdiff_t gap = apart == 1 ? 5 : apart == 4 || apart == 5 ? 1
                                                                            : 0;
            const ptrdiff_t step = apart == 5 ? 0 : row + src_gap, pitch = span + gap;
            const ptrdiff_t src_pitch = apart == 2 ? -step : step, dst_pitch = apart == 6 ? -pitch : pitch;
            const ptrdiff_t n_src = (rows - 1) * step + row, n_dst = rows * pitch - gap;
            const char *src;
            char *dst;
            tilecore_rows prepared;
            if (n_src > ROOM || n_dst > ROOM) continue;
            src = place(source, n_src, behind) + (apart == 2 ? (rows - 1) * step : 0);
            dst = place(target, n_dst, behind);
            memset(dst, 0x55, (size_t)n_dst);
            if (apart == 6) dst += (rows - 1) * pitch;
            tilecore_prepare_rows(&prepared, kernels, row, repeats, src_pitch, dst_pitch, rows, behind);
            if (kernel) {
                if (kernel->can && !kernel->can(&prepared, repeats, rows)) continue;
                if (kernel->prepare) kernel->prepare(&prepared);
                prepared.write = kernel->write;
            } else check_choice(kernels, &prepared, repeats);
            prepared.write(&prepared, dst, src, rows, repeats);
            check(kernels->name, what, dst, src, rows, repeats, row, src_pitch, dst_pitch);
            check_gaps(kernels->name, what, dst, dst_pitch, span, rows);
            if (rows == 1 && repeats > 1) { /* part of what was prepared */
                memset(dst, 0x55, (size_t)span);
                prepared.write(&prepared, dst, src, 1, repeats - 1);
                check(kernels->name, what, dst, src, 1, repeats - 1, row, step, dst_pitch);
                if (dst[span - row] != 0x55) wrong++, printf("%s %s: wrote behind\n", kernels->name, what);
            }
        }
    }
}

/* What packs: `count` items of each of `rows` rows, at `step` items within a row and `pitch` from row to row, to
 * contiguous rows of the output, or to columns where it is `turned`. Nothing is written between those. */
static void check_packed(const char *kernels, const char *what, const char *dst, ptrdiff_t dst_row, ptrdiff_t dst_item,
                         const char *src, ptrdiff_t pitch, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t count,
                         ptrdiff_t item)
{
    ptrdiff_t r, i;
    cases++;
    for (r = 0; r < rows; r++)
        for (i = 0; i < count; i++)
            if (memcmp(dst + r * dst_row + i * dst_item, src + r * pitch + i * step, (size_t)item) != 0) {
                wrong++;
                printf("%s %s: item %td, rows %td, count %td, step %td: at row %td, item %td\n", kernels, what, item,
                       rows, count, step, r, i);
                return;
            }
}

static void check_packing(const tilecore_kernels *kernels, ptrdiff_t item, ptrdiff_t rows, ptrdiff_t count, int behind,
                          ptrdiff_t gap)
{
    static TILECORE_ALIGNED char cells[TILECORE_CELL_BYTES];
    tilecore_shuffles shuffles;
    ptrdiff_t step;
    int how;
    /* `rows` rows of `count` items become columns. A pitch of 1024 is one whose lines are staged; each row has one item
     * in its first line there. */
    for (how = TILECORE_BY_TILES; how <= TILECORE_PAST_CACHES; how++) {
        const ptrdiff_t pitch = gap == 2 && count * item <= 1024 ? 1024 : (count + gap) * item;
        const ptrdiff_t skew = gap == 2 && !behind ? 64 - item : 0;
        const ptrdiff_t dst_pitch = rows * item + gap;
        const ptrdiff_t n_src = (rows - 1) * pitch + count * item, n_dst = (count - 1) * dst_pitch + rows * item;
        if (skew + n_src <= ROOM && n_dst <= ROOM) {
            const char *const src = place(source, n_src, behind) + skew;
            char *const dst = place(target, n_dst, behind);
            memset(dst, 0x55, (size_t)n_dst);
            kernels->transpose(dst, dst_pitch, src, pitch, rows, count, item, how, cells);
            check_packed(kernels->name, "transpose", dst, item, dst_pitch, src, pitch, item, rows, count, item);
            check_gaps(kernels->name, "transpose", dst, dst_pitch, rows * item, count);
            /* Rows and columns back to front. */
            memset(dst, 0x55, (size_t)n_dst);
            kernels->transpose(dst + (count - 1) * dst_pitch, -dst_pitch, src + (rows - 1) * pitch, -pitch, rows, count,
                               item, how, gap ? cells : NULL);
            check_packed(kernels->name, "transpose", dst + (count - 1) * dst_pitch, item, -dst_pitch,
                         src + (rows - 1) * pitch, -pitch, item, rows, count, item);
        }
    }
    for (step = -8; step <= 8 && kernels->deinterleave && rows < 5; step++) {
        const ptrdiff_t width = ((step < 0 ? -step : step) * (count - 1) + 1) * item;
        const ptrdiff_t pitch = width + gap, dst_pitch = count * item + gap;
        const ptrdiff_t n_src = (rows - 1) * pitch + width, n_dst = (rows - 1) * dst_pitch + count * item;
        const char *const src = place(source, n_src, behind) + (step < 0 ? width - item : 0);
        char *const dst = place(target, n_dst, behind);
        if (step == 0 || !tilecore_prepare_deinterleave(&shuffles, 1, 0, step * item, item)) continue;
        memset(dst, 0x55, (size_t)n_dst);
        kernels->deinterleave(&shuffles, dst, dst_pitch, src, pitch, rows, count, behind);
        check_packed(kernels->name, "deinterleave", dst, dst_pitch, item, src, pitch, step * item, rows, count, item);
        check_gaps(kernels->name, "deinterleave", dst, dst_pitch, count * item, rows);
    }
    if (!kernels->deinterleave || rows < 2 || rows > 4) return;
    for (step = 0; step < 4; step++) { /* groups: rows; and together */
        const ptrdiff_t between = step < 2 ? (count + gap) * item : item;
        const ptrdiff_t along = step % 2 ? -between : between, groups = step < 2 ? item : (rows + gap) * item;
        const ptrdiff_t n_src = (rows - 1) * between + (count - 1) * groups + item;
        const char *const src = place(source, n_src, behind) + (step % 2 ? (rows - 1) * between : 0);
        char *const dst = place(target, rows * count * item, behind);
        tilecore_prepare_deinterleave(&shuffles, rows, along, groups, item);
        kernels->deinterleave(&shuffles, dst, 0, src, 0, 1, count, behind);
        check_packed(kernels->name, "deinterleave", dst, item, rows * item, src, along, groups, rows, count, item);
        if (step < 2) continue;
        tilecore_prepare_deinterleave(&shuffles, rows, along, -groups, item);
        kernels->deinterleave(&shuffles, dst, 0, src + (count - 1) * groups, 0, 1, count, behind);
        check_packed(kernels->name, "deinterleave", dst, item, rows * item, src + (count - 1) * groups, along, -groups,
                     rows, count, item);
    }
}

int main(int n, char **names)
{
    static const ptrdiff_t repeats[] = {1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 64, 300}, rows[] = {1, 2, 3, 5, 40, 700};
    const unsigned features = tilecore_features();
    const tilecore_kernels *const *set;
    size_t j, k;
    ptrdiff_t i;
    source = guarded();
    target = guarded();
    for (i = 0; i < ROOM; i++) source[i] = (char)((uint64_t)i * 2654435761u >> 13);
    for (set = tilecore_sets; *set; set++) {
        const tilecore_kernels *const kernels = *set;
        const tilecore_row_kernel *const *kernel;
        int wanted = n == 1, a;
        for (a = 1; a < n; a++) wanted |= strcmp(names[a], kernels->name) == 0;
        if (!wanted || kernels->needs & ~features) {
            printf("%s %s\n", kernels->name, wanted ? "missing" : "left out");
            continue;
        }
        for (i = 1; i <= 519; i += i < 260 ? 1 : 7) {
            int behind;
            for (j = 0; j < sizeof repeats / sizeof *repeats; j++)
                for (k = 0; k < sizeof rows / sizeof *rows; k++)
                    if (rows[k] <= MOST_ROWS) {
                        check_rows(kernels, NULL, i, repeats[j], rows[k]);
                        for (kernel = kernels->rows; *kernel && rows[k] < 700; kernel++)
                            check_rows(kernels, *kernel, i, repeats[j], rows[k]);
                    }
            for (behind = 0; behind < 2; behind++) {
                static const ptrdiff_t counts[] = {1, 2, 3, 50, 200};
                char *dst = place(target, i, behind);
                const char *src = place(source, i, behind);
                memset(dst, 0x55, (size_t)i);
                kernels->copy(dst, src, i);
                check(kernels->name, "copy", dst, src, 1, 1, i, i, i);
                memset(dst, 0x55, (size_t)i);
                kernels->stream(dst, src, i);
                kernels->stream_end();
                check(kernels->name, "stream", dst, src, 1, 1, i, i, i);
                for (j = 0; j < sizeof counts / sizeof *counts; j++) {
                    dst = place(target, i * counts[j], behind);
                    memcpy(dst, src, (size_t)i);
                    kernels->replicate(dst, i, counts[j]);
                    check(kernels->name, "replicate", dst, src, 1, counts[j], i, i, i * counts[j]);
                }
            }
        }
        for (i = 1; i < 9000; i += 13) { /* longer than the unrolled loops, at every alignment */
            char *dst = place(target, i, (int)(i & 1));
            kernels->stream(dst, place(source, i, 1), i);
            kernels->stream_end();
            check(kernels->name, "stream", dst, place(source, i, 1), 1, 1, i, i, i);
            kernels->copy(dst, place(source, i, 0), i);
            check(kernels->name, "copy", dst, place(source, i, 0), 1, 1, i, i, i);
        }
        for (i = 1; i <= 16; i *= 2) {
            static const ptrdiff_t extents[] = {1, 2, 3, 4, 5, 15, 16, 31, 33, 64, 67, 131, 272};
            const size_t all = sizeof extents / sizeof *extents;
            for (j = 0; j < all; j++)
                for (k = 0; k < 6 * all; k++)
                    check_packing(kernels, i, extents[j], extents[k / 6], k & 1, (ptrdiff_t)(k / 2 % 3));
            for (k = 0; k < 24; k++) /* more than deinterleave stores round the caches at once */
                check_packing(kernels, i, 1 + (ptrdiff_t)(k / 6), 7800 / i, k & 1, (ptrdiff_t)(k / 2 % 3));
        }
        printf("%s ran\n", kernels->name);
    }
    printf("%ld cases, %ld wrong\n", cases, wrong);
    return wrong != 0;
}
