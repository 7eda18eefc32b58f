/* Memory by the page: aligned blocks that the system may take back while they are idle, and memory that is mapped in
 * several places at once. Where a system has neither, every function says no, and the caller takes ordinary memory.
 * C11 / C++17, and on Linux _GNU_SOURCE, as in locks.h.
 *
 * Example: 6 pages that show the same 2 pages three times, until one is written to.
 *
 *     ptrdiff_t page = tilecore_page_bytes();
 *     int file = tilecore_file_new(2 * page);
 *     tilecore_file_write(file, two_pages, 2 * page, 0);
 *     char *at = tilecore_range_new(6 * page);
 *     for (int i = 0; i < 3; i++) tilecore_file_map(file, at + 2 * i * page, 2 * page, 0);
 *     tilecore_file_free(file);                        // the mappings stay
 *     tilecore_pages_free(at, 6 * page);
 */
#ifndef TILECORE_PAGES_H
#define TILECORE_PAGES_H

#include "config.h"

/* A huge page of most processors and systems. */
#define TILECORE_HUGE_BYTES ((ptrdiff_t)2 << 20)

/* Room for notes on a block, right before it. */
#define TILECORE_BLOCK_HEAD 64

/* Blocks from this size on have a mapping of their own: on a boundary of huge pages, with one ordinary page before it.
 * Smaller ones lie in larger blocks, side by side: a huge page each would be a waste, and in ordinary pages they were
 * written in 1.2 to 2.3 times the time (0.15 to 1.9 MB that had left the caches; Zen 4, virtual). */
#define TILECORE_OWN_BLOCK_BYTES (TILECORE_HUGE_BYTES / 4 * 3)

#if defined(__linux__)
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#if !defined(MADV_FREE)
#define MADV_FREE 8
#endif
#if !defined(MADV_HUGEPAGE)
#define MADV_HUGEPAGE 14
#endif
#if !defined(MADV_POPULATE_WRITE)
#define MADV_POPULATE_WRITE 23
#endif
#if !defined(MADV_KEEPONFORK)
#define MADV_KEEPONFORK 19
#endif
#if !defined(MADV_GUARD_REMOVE)
#define MADV_GUARD_REMOVE 103
#endif

TILECORE_UNUSED static ptrdiff_t tilecore_page_bytes(void) { return (ptrdiff_t)sysconf(_SC_PAGESIZE); }

/* Gives back pages of a block, or of a range with all that is mapped there. To cut them out of a mapping may take one
 * mapping more than the process may have: then the memory goes all the same, and the addresses stay. */
TILECORE_UNUSED static void tilecore_pages_free(void *at, ptrdiff_t bytes)
{
    if (munmap(at, (size_t)bytes)) madvise(at, (size_t)bytes, MADV_DONTNEED);
}

/* ---------------------------------------------------------------- blocks */

/* Bytes of a block's mapping that may lie in huge pages. The last one is a whole one if at least three quarters of it
 * are the block's. */
TILECORE_UNUSED static ptrdiff_t tilecore_block_huge(ptrdiff_t bytes)
{
    return (bytes + TILECORE_HUGE_BYTES / 4) & ~(TILECORE_HUGE_BYTES - 1);
}

TILECORE_INLINE char *tilecore_round_to_page(char *at)
{
    const uintptr_t rest = (uintptr_t)tilecore_page_bytes() - 1;
    return (char *)(((uintptr_t)at + rest) & ~rest);
}

/* The pages that are the block's alone, as far as it has been asked for. */
TILECORE_UNUSED static char *tilecore_block_pages(char *block, ptrdiff_t bytes, size_t *n)
{
    const ptrdiff_t huge = tilecore_block_huge(bytes);
    char *start = tilecore_round_to_page(block), *end = tilecore_round_to_page(block + (huge > bytes ? huge : bytes));
    if (bytes < TILECORE_OWN_BLOCK_BYTES) end = tilecore_round_to_page(block + bytes + 1) - tilecore_page_bytes();
    *n = (size_t)(end - start);
    return start;
}

