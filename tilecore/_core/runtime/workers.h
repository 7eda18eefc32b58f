/* Workers: threads that help to write large results, for write/tiling.pyx. They belong to the process, and run only C.
 *
 *     static void task(void *argument, ptrdiff_t first, ptrdiff_t last) { ... write iterations first to last - 1 ... }
 *
 *     tilecore_register_workers();  // once, before all else: the handlers of fork(). Returns an error, or 0
 *     tilecore_job job = {task, argument, first, last, bytes_of_each};
 *     tilecore_parallel(&job, 8, record, until);  // moves job.first and job.last to what is left
 *
 * Any thread may call tilecore_parallel, with or without the GIL, also several at once. When it returns, each iteration
 * outside [job.first, job.last) was written once, here or in a worker, and no worker is in the job. If there is no
 * worker, for whatever reason, the caller writes alone. `task` must not fail, call Python, or fork. No lock is held
 * while it runs, but a fork() in another thread waits for the workers in it. C11 / C++17. */
#pragma once

#include "learn_threads.h"

/* A chunk is a sixteenth of a thread's part, within these bounds: smaller chunks take longer to start, and larger ones
 * keep the caller waiting longer for the last. Those at the end are an eighth, at least TILECORE_LAST_CHUNK_BYTES. */
#define TILECORE_CHUNK_BYTES ((ptrdiff_t)128 << 10)
#define TILECORE_MAX_CHUNK_BYTES ((ptrdiff_t)2 << 20)
#define TILECORE_LAST_CHUNK_BYTES ((ptrdiff_t)32 << 10)

typedef void (*tilecore_task)(void *argument, ptrdiff_t first, ptrdiff_t last);

typedef struct tilecore_job {
    tilecore_task task;
    void *argument;
    ptrdiff_t first, last;               /* its iterations */
    ptrdiff_t each;                      /* bytes of output of an iteration, at least 1; workers.c sets the rest */
    ptrdiff_t large_chunk, small_chunk;  /* in iterations; `small` is a macro on Windows */
    ptrdiff_t leading, trailing, chunks; /* numbers of large chunks at the start and at the end, and of all chunks */
    ptrdiff_t taken, taken_by_workers;   /* numbers of chunks: counters */
} tilecore_job;

/* Runs a job in at most `threads` <= TILECORE_MAX_THREADS threads. Returns after the first chunk that ends past the
 * time `until`, in nanoseconds. `record`: what such calls learn, or NULL. */
void tilecore_parallel(tilecore_job *job, int threads, tilecore_record *record, long long until);

int tilecore_register_workers(void);
