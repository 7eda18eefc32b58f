/* Learns from earlier calls which stores are faster into hot outputs, ordinary ones or those past the caches, for loops
 * that only tile and drop each result, as %timeit and pytest-benchmark do; for write/stores.pyx. As in learn_threads.h,
 * there is no lock. C11 / C++17. */
#pragma once

#include "../config.h"

/* Whether stores to `dst` bypass the caches: by default from `bound` bytes on. Into a hot output of the same place and
 * size, earlier calls decide, to four times `bound`; into one of another, stores bypass from twice `bound` on. Callers
 * ask from half of `bound` on. Sets *begin to time the call. */
int tilecore_stores_bypass(const char *dst, ptrdiff_t bytes, ptrdiff_t bound, long long *begin);

/* Notes a call that wrote `bytes`, 1 KiB or more. `begin`: 0, or what tilecore_stores_bypass set. */
void tilecore_note_written(const char *dst, ptrdiff_t bytes, int streams, long long begin);
