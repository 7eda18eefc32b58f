/* The arena by itself, as a library for test_arena.py. */
#define _GNU_SOURCE
#define __builtin_ctzll(word) (looked++, __builtin_ctzll(word))
#define TILECORE_IDLE_MILLISECONDS minute
long looked;              /* so many times at a run of bits */
long long minute = 60000; /* its milliseconds */
#include "kernels/arena.h"

int start(void) { return tilecore_arena_start(); }
char *take(ptrdiff_t bytes, int *prefaulted) { return tilecore_arena_alloc(bytes, prefaulted); }
int give_back(char *data) { return tilecore_arena_free(data); }
void trim(ptrdiff_t most) { tilecore_arena_trim(most); }
void set_limit(ptrdiff_t most) { tilecore_arena_set_limit(most); }
ptrdiff_t idle(void) { return tilecore_arena_idle(); }
