/* Pages: addresses to which pages are added, and from which they are released, for arena.c; and pages that are mapped
 * at several addresses, for write/mapped.pyx. On systems that have neither, allocation fails, and the caller
 * allocates as usual. C11 / C++17.
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
#pragma once

#include "../config.h"

/* The size of a huge page on most processors and systems. */
#define TILECORE_HUGE_BYTES ((ptrdiff_t)2 << 20)

ptrdiff_t tilecore_page_bytes(void);

/* Unmaps pages of the caller's that nobody uses any more. */
void tilecore_pages_free(void *at, ptrdiff_t bytes);

/* Reserves `bytes` of addresses, without pages, on a boundary of huge pages. Returns NULL if there are none, or if new
 * mappings are locked (mlockall): they would have all pages at once, and keep them. */
char *tilecore_addresses_new(ptrdiff_t bytes);

/* Advises for or against huge pages; errors do not matter. Like the next function, it takes only whole pages. */
void tilecore_addresses_advise(char *at, ptrdiff_t bytes, int huge);

/* Releases pages, which then read as 0. Linux-only, as the next one. */
void tilecore_addresses_drop(char *at, ptrdiff_t bytes);

/* Maps pages that will be written next, on Linux 5.14 and later; before, nothing happens. `bytes`: any number. */
void tilecore_addresses_populate(char *at, ptrdiff_t bytes);

/* Whether the process has a limit on addresses (ulimit -v) or data (ulimit -d), to which idle pages count too. */
int tilecore_addresses_limited(void);

/* Creates a file without a name, in memory, for up to `bytes`. Returns -1 if the system refuses. */
int tilecore_file_new(ptrdiff_t bytes);
void tilecore_file_free(int file);

/* Writes to the file, which grows. Returns 0, or -1. It is twice as fast as a mapping, page by page. */
int tilecore_file_write(int file, const char *src, ptrdiff_t bytes, ptrdiff_t offset);

/* Maps the file's first `bytes`, whole pages, over what the caller has at `at`. A write there copies the page, and does
 * not change the file. Past the file's last page it raises SIGBUS. Returns 0, or -1. */
int tilecore_file_map(int file, char *at, ptrdiff_t bytes);
