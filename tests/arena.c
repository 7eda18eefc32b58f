/* The arena by itself, as a library for test_arena.py, and as a program that reads memory after its free. */
#define _GNU_SOURCE
#include <stdio.h>
#define __builtin_ctzll(word) (looked++, __builtin_ctzll(word))
#define TILECORE_IDLE_MILLISECONDS minute
long looked;              /* runs of bits that were looked at */
long long minute = 60000; /* milliseconds */
#include "runtime/pages.c"
#include "runtime/system.c"
#include "runtime/arena.c"

int start(void) { return tilecore_arena_start(1); }
char *take(ptrdiff_t bytes, int *prefaulted) { return tilecore_arena_alloc(bytes, prefaulted); }
int give_back(char *data) { return tilecore_arena_free(data); }
void trim(ptrdiff_t most) { tilecore_arena_trim(most); }
void set_limit(ptrdiff_t most) { tilecore_arena_set_limit(most), tilecore_arena_raise_heap(); }
ptrdiff_t idle(void) { return tilecore_arena_idle(); }
void forget_peak(void) { tilecore_arenas.peak[0] = tilecore_arenas.peak[1] = 0; } /* as after a minute */
void wake(void) /* after a change of `minute` */
{
    tilecore_lock(&tilecore_arena_lock), tilecore_wake_all(&tilecore_arena_change);
    tilecore_unlock(&tilecore_arena_lock);
}

int main(void)
{
    int prefaulted;
    char *data;
    start(), set_limit(1 << 20);
    data = take(100000, &prefaulted), data[99999] = 1, give_back(data);
    data = take(100000, &prefaulted), data[99999] = 2, give_back(data);
    printf("%d\n", prefaulted), fflush(stdout);
    return *(volatile char *)data;
}
