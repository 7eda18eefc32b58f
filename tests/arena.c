/* The arena by itself, as a library for test_arena.py. */
#define _GNU_SOURCE
#include "kernels/arena.h"

char *take(ptrdiff_t bytes, int *warm);
int give_back(char *data);
ptrdiff_t resize(char *data, ptrdiff_t bytes);
void trim(ptrdiff_t most);
void set_limit(ptrdiff_t most);
ptrdiff_t idle(void);

char *take(ptrdiff_t bytes, int *warm) { return tilecore_arena_take(bytes, warm); }
int give_back(char *data) { return tilecore_arena_give_back(data); }
ptrdiff_t resize(char *data, ptrdiff_t bytes) { return tilecore_arena_resize(data, bytes); }
void trim(ptrdiff_t most) { tilecore_arena_trim(most); }
void set_limit(ptrdiff_t most) { tilecore_arena_set_limit(most); }
ptrdiff_t idle(void) { return tilecore_arena_idle(); }
