/* The page code by itself: blocks that are made, idle and written to again; a file in memory that shows in
 * several places. Prints what the system has of it; the exit status is 0 where nothing was wrong. A system
 * that has none must say so of each function, and then the caller takes ordinary memory.
 */
#define _GNU_SOURCE
#define __USE_MINGW_ANSI_STDIO 1 /* %td */
#include <stdio.h>
#include <string.h>

#include "kernels/pages.h"

static int wrong;

static void check(int right, const char *what)
{
    if (right) return;
    wrong++;
    printf("wrong: %s\n", what);
}

static int all_are(const char *at, ptrdiff_t bytes, char value)
{
    ptrdiff_t i;
    for (i = 0; i < bytes; i++)
        if (at[i] != value) return 0;
    return 1;
}

/* 1 where there are blocks. */
static int blocks(void)
{
    const ptrdiff_t sizes[] = {TILECORE_OWN_BLOCK_BYTES, 7 << 18, TILECORE_HUGE_BYTES, 9 << 18, 11 << 18, 15 << 18};
    size_t k;
    check(tilecore_block_new(PTRDIFF_MAX - TILECORE_HUGE_BYTES + 1, 1) == NULL, "a block larger than memory");
    for (k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const ptrdiff_t bytes = sizes[k], part = bytes / 3;
        char *block = tilecore_block_new(bytes, bytes - 5);
        if (!block) {
            check(tilecore_block_idle(NULL, bytes) < 0, "no blocks, but an idle one");
            return 0;
        }
        check((uintptr_t)block % TILECORE_HUGE_BYTES == 0, "where a block begins");
        memset(block - TILECORE_BLOCK_HEAD, 1, TILECORE_BLOCK_HEAD);
        memset(block, 2, (size_t)bytes);
        check(tilecore_block_idle(block, bytes) == 0, "an idle block");
        memset(block, 3, (size_t)bytes);
        check(all_are(block - TILECORE_BLOCK_HEAD, TILECORE_BLOCK_HEAD, 1) && all_are(block, bytes, 3),
              "a block that is written to again");
        check(tilecore_block_idle(block + part, part) == 0, "a part that is idle");
        check(all_are(block, part, 3) && all_are(block + 2 * part, bytes - 2 * part, 3), "the parts beside it");
        tilecore_block_drop(block + part, part);
        check(all_are(block, part, 3) && all_are(block + 2 * part, bytes - 2 * part, 3), "the parts beside it");
        check(block[part + part / 2] == 0, "a part that is given back");
        tilecore_block_free(block, bytes);
    }
    return 1;
}

/* 1 where there are files: the example of pages.h. */
static int files(void)
{
    static char two_pages[1 << 18];
    const ptrdiff_t page = tilecore_page_bytes(), bytes = 2 * page;
    const int file = tilecore_file_new(bytes);
    char *range, *opened;
    int i;
    check(page >= 4096 && bytes <= (ptrdiff_t)sizeof two_pages, "the size of a page");
    memset(two_pages, 1, (size_t)page);
    memset(two_pages + page, 2, (size_t)page);
    if (file < 0) {
        check(tilecore_file_write(file, two_pages, bytes, 0) < 0, "no files, but one is written to");
        check(tilecore_file_open(file, bytes) == NULL, "no files, but one is open");
        return 0;
    }
    check(tilecore_file_write(file, two_pages, bytes, 0) == 0, "a file that is written to");
    range = tilecore_range_new(3 * bytes);
    check(range != NULL, "a range of addresses");
    if (!range) return 1;
    for (i = 0; i < 3; i++) check(tilecore_file_map(file, range + i * bytes, bytes, 0) == 0, "a part of a file");
    for (i = 0; i < 3; i++) check(!memcmp(range + i * bytes, two_pages, (size_t)bytes), "what a file shows");
    memset(range + bytes, 3, (size_t)page); /* its own from now on */
    check(!memcmp(range, two_pages, (size_t)bytes), "what is before a page that was written to");
    check(all_are(range + bytes, page, 3) && all_are(range + bytes + page, page, 2), "a page that was written to");
    check(!memcmp(range + 2 * bytes, two_pages, (size_t)bytes), "what is after it");
    tilecore_file_free(file);
    check(!memcmp(range, two_pages, (size_t)bytes), "mappings stay");
    tilecore_pages_free(range, 3 * bytes);

    i = tilecore_file_new(bytes);
    opened = tilecore_file_open(i, bytes);
    check(opened && all_are(opened, bytes, 0), "a file for writing in place");
    if (opened) tilecore_pages_free(opened, bytes);
    tilecore_file_free(i);
    return 1;
}

int main(void)
{
    const int has_blocks = blocks(), has_files = files();
    printf("blocks %s, files %s, pages of %td, addresses %s; %d wrong\n", has_blocks ? "there" : "missing",
           has_files ? "there" : "missing", tilecore_page_bytes(),
           tilecore_addresses_limited() ? "limited" : "free", wrong);
    return wrong != 0;
}