/* Has the system provide pages that are written next; ordinary ones take 0.6 to 0.75 of the time that it takes to miss
 * one after the other (Zen 4; Linux from 5.14 on, elsewhere nothing happens). */
TILECORE_UNUSED static void tilecore_block_populate(char *block, ptrdiff_t wanted)
{
    char *start = tilecore_round_to_page(block);
    if (block + wanted > start) madvise(start, (size_t)(block + wanted - start), MADV_POPULATE_WRITE);
}

/* A new block with a mapping of its own, whose first `wanted` bytes are written next; NULL where there is none. Huge
 * pages where the system permits: a wish, refused, the block is good all the same. */
TILECORE_UNUSED static char *tilecore_block_new(ptrdiff_t bytes, ptrdiff_t wanted)
{
    const ptrdiff_t page = tilecore_page_bytes(), huge = tilecore_block_huge(bytes);
    char *start, *block, *end;
    ptrdiff_t room;
    size_t n;
    if (page > TILECORE_HUGE_BYTES || bytes > PTRDIFF_MAX / 2) return NULL;
    room = page + TILECORE_HUGE_BYTES + (huge > bytes ? huge : (bytes + page - 1) & ~(page - 1));
    start = (char *)mmap(NULL, (size_t)room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == (char *)MAP_FAILED) return NULL;
    block = (char *)(((uintptr_t)start + (uintptr_t)page + TILECORE_HUGE_BYTES - 1) &
                     ~(uintptr_t)(TILECORE_HUGE_BYTES - 1));
    end = tilecore_block_pages(block, bytes, &n) + n;
    if (block - page > start) munmap(start, (size_t)(block - page - start));
    if (start + room > end) munmap(end, (size_t)(start + room - end));
    madvise(block, (size_t)huge, MADV_HUGEPAGE);
    tilecore_block_populate(block + huge, wanted - huge);
    return block;
}

TILECORE_UNUSED static void tilecore_block_free(char *block, ptrdiff_t bytes)
{
    const ptrdiff_t page = tilecore_page_bytes();
    size_t n;
    tilecore_block_pages(block, bytes, &n);
    tilecore_pages_free(block - page, page + (ptrdiff_t)n);
}

/* Gives back the pages of a block that lies in a larger one. */
TILECORE_UNUSED static void tilecore_block_drop(char *block, ptrdiff_t bytes)
{
    size_t n;
    char *start = tilecore_block_pages(block, bytes, &n);
    madvise(start, n, MADV_DONTNEED);
}

/* Lets the system take the block's pages whenever it needs memory; what they hold is lost then. 0, or -1 where it
 * refuses, and the block had better go: locked memory, pages that were unmapped or have something else mapped over
 * them, a kernel before 4.5.
 *
 * The block will have another owner, so the last one's requests are undone first. Where there are none that takes a
 * few microseconds, whatever the block's size: each call but one looks at the mapping alone.
 *
 *     mprotect, pkey_mprotect                     readable, writeable, under the common key again
 *     MADV_DONTFORK, MADV_WIPEONFORK              children get the pages, with what they hold
 *     MADV_DONTDUMP                               core dumps hold them
 *     MADV_NOHUGEPAGE                             as of a new block
 *     MADV_RANDOM, MADV_SEQUENTIAL                no more
 *     MADV_MERGEABLE                              pages are their own
 *     MADV_GUARD_INSTALL                          no page kills (this one looks at every page)
 *     mbind                                       any node's memory
 *     mlock, mmap(MAP_FIXED) of a file, munmap    MADV_FREE refuses
 *
 * What a kernel does not know (EINVAL) was not asked of it. userfaultfd is not undone, for its owner alone can: he has
 * to stop watching before the array dies. */
