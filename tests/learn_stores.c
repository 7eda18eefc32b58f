/* Which outputs runtime/learn_stores.c takes for hot, and which stores it learns, by a clock of its own. */
#define _GNU_SOURCE
#include "runtime/system.h"
#include <stdio.h>

static long long nanoseconds = 999999999;
#define tilecore_nanoseconds(of_thread) nanoseconds
#include "runtime/learn_stores.c"

static char memory[64];

static void say(const char *dst, ptrdiff_t bytes)
{
    const ptrdiff_t before = tilecore_hot[0][2];
    const int streams = tilecore_stores_bypass(dst, bytes, 15, &(long long){0});
    printf("%s%d ", tilecore_hot[0][2] > before ? "learns" : "", streams);
}

/* 300 calls: prints the number of each run of calls with the same stores, ordinary (o) or past the caches (s). A call
 * takes `ordinary` or `past` microseconds; the first five of a run and each seventh call take 1 ms more. */
static void loop(ptrdiff_t bytes, ptrdiff_t bound, int ordinary, int past)
{
    int k, run = 0, last = bytes >= bound;
    for (k = 0; k < 300; k++) {
        long long begin = 0;
        const int now = tilecore_stores_bypass(memory, bytes, bound, &begin);
        if (now != last) printf("%d%c ", run, last ? 's' : 'o'), run = 0;
        nanoseconds += 1000 * ((now ? past : ordinary) + (++run <= 5 || k % 7 == 0 ? 1000 : 0));
        tilecore_note_written(memory, bytes, last = now, begin);
    }
    printf("%d%c\n", run, last ? 's' : 'o');
}

int main(void)
{
    say(memory, 16); /* nothing was written */
    tilecore_note_written(memory, 59, 0, 0), say(memory, 59);
    tilecore_note_written(memory, 60, 0, 0), say(memory, 60); /* four times the bound: so large ones do not try */
    nanoseconds = 0;
    tilecore_note_written(memory + 8, 16, 0, 0);
    nanoseconds = TILECORE_HOT_NANOSECONDS - 1;
    say(memory + 8, 16);                                            /* the same memory */
    say(memory + 23, 16), say(memory + 8, 29), say(memory + 8, 30); /* in it, another size: twice the bound */
    say(memory + 7, 16), say(memory + 24, 16); /* next to it, as in a batch or a list of results */
    nanoseconds++;
    say(memory + 8, 16); /* other work may have followed */
    printf("\n");
    loop(20 << 20, 16 << 20, 900, 600), loop(20 << 20, 16 << 20, 600, 900); /* from here on the others are faster */
    loop(10 << 20, 16 << 20, 600, 900);
    return 0;
}
