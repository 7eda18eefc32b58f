/* Recycled memory of results, for resources/memory.pyx: later results, of any size, get what is freed, with its pages.
 *
 *     tilecore_arena_start(huge);        // once, before all else: the handlers of fork(). Returns an error, or 0
 *     tilecore_arena_set_limit(bytes);   // of idle memory, at any time; before the first call it is 0
 *     char *data = tilecore_arena_alloc(bytes, &prefaulted);    // bytes >= 1. NULL: the caller allocates as usual
 *     if (!tilecore_arena_free(data)) free(data);               // 0: it is not from here, and nothing was done
 *
 * Any thread may call these, also at exit and without the GIL. One lock guards the arenas, system calls included.
 * Outside it pages are populated, and glibc's heap is raised and trimmed. fork() waits for this lock. As with malloc,
 * nobody may use what is freed. Pages that their owner changed by mprotect or madvise stay changed. On other systems
 * than Linux nothing is recycled. */
#pragma once

#include "../config.h"

/* From this size on each call queries the address limits. That takes 0.3 us, in a call that takes over 100. */
#define TILECORE_QUERY_BYTES ((ptrdiff_t)4 << 20)

/* Allocates `bytes`, on a boundary of granules. Returns NULL if there are none, or under an address limit: it queries
 * this if pages are missing, and from TILECORE_QUERY_BYTES on. Sets `prefaulted` to whether half of the pages were
 * mapped. */
char *tilecore_arena_alloc(ptrdiff_t bytes, int *prefaulted);
int tilecore_arena_free(char *data);
/* Returns how many bytes were allocated at `data`, or 0 if it is not from an arena. */
ptrdiff_t tilecore_arena_capacity(char *data);

/* Releases idle pages beyond `limit` bytes; with a limit of 0, glibc's heap's too if it was raised. */
void tilecore_arena_trim(ptrdiff_t limit);

/* Makes glibc's heap keep the pages of the program's other arrays, once in a process. */
void tilecore_arena_raise_heap(void);

int tilecore_arena_start(int huge);      /* whether to advise huge pages */
ptrdiff_t tilecore_arena_idle(void);     /* bytes */
ptrdiff_t tilecore_arena_limit(void);
void tilecore_arena_set_limit(ptrdiff_t limit);
