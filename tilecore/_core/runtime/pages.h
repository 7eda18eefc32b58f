/* Pages: addresses to which pages are added, and from which they are released, for arena.h; and pages that are mapped
 * at several addresses, for write/mapped.pyx. On systems that have neither, every function fails, and the caller
 * allocates as usual. C11 / C++17, and on Linux _GNU_SOURCE, as in threads.h.
 *
 * Example: 6 pages that show the same 2 pages three times, until one is written to.
 *
 *     ptrdiff_t page = tilecore_page_bytes();
 *     int file = tilecore_file_new(2 * page);
 *     tilecore_file_write(file, two_pages, 2 * page, 0);
 *     char *at = tilecore_addresses_new(6 * page);
 *     for (int i = 0; i < 3; i++) tilecore_file_map(file, at + 2 * i * page, 2 * page);
 *     tilecore_file_free(file);                        // the mappings stay
 *     tilecore_pages_free(at, 6 * page); */
#ifndef TILECORE_PAGES_H
#define TILECORE_PAGES_H

#include "../config.h"

/* The size of a huge page on most processors and systems. */
#define TILECORE_HUGE_BYTES ((ptrdiff_t)2 << 20)

#if defined(__linux__)
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#if !defined(MADV_POPULATE_WRITE)
#define MADV_POPULATE_WRITE 23
#endif

TILECORE_UNUSED static ptrdiff_t tilecore_page_bytes(void) { return (ptrdiff_t)sysconf(_SC_PAGESIZE); }

/* Unmaps pages of the caller's that nobody uses any more. That may split a mapping, and the process may be allowed no
 * more mappings: then the pages are released, and the addresses stay. */
TILECORE_UNUSED static void tilecore_pages_free(void *at, ptrdiff_t bytes)
{
    if (munmap(at, (size_t)bytes)) madvise(at, (size_t)bytes, MADV_DONTNEED);
}

/* Reserves `bytes` of addresses, without pages, on a boundary of huge pages. Returns NULL if there are none, or if new
 * mappings are locked (mlockall): they would have all pages at once, and keep them. With vm.overcommit_memory = 2 the
 * system counts addresses with access as if they had pages. It must count them now: if it refused when a file is mapped
 * there, Linux before 6.12 could leave a hole, into which another thread might map. */
TILECORE_UNUSED static char *tilecore_addresses_new(ptrdiff_t bytes)
{
    const ptrdiff_t room = bytes + TILECORE_HUGE_BYTES;
    char *at = (char *)mmap(NULL, (size_t)room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), *base;
    if (at == (char *)MAP_FAILED) return NULL;
    if (msync(at, 1, MS_ASYNC | MS_INVALIDATE) && errno == EBUSY) { /* locked pages */
        munmap(at, (size_t)room);
        return NULL;
    }
    base = (char *)(((uintptr_t)at + TILECORE_HUGE_BYTES - 1) & ~(uintptr_t)(TILECORE_HUGE_BYTES - 1));
    if (base > at) munmap(at, (size_t)(base - at));
    if (base + bytes < at + room) munmap(base + bytes, (size_t)(at + room - base - bytes));
    if (!mprotect(base, (size_t)bytes, PROT_READ | PROT_WRITE)) return base;
    munmap(base, (size_t)bytes);
    return NULL;
}

