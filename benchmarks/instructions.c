/* Counts the instructions of another processor's kernels, under qemu-user, for the tables of instructions.py.
 *
 * With -DPLUGIN this is the part inside qemu, compiled for this machine: at each mark of the program it prints to
 * stderr how many instructions ran since the last one. Otherwise it is the program that is emulated:
 *
 *     cc -O2 -shared -fPIC -DPLUGIN instructions.c -o plugin.so
 *     aarch64-linux-gnu-gcc -O3 -static -I../tilecore/_core instructions.c ../tilecore/_core/kernels/kernels.c \
 *         -o program
 *     qemu-aarch64 -d plugin -plugin ./plugin.so ./program
 *
 * On stdout a line for each kernel that can write rows of a shape, on stderr one for each of those.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>

#define MARK 0x711ec0de /* no file has this number: closing it does nothing, and is seen */

#if defined(PLUGIN)
#include <stddef.h>

/* From qemu-plugin.h, which Debian does not package: version 1 of the interface. */
typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
enum qemu_plugin_op {
    QEMU_PLUGIN_INLINE_ADD_U64
};
typedef void (*translated)(qemu_plugin_id_t id, struct qemu_plugin_tb *block);
typedef void (*called)(qemu_plugin_id_t id, unsigned cpu, int64_t number, uint64_t a, uint64_t b, uint64_t c,
                       uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, translated callback);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *block, enum qemu_plugin_op op, void *to,
                                              uint64_t n);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id, called callback);

static uint64_t count, last;
int qemu_plugin_version = 1;

static void count_block(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64, &count, qemu_plugin_tb_n_insns(block));
}

static void tell(qemu_plugin_id_t id, unsigned cpu, int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                 uint64_t e, uint64_t f, uint64_t g, uint64_t h)
{
    (void)id, (void)cpu, (void)number, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;
    if (a != MARK) return;
    if (b) fprintf(stderr, "%llu\n", (unsigned long long)(count - last));
    last = count;
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int n, char **arguments)
{
    (void)info, (void)n, (void)arguments;
    qemu_plugin_register_vcpu_tb_trans_cb(id, count_block);
    qemu_plugin_register_vcpu_syscall_cb(id, tell);
    return 0;
}

#else
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernels/kernels.h"

enum {
    BYTES = 32768 /* what tilecore writes by one call of a kernel */
};

static char source[2 * BYTES], target[BYTES];

static void mark(int tells) { syscall(SYS_close, MARK, tells); }

static void count_all(ptrdiff_t row, ptrdiff_t repeats, ptrdiff_t pitch)
{
    const ptrdiff_t rows = BYTES / (row * repeats);
    const tilecore_kernels *const *set;
    for (set = tilecore_sets; *set; set++) {
        const tilecore_row_kernel *const *kernel;
        tilecore_write_rows choice;
        tilecore_rows prepared;
        if ((*set)->needs & ~tilecore_features()) continue;
        tilecore_prepare_rows(&prepared, *set, row, repeats, pitch, row * repeats, rows, 1);
        choice = prepared.write;
        for (kernel = (*set)->rows; *kernel; kernel++) {
            if ((*kernel)->can && !(*kernel)->can(&prepared, repeats, rows)) continue;
            if ((*kernel)->prepare) (*kernel)->prepare(&prepared);
            prepared.write = (*kernel)->write;
            mark(0);
            prepared.write(&prepared, target, source, rows, repeats);
            mark(1);
            printf("%s,%s,%d,%td,%td,%td,%td\n", (*set)->name, (*kernel)->name, prepared.write == choice, row, repeats,
                   pitch, rows * row * repeats);
        }
    }
}

int main(void)
{
    static const ptrdiff_t rows[] = {1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 17, 24, 31, 32, 33, 48, 63,
                                     64, 65, 96, 100, 128, 129, 200, 256, 400, 1000, 4096};
    static const ptrdiff_t repeats[] = {2, 5, 16, 64};
    size_t i, j;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (j = 0; j < sizeof repeats / sizeof *repeats; j++)
            if (rows[i] * repeats[j] <= BYTES) count_all(rows[i], repeats[j], rows[i]);
        count_all(rows[i], 1, 2 * rows[i]); /* rows that lie apart */
        count_all(rows[i], 2, 2 * rows[i]);
    }
    return 0;
}
#endif