TILECORE_UNUSED static int tilecore_block_idle(char *block, ptrdiff_t bytes)
{
    static const int undone[] = {MADV_DOFORK, MADV_KEEPONFORK, MADV_DODUMP,
                                 MADV_NORMAL, MADV_UNMERGEABLE, MADV_GUARD_REMOVE};
    const ptrdiff_t huge = tilecore_block_huge(bytes);
    size_t n;
    char *const start = tilecore_block_pages(block, bytes, &n);
#if defined(SYS_pkey_mprotect)
    if (syscall(SYS_pkey_mprotect, start, n, PROT_READ | PROT_WRITE, 0))
#endif
        if (mprotect(start, n, PROT_READ | PROT_WRITE)) return -1;
    for (size_t i = 0; i < sizeof undone / sizeof *undone; i++)
        if (madvise(start, n, undone[i]) && errno != EINVAL) return -1;
    if (huge) madvise(start, (size_t)huge, MADV_HUGEPAGE);
#if defined(SYS_mbind)
    syscall(SYS_mbind, start, n, 0 /* MPOL_DEFAULT */, NULL, 0, 0); /* refused, it was so to the owner too */
#endif
    return madvise(start, n, MADV_FREE);
}

/* Whether the process may have only so many addresses (ulimit -v) or so much data: such a limit counts what lies idle,
 * though the system may take it back, and other allocations would fail. */
TILECORE_UNUSED static int tilecore_addresses_limited(void)
{
    struct rlimit addresses, data;
    return getrlimit(RLIMIT_AS, &addresses) || getrlimit(RLIMIT_DATA, &data) ||
           addresses.rlim_cur != RLIM_INFINITY || data.rlim_cur != RLIM_INFINITY;
}

/* ---------------------------------------------------------------- files in memory */

/* A file of up to `bytes` that has no name and lies in memory; -1 where there is none to be had. A limit on the size
 * of files (ulimit -f) is asked for first: to grow beyond it ends the process, by SIGXFSZ. */
TILECORE_UNUSED static int tilecore_file_new(ptrdiff_t bytes)
{
#if defined(SYS_fallocate) && defined(SYS_memfd_create)
    struct rlimit size;
    if (getrlimit(RLIMIT_FSIZE, &size) || size.rlim_cur < (rlim_t)bytes) return -1;
    return (int)syscall(SYS_memfd_create, "tilecore", 1u /* MFD_CLOEXEC */); /* glibc before 2.27 has no name for it */
#else
    (void)bytes;
    return -1;
#endif
}

TILECORE_UNUSED static void tilecore_file_free(int file) { close(file); }

