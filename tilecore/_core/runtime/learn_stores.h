/* Learns from earlier calls which stores are faster into hot outputs, ordinary ones or those past the caches, for loops
 * that only tile and drop each result, as %timeit and pytest-benchmark do; for write/stores.pyx. As in learn_threads.h,
 * there is no lock. C11 / C++17. */
#pragma once

#include "../config.h"

/* Whether stores to `dst` bypass the caches: from `bound` bytes on. For a hot output earlier calls decide, from half of
 * `bound` on, where the caller begins to ask, to four times `bound`; if sizes vary, from twice `bound` on they do. Sets
 * *begin to time the call. */
int tilecore_bypasses(const char *dst, ptrdiff_t bytes, ptrdiff_t bound, long long *begin);

/* Notes a call that wrote `bytes`, 1 KiB or more. `begin`: 0, or what tilecore_bypasses set. */
void tilecore_note_written(const char *dst, ptrdiff_t bytes, int streams, long long begin);
