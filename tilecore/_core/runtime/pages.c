#include "pages.h"

#if defined(__linux__)
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#if !defined(MADV_POPULATE_WRITE)
#define MADV_POPULATE_WRITE 23
#endif

ptrdiff_t tilecore_page_bytes(void) { return (ptrdiff_t)sysconf(_SC_PAGESIZE); }

/* To unmap may split a mapping, and the process may be allowed no more mappings: then the pages are released, and the
 * addresses stay. */
void tilecore_pages_free(void *at, ptrdiff_t bytes)
{
    if (munmap(at, (size_t)bytes)) madvise(at, (size_t)bytes, MADV_DONTNEED);
}

/* With vm.overcommit_memory = 2 the system counts addresses with access as if they had pages. It must do so now: if it
 * refused when a file is mapped there, Linux before 6.12 could leave a hole, into which another thread might map. */
char *tilecore_addresses_new(ptrdiff_t bytes)
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

void tilecore_addresses_advise(char *at, ptrdiff_t bytes, int huge)
{
    madvise(at, (size_t)bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

/* If the pages were locked since, madvise fails, and a new mapping replaces them. */
void tilecore_addresses_drop(char *at, ptrdiff_t bytes)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (madvise(at, (size_t)bytes, MADV_DONTNEED))
        (void)!mmap(at, (size_t)bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
}

void tilecore_addresses_populate(char *at, ptrdiff_t bytes)
{
    const ptrdiff_t page = tilecore_page_bytes();
    madvise(at, (size_t)((bytes + page - 1) & ~(page - 1)), MADV_POPULATE_WRITE);
}

int tilecore_addresses_limited(void)
{
    struct rlimit addresses, data;
    return getrlimit(RLIMIT_AS, &addresses) || getrlimit(RLIMIT_DATA, &data) ||
           addresses.rlim_cur != RLIM_INFINITY || data.rlim_cur != RLIM_INFINITY;
}

/* A file that grows beyond the limit on file sizes (ulimit -f) ends the process, by SIGXFSZ, so the limit is read
 * first. */
int tilecore_file_new(ptrdiff_t bytes)
{
    struct rlimit size;
    int file;
    if (getrlimit(RLIMIT_FSIZE, &size) || size.rlim_cur < (rlim_t)bytes) return -1;
    /* MFD_CLOEXEC, and MFD_NOEXEC_SEAL, which Linux before 6.3 refuses. glibc before 2.27 has no name for the call. */
    file = (int)syscall(SYS_memfd_create, "tilecore", 1u | 8u);
    return file >= 0 || errno != EINVAL ? file : (int)syscall(SYS_memfd_create, "tilecore", 1u);
}

void tilecore_file_free(int file) { close(file); }

int tilecore_file_write(int file, const char *src, ptrdiff_t bytes, ptrdiff_t offset)
{
    while (bytes > 0) {
        ssize_t n = pwrite(file, src, (size_t)bytes, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return -1;
        src += n, bytes -= n, offset += n;
    }
    return 0;
}

int tilecore_file_map(int file, char *at, ptrdiff_t bytes)
{
    int flags = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
    return mmap(at, (size_t)bytes, PROT_READ | PROT_WRITE, flags, file, 0) == MAP_FAILED ? -1 : 0;
}

#else /* ---------------------------------------------------------------- other systems */

ptrdiff_t tilecore_page_bytes(void) { return 4096; } /* any number: nothing is mapped */
int tilecore_addresses_limited(void) { return 0; }
void tilecore_pages_free(void *at, ptrdiff_t bytes) { (void)at, (void)bytes; }
char *tilecore_addresses_new(ptrdiff_t bytes) { return (void)bytes, (char *)NULL; }
void tilecore_addresses_advise(char *at, ptrdiff_t bytes, int huge) { (void)at, (void)bytes, (void)huge; }
int tilecore_file_new(ptrdiff_t bytes) { return (void)bytes, -1; }
void tilecore_file_free(int file) { (void)file; }
int tilecore_file_map(int file, char *at, ptrdiff_t bytes) { return (void)file, (void)at, (void)bytes, -1; }
int tilecore_file_write(int file, const char *src, ptrdiff_t bytes, ptrdiff_t offset)
{
    return (void)file, (void)src, (void)bytes, (void)offset, -1;
}

#endif