/* Advises for or against huge pages; errors do not matter. Like the next function, it takes only whole pages. */
TILECORE_UNUSED static void tilecore_addresses_advise(char *at, ptrdiff_t bytes, int huge)
{
    madvise(at, (size_t)bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

/* Releases pages, which then read as 0. If they were locked since, madvise fails, and a new mapping replaces them. */
TILECORE_UNUSED static void tilecore_addresses_drop(char *at, ptrdiff_t bytes)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (madvise(at, (size_t)bytes, MADV_DONTNEED))
        (void)!mmap(at, (size_t)bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
}

/* Maps pages that will be written next, on Linux 5.14 and later; elsewhere nothing happens. `bytes`: any number. */
TILECORE_UNUSED static void tilecore_addresses_populate(char *at, ptrdiff_t bytes)
{
    const ptrdiff_t page = tilecore_page_bytes();
    madvise(at, (size_t)((bytes + page - 1) & ~(page - 1)), MADV_POPULATE_WRITE);
}

/* Whether the process has a limit on addresses (ulimit -v) or data (ulimit -d), to which idle pages count too. */
TILECORE_UNUSED static int tilecore_addresses_limited(void)
{
    struct rlimit addresses, data;
    return getrlimit(RLIMIT_AS, &addresses) || getrlimit(RLIMIT_DATA, &data) ||
           addresses.rlim_cur != RLIM_INFINITY || data.rlim_cur != RLIM_INFINITY;
}

/* Creates a file without a name, in memory, for up to `bytes`. Returns -1 if the system refuses. A file that grows
 * beyond the limit on file sizes (ulimit -f) ends the process, by SIGXFSZ, so the limit is read first. */
TILECORE_UNUSED static int tilecore_file_new(ptrdiff_t bytes)
{
    struct rlimit size;
    int file;
    if (getrlimit(RLIMIT_FSIZE, &size) || size.rlim_cur < (rlim_t)bytes) return -1;
    /* MFD_CLOEXEC, and MFD_NOEXEC_SEAL, which Linux before 6.3 refuses. glibc before 2.27 has no name for the call. */
    file = (int)syscall(SYS_memfd_create, "tilecore", 1u | 8u);
    return file >= 0 || errno != EINVAL ? file : (int)syscall(SYS_memfd_create, "tilecore", 1u);
}

TILECORE_UNUSED static void tilecore_file_free(int file) { close(file); }

/* Writes to the file, which grows. Returns 0, or -1. It is twice as fast as a mapping, page by page. */
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

/* Maps the file's first `bytes`, whole pages, over what the caller has at `at`. A write there copies the page, and does
 * not change the file. Past the file's last page it raises SIGBUS. Returns 0, or -1. */
TILECORE_UNUSED static int tilecore_file_map(int file, char *at, ptrdiff_t bytes)
{
    int flags = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
    return mmap(at, (size_t)bytes, PROT_READ | PROT_WRITE, flags, file, 0) == MAP_FAILED ? -1 : 0;
}

#else /* ---------------------------------------------------------------- other systems */

TILECORE_UNUSED static ptrdiff_t tilecore_page_bytes(void) { return 4096; } /* any number: nothing is mapped */
TILECORE_UNUSED static int tilecore_addresses_limited(void) { return 0; }
#define tilecore_pages_free(at, bytes) ((void)(at), (void)(bytes))
#define tilecore_file_new(bytes) ((void)(bytes), -1)
#define tilecore_file_free(file) ((void)(file))
#define tilecore_file_write(file, src, bytes, offset) ((void)(file), (void)(src), (void)(bytes), (void)(offset), -1)
#define tilecore_addresses_new(bytes) ((void)(bytes), (char *)NULL)
#define tilecore_addresses_advise(at, bytes, huge) ((void)(at), (void)(bytes), (void)(huge))
#define tilecore_file_map(file, at, bytes) ((void)(file), (void)(at), (void)(bytes), -1)

#endif

/* Idle pages are poisoned for AddressSanitizer. Clang before version 21 has no __SANITIZE_ADDRESS__. */
#if defined(__has_feature)
#define TILECORE_SANITIZED __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define TILECORE_SANITIZED 1
#endif
#if defined(TILECORE_SANITIZED) && TILECORE_SANITIZED
#include <sanitizer/asan_interface.h>
#define tilecore_poison(at, bytes) __asan_poison_memory_region(at, (size_t)(bytes))
#define tilecore_unpoison(at, bytes) __asan_unpoison_memory_region(at, (size_t)(bytes))
#else
#define tilecore_poison(at, bytes) ((void)(at), (void)(bytes))
#define tilecore_unpoison(at, bytes) ((void)(at), (void)(bytes))
#endif

#endif /* TILECORE_PAGES_H */
