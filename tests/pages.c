/* The page code by itself: addresses that get pages and lose them; a file in memory that shows in several
 * places. Prints what the system has of it; the exit status is 0 if nothing was wrong. Where the system
 * has none, each function must say so, and then the caller takes ordinary memory.
 */
#define _GNU_SOURCE
#define __USE_MINGW_ANSI_STDIO 1 /* %td */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/pages.c"
#ifdef __linux__
#include <fcntl.h>
#endif

static int wrong, populated;

static void check(int right, const char *what)
{
    if (right) return;
    wrong++;
    printf("wrong: %s\n", what);
}

static int all_are(const char *at, ptrdiff_t bytes, char value)
{
    for (ptrdiff_t i = 0; i < bytes; i++)
        if (at[i] != value) return 0;
    return 1;
}

#if defined(__linux__)
/* VmSize, in pages: not by stdio, which allocates buffers. */
static ptrdiff_t count_addresses(void)
{
    char text[64] = "";
    const int file = open("/proc/self/statm", O_RDONLY);
    check(read(file, text, sizeof text - 1) > 0 && !close(file), "how many addresses the process has");
    return strtol(text, NULL, 10);
}
#endif

/* 1 if addresses can be reserved. */
static int addresses(void)
{
    /* With addresses of 32 bits, this is half of all, and a program of few mappings may get them. */
    const ptrdiff_t most = PTRDIFF_MAX - 2 * TILECORE_HUGE_BYTES + 1;
    check(sizeof(void *) < 8 || tilecore_addresses_new(most) == NULL, "more addresses than there are");
#if defined(__linux__)
    const ptrdiff_t bytes = 3 * TILECORE_HUGE_BYTES, part = bytes / 3 - TILECORE_HUGE_BYTES / 4;
    const ptrdiff_t before = count_addresses();
    char *at = tilecore_addresses_new(2 * bytes + tilecore_page_bytes()); /* on no boundary by chance */
    check(at && (uintptr_t)at % TILECORE_HUGE_BYTES == 0, "addresses");
    if (!at) return 0;
    check(count_addresses() - before == 2 * bytes / tilecore_page_bytes() + 1, "addresses that nobody asked for");
    static unsigned char resident[3 * TILECORE_HUGE_BYTES / 4096];
    tilecore_addresses_populate(at, bytes - 5);
    check(mincore(at, (size_t)bytes, resident) == 0, "what is in memory");
    populated = resident[(bytes - 1) / tilecore_page_bytes()] & 1;
    check(all_are(at, bytes, 0), "new pages");
    memset(at, 2, (size_t)bytes);
    tilecore_addresses_drop(at + part, part);
    check(all_are(at, part, 2) && all_are(at + 2 * part, bytes - 2 * part, 2), "the parts beside what is given back");
    check(all_are(at + part, part, 0), "a part that is given back");
    tilecore_pages_free(at, 2 * bytes + tilecore_page_bytes());
    check(count_addresses() == before, "addresses that are kept");
    return 1;
#else
    return 0;
#endif
}

/* 1 if there are files. */
static int files(void)
{
    static char ones[1 << 17], twos[1 << 17];
    const ptrdiff_t page = tilecore_page_bytes(), bytes = 2 * page;
    const int file = tilecore_file_new(bytes);
    char *range;
    check(page >= 4096 && page <= (ptrdiff_t)sizeof twos, "the size of a page");
    if (file < 0) {
        check(tilecore_file_write(file, twos, page, 0) < 0, "no files, but one is written to");
        return 0;
    }
#if defined(__linux__)
    const int sealed = (int)syscall(SYS_memfd_create, "sealed", 8u); /* MFD_NOEXEC_SEAL; -1 before Linux 6.3 */
    check(sealed < 0 || fcntl(file, F_GET_SEALS) == fcntl(sealed, F_GET_SEALS), "a file that could be made executable");
#endif
    memset(ones, 1, sizeof ones);
    memset(twos, 2, sizeof twos);
    range = tilecore_addresses_new(2 * bytes);
    check(range != NULL, "addresses for a file");
    if (range == NULL) return 1;
    check(tilecore_file_write(file, ones, page, 0) == 0 && tilecore_file_write(file, twos, page, page) == 0, "written");
    check(tilecore_file_map(file, range, bytes) == 0 && tilecore_file_map(file, range + bytes, bytes) == 0, "a part");
    memset(range + bytes, 3, (size_t)page); /* its own from now on */
    tilecore_file_free(file);
    check(all_are(range, page, 1) && all_are(range + page, page, 2), "what a file shows");
    check(all_are(range + bytes, page, 3) && all_are(range + bytes + page, page, 2), "a page that was written to");
    tilecore_pages_free(range, 2 * bytes);
    return 1;
}

static const char *word(int there) { return there ? "there" : "missing"; }

int main(void)
{
    const int has_addresses = addresses(), has_files = files();
    printf("addresses %s, populated %s, files %s, pages of %td, limits %s; %d wrong\n", word(has_addresses),
           word(populated), word(has_files), tilecore_page_bytes(), tilecore_addresses_limited() ? "set" : "none",
           wrong);
    return wrong != 0;
}
