/* Learns from earlier calls of the same kind and size whether workers make calls faster, for calls that leave the
 * number of threads to tilecore: write/tiling.pyx asks, workers.c notes. It has no lock: callers in several threads may
 * change a record at once, and a lost change costs only speed. C11 / C++17. */
#pragma once

#include "../config.h"

typedef struct tilecore_record tilecore_record;

/* Finds the record of a kind of task, into prefaulted memory or not, by stores past the caches or not, of a size. */
tilecore_record *tilecore_find_record(int kind, int prefaulted, int past_caches, ptrdiff_t bytes);

/* Counts a job, and returns whether it is to be serial. */
int tilecore_next_is_serial(tilecore_record *record);

/* Note the pace, in nanoseconds a MiB, of a serial call, in real time: when a thread reads its processor time, it may
 * lose its processor. A call with workers has two paces: its own, and that of its caller's part, which is 0 if workers
 * took every chunk. */
void tilecore_note_serial(tilecore_record *record, double pace);
void tilecore_note_parallel(tilecore_record *record, double pace, double callers_pace, int threads);
