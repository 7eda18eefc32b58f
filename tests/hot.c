/* Which outputs kernels/hot.h holds for hot, by a clock of its own. Prints a word for each. */
#define _GNU_SOURCE
#include <stdio.h>
#include <time.h>

static long nanoseconds;
static int read_clock(clockid_t clock, struct timespec *now)
{
    (void)clock;
    now->tv_sec = 1;
    now->tv_nsec = nanoseconds;
    return 0;
}
#define clock_gettime read_clock
#include "kernels/hot.h"

static void say(const char *dst) { printf("%s ", tilecore_is_hot(dst) ? "hot" : "cold"); }

int main(void)
{
    static char memory[64];
    nanoseconds = 999999999;
    say(memory); /* nothing was written */
    nanoseconds = 0;
    tilecore_note_written(memory + 8, 16);
    nanoseconds = TILECORE_HOT_NANOSECONDS - 1;
    say(memory + 8), say(memory + 23); /* in what was written */
    say(memory + 7), say(memory + 24); /* beside it, as in a batch or a list of results */
    nanoseconds++;
    say(memory + 8); /* other work may have followed */
    return 0;
}