/* Writes to the file, which grows; 0, or -1. Twice as quick as through a mapping, page by page. */
TILECORE_UNUSED static int tilecore_file_write(int file, const char *src, ptrdiff_t bytes, ptrdiff_t offset)
{
    while (bytes > 0) {
        ssize_t n = pwrite(file, src, (size_t)bytes, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return -1;
        src += n, bytes -= n, offset += n;
    }
    return 0;
}

/* The empty file, made `bytes` long, for writing in place; NULL where that much is not to be had. All its pages are
 * there then: to miss one later would be a SIGBUS. */
TILECORE_UNUSED static char *tilecore_file_open(int file, ptrdiff_t bytes)
{
    const ptrdiff_t piece = (ptrdiff_t)1 << 22; /* a signal undoes the piece alone that it interrupts */
    ptrdiff_t done = 0;
    void *at;
    while (done < bytes) {
        const ptrdiff_t n = bytes - done < piece ? bytes - done : piece;
        if (!fallocate(file, 0, (off_t)done, (off_t)n)) done += n;
        else if (errno != EINTR) return NULL;
    }
    at = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    return at == MAP_FAILED ? NULL : (char *)at;
}

/* `bytes` of addresses with nothing there yet; NULL where there are none, or where new mappings are locked into memory
 * (mlockall): that would copy every page at once. Where the system counts addresses as memory
 * (vm.overcommit_memory = 2), they are counted here: counted when something is mapped there, a refusal could leave a
 * hole (Linux before 6.12) for another thread to map into. */
TILECORE_UNUSED static char *tilecore_range_new(ptrdiff_t bytes)
{
    void *at = mmap(NULL, (size_t)bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return NULL;
    if ((msync(at, 1, MS_ASYNC | MS_INVALIDATE) && errno == EBUSY) /* how locked pages show */
        || mprotect(at, (size_t)bytes, PROT_READ | PROT_WRITE)) {
        munmap(at, (size_t)bytes);
        return NULL;
    }
    return (char *)at;
}

/* Shows a part of the file at `at`, within a range of the caller's. A page that is written there is copied first, and
 * the file stays as it is. 0, or -1. */
TILECORE_UNUSED static int tilecore_file_map(int file, char *at, ptrdiff_t bytes, ptrdiff_t offset)
{
    int flags = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
    return mmap(at, (size_t)bytes, PROT_READ | PROT_WRITE, flags, file, (off_t)offset) == MAP_FAILED ? -1 : 0;
}

#else /* ---------------------------------------------------------------- other systems */

TILECORE_UNUSED static ptrdiff_t tilecore_page_bytes(void) { return 4096; }
TILECORE_UNUSED static void tilecore_pages_free(void *at, ptrdiff_t bytes) { (void)at, (void)bytes; }
TILECORE_UNUSED static char *tilecore_block_new(ptrdiff_t bytes, ptrdiff_t wanted)
{
    return (void)bytes, (void)wanted, (char *)NULL;
}
TILECORE_UNUSED static void tilecore_block_populate(char *block, ptrdiff_t wanted) { (void)block, (void)wanted; }
TILECORE_UNUSED static void tilecore_block_free(char *block, ptrdiff_t bytes) { (void)block, (void)bytes; }
TILECORE_UNUSED static void tilecore_block_drop(char *block, ptrdiff_t bytes) { (void)block, (void)bytes; }
TILECORE_UNUSED static int tilecore_block_idle(char *block, ptrdiff_t bytes) { return (void)block, (void)bytes, -1; }
TILECORE_UNUSED static int tilecore_addresses_limited(void) { return 0; }
TILECORE_UNUSED static int tilecore_file_new(ptrdiff_t bytes) { return (void)bytes, -1; }
TILECORE_UNUSED static void tilecore_file_free(int file) { (void)file; }
TILECORE_UNUSED static int tilecore_file_write(int file, const char *src, ptrdiff_t bytes, ptrdiff_t offset)
{
    return (void)file, (void)src, (void)bytes, (void)offset, -1;
}
TILECORE_UNUSED static char *tilecore_file_open(int file, ptrdiff_t bytes)
{
    return (void)file, (void)bytes, (char *)NULL;
}
TILECORE_UNUSED static char *tilecore_range_new(ptrdiff_t bytes) { return (void)bytes, (char *)NULL; }
TILECORE_UNUSED static int tilecore_file_map(int file, char *at, ptrdiff_t bytes, ptrdiff_t offset)
{
    return (void)file, (void)at, (void)bytes, (void)offset, -1;
}

#endif

/* ---------------------------------------------------------------- memory that nobody may touch, where tools look */

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define tilecore_poison(at, bytes) __asan_poison_memory_region(at, (size_t)(bytes))
#define tilecore_unpoison(at, bytes) __asan_unpoison_memory_region(at, (size_t)(bytes))
#elif defined(TILECORE_VALGRIND)
#include <valgrind/memcheck.h>
#define tilecore_poison(at, bytes) ((void)VALGRIND_MAKE_MEM_NOACCESS(at, bytes))
#define tilecore_unpoison(at, bytes) ((void)VALGRIND_MAKE_MEM_UNDEFINED(at, bytes))
#else
#define tilecore_poison(at, bytes) ((void)(at), (void)(bytes))
#define tilecore_unpoison(at, bytes) ((void)(at), (void)(bytes))
#endif

#endif /* TILECORE_PAGES_H */
