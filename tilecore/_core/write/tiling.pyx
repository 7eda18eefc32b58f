"""A plan, and the ArrayRefs of source and result -> bytes of the whole result; for a region, see regions.pyx.

    write_tiling    a small result, or the block that a plan keeps; else the nest of the plan
      write_nest    a few runs one by one; else by panels, if the source has to be packed (panels.pyx), or by blocks
        run_task    blocks and panels are numbered: threads take ranges of the numbers, between checks for signals

This module decides how many threads may write (workers.h takes fewer for few bytes), whether a call checks for signals,
and whether stores may bypass the cache. Nothing can fail: the plan has checked every offset, and if a worker cannot be
created, the others do its share.
"""

import sys

from tilecore._core.resources.threads import get_num_threads

from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from tilecore._core.plan.nest cimport Axis, Nest, nest_begin, nest_init, nest_push
from tilecore._core.plan.plan cimport Sizes
from tilecore._core.request.array_refs cimport ref_strides
from tilecore._core.resources.host cimport in_main_thread
from tilecore._core.resources.threads cimport default_threads
from tilecore._core.write.blocks cimport Blocks, choose_blocks, write_blocks, write_one_block
from tilecore._core.write.panels cimport Panels, choose_panels, runs_along, write_panels
from tilecore._core.write.processor cimport stream_bytes
from tilecore._core.write.signals cimport (
    TILECORE_CHECK_BYTES, TILECORE_CHECK_MILLISECONDS, check_signals, signal_checks, tilecore_milliseconds,
)


cdef extern from "kernels/workers.h" nogil:  # this module holds the process' workers
    void tilecore_parallel(tilecore_task task, void *argument, Py_ssize_t first, Py_ssize_t last, Py_ssize_t nbytes,
                           int threads)
    int tilecore_backs_off()
    int tilecore_register_workers()


cdef enum:
    SMALL_BYTES = 1024
    SMALL_COPIES = 16
    # At most this many runs, of at most this many bytes, are copied one by one: 24 runs of 4 bytes, to another stride,
    # take 73 ns, and 118 ns with a kernel, which must be prepared. Runs that repeat in place are left to kernels.
    FEW_RUNS = 24
    FEW_RUN_BYTES = 16
    LONG_RUN_BYTES = 512        # the least run of copies of a first repeat: see packs_first
    MOST_CHECKED_THREADS = 16   # a chunk between two checks for signals grows with the threads up to this number


cdef union Job:
    Blocks blocks
    Panels panels


cdef object is_finalizing = sys.is_finalizing  # the name `sys` is gone at exit


cdef bint plan_prepare(Plan *plan) noexcept nogil:
    """Prepare the block if the result is a single one; return False if there is no memory for it."""
    cdef Nest nest
    cdef Blocks *blocks
    cdef Py_ssize_t row
    if not 0 < plan.sizes.nbytes < TILECORE_NOGIL_BYTES:  # an empty result's other extents may overflow
        return True
    choose_small_row(&plan.sizes, &row)
    if row:
        return True
    # The kernels' masks need an alignment that Python's objects lack. Not PyMem_RawMalloc: under tracemalloc it takes
    # the GIL, and C callers make plans without the GIL.
    plan.memory = malloc(sizeof(Blocks) + 64)
    if plan.memory == NULL:
        return False
    blocks = <Blocks *>((<size_t>plan.memory + 63) & ~<size_t>63)
    nest_init(&plan.sizes, NULL, NULL, &nest)
    choose_blocks(blocks, &nest, False, True)
    if blocks.loops == 0:
        plan.block = blocks
    return True


cdef void plan_clear(Plan *plan) noexcept nogil:
    free(plan.memory)


# ---------------------------------------------------------------- modes

cdef Mode choose_mode(Py_ssize_t nbytes, int threads, bint prefaulted) except *:
    """Return how to write `nbytes` with at most `threads` threads; 0: the default. It may run the caller's code."""
    cdef Mode mode
    if threads <= 0 and nbytes >= (TILECORE_THREAD_BYTES if prefaulted else 2 * TILECORE_THREAD_BYTES):
        # At exit a module's globals may be None already; one thread will do.
        threads = 1 if is_finalizing() else get_num_threads()
        if threads > 1 and tilecore_backs_off():  # in this order: it counts the calls that could use several threads
            threads = 1
    mode.threads, mode.prefaulted = threads, prefaulted
    mode.signals = signal_checks(nbytes >= TILECORE_CHECK_BYTES and in_main_thread())
    return mode


cdef Mode caller_mode(Py_ssize_t nbytes, int threads) noexcept nogil:
    """Return how to write for a C caller, who handles signals; its memory counts as prefaulted."""
    if threads <= 0:
        threads = default_threads() if nbytes >= TILECORE_THREAD_BYTES and not tilecore_backs_off() else 1
    return simple_mode(threads, True)


# ---------------------------------------------------------------- small results

cdef inline int choose_small_row(const Sizes *sizes, Py_ssize_t *row) noexcept nogil:
    """Return the innermost repeated axis, or -1. Set `row` to its bytes in the source; 0: the result is not small."""
    cdef int k = sizes.ndim - 1
    row[0] = sizes.itemsize
    while k >= 0 and sizes.repeats[k] == 1:
        row[0] *= sizes.shape[k]
        k -= 1
    if k >= 0:
        row[0] *= sizes.shape[k]
    if sizes.nbytes > SMALL_BYTES or (k >= 0 and sizes.nbytes > SMALL_COPIES * row[0]):
        row[0] = 0
    return k


cdef bint write_small(const Sizes *sizes, char *dst, const char *src) noexcept nogil:
    """Write a result of few rows, C-contiguous from C-contiguous; return False, with nothing written, for others.

    Nine results in ten are this small, and half of all repeat nothing: loops and kernels take longer to choose than to
    run. First, all rows with their repeats are written, packed at the start. Then, axis by axis outward, each group of
    rows is moved to its final offset, the last group first, and copied after itself.
    """
    cdef Py_ssize_t row, group, packed, repeats, r
    cdef int k = choose_small_row(sizes, &row)
    cdef const char *end = src + sizes.input_nbytes
    cdef const char *group_at
    cdef char *at = dst
    if row == 0:
        return False
    if k < 0:
        memcpy(dst, src, row)
        return True
    repeats = sizes.repeats[k]
    while src < end:
        for r in range(repeats):  # no-cython-lint: a typed loop needs its variable
            memcpy(at, src, row)
            at += row
        src += row
    group = row * repeats
    packed = at - dst
    for k in range(k - 1, -1, -1):
        group *= sizes.shape[k]
        repeats = sizes.repeats[k]
        if repeats == 1:
            continue
        group_at = dst + packed
        packed *= repeats
        at = dst + packed
        while group_at > dst:
            group_at -= group
            at -= group * repeats
            if group_at > dst:
                memcpy(at, group_at, group)
            for r in range(1, repeats):
                memcpy(at + r * group, at, group)
        group *= repeats
    return True


cdef inline void copy_each(const Py_ssize_t *src_at, const Py_ssize_t *dst_at, Py_ssize_t n, Py_ssize_t run,
                           char *dst, const char *src) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        memcpy(dst + dst_at[i], src + src_at[i], run)


cdef bint write_few(const Nest *nest, char *dst, const char *src) noexcept nogil:
    """Write a result of few runs one by one; return False, with nothing written, for others."""
    cdef Py_ssize_t src_at[FEW_RUNS]
    cdef Py_ssize_t dst_at[FEW_RUNS]
    cdef const Axis *axis
    cdef Py_ssize_t n = 1, i, j, run = nest.axis[0].count
    cdef int k
    for k in range(1, nest.n):
        if nest.axis[k].count > FEW_RUNS or n * nest.axis[k].count > FEW_RUNS:  # no overflow, no division
            return False
        n *= nest.axis[k].count
    n = 1
    src_at[0], dst_at[0] = nest.src, nest.dst
    for k in range(1, nest.n):
        axis = &nest.axis[k]
        for j in range(1, axis.count):
            for i in range(n):
                src_at[j * n + i] = src_at[i] + j * axis.src
                dst_at[j * n + i] = dst_at[i] + j * axis.dst
        n *= axis.count
    if run == 1:  # a constant size is copied without a call
        copy_each(src_at, dst_at, n, 1, dst, src)
    elif run == 2:
        copy_each(src_at, dst_at, n, 2, dst, src)
    elif run == 4:
        copy_each(src_at, dst_at, n, 4, dst, src)
    elif run == 8:
        copy_each(src_at, dst_at, n, 8, dst, src)
    elif run == 16:
        copy_each(src_at, dst_at, n, 16, dst, src)
    else:
        copy_each(src_at, dst_at, n, run, dst, src)
    return True


# ---------------------------------------------------------------- all results

cdef int write_tiling(const Plan *plan, const ArrayRef *source, const ArrayRef *target, Mode *mode) noexcept nogil:
    """Write the whole result; return 0, or -1 if a signal handler raised."""
    cdef Nest nest
    if source.contiguous and target.contiguous:
        if write_small(&plan.sizes, target.data, source.data):
            return 0
        if plan.block != NULL:
            write_one_block(<const Blocks *>plan.block, target.data, source.data)
            return 0
    nest_init(&plan.sizes, ref_strides(source), ref_strides(target), &nest)
    return write_nest(&nest, target.data, source.data, plan.sizes.nbytes, mode)


cdef int write_nest(const Nest *nest, char *dst, const char *src, Py_ssize_t nbytes, Mode *mode) noexcept nogil:
    """Write all `nbytes` that `nest` describes; return as write_tiling."""
    cdef Py_ssize_t run = nest.axis[0].count, first_bytes
    cdef bint in_place = nest.n == 1 or (nest.axis[1].src == 0 and nest.axis[1].dst == run)
    # The system clears a new page at its first touch, and so brings it into the cache. Then the page is filled at once:
    # no stores that bypass the cache, and no blocks copied to distant pages in turn.
    cdef bint stream = mode.prefaulted and nbytes >= stream_bytes
    cdef Nest first, others
    if run <= FEW_RUN_BYTES and not in_place and write_few(nest, dst, src):
        return check_signals(&mode.signals, nbytes)
    if nbytes >= TILECORE_NOGIL_BYTES:
        # The first repeat is read again for each of the others, so it must fit the cache beside the output.
        first_bytes = nbytes // nest.axis[nest.n - 1].count
        if first_bytes <= stream_bytes // 2 and packs_first(nest, &first, &others):
            if write_loops(&first, dst, src, first_bytes, False, mode) < 0:
                return -1
            return write_loops(&others, dst, dst, nbytes - first_bytes, stream, mode)
    return write_loops(nest, dst, src, nbytes, stream, mode)


cdef bint packs_first(const Nest *nest, Nest *first, Nest *others) noexcept nogil:
    """Whether to pack only the first repeat of the outermost loop: the source needs packing, and gets long runs by it.

    Sets `first` to the loops of the first repeat, `others` to the loops that copy it within the output.
    """
    cdef const Axis *top = &nest.axis[nest.n - 1]
    cdef int k
    if top.src != 0 or runs_along(nest):
        return False
    nest_begin(others, nest.axis[0].count)
    for k in range(1, nest.n - 1):
        nest_push(others, nest.axis[k].count, nest.axis[k].dst, nest.axis[k].dst)
    nest_push(others, top.count - 1, 0, top.dst)
    others.src, others.dst = nest.dst, nest.dst + top.dst
    first[0] = nest[0]
    first.n -= 1
    return others.axis[0].count >= LONG_RUN_BYTES


cdef int write_loops(const Nest *nest, char *dst, const char *src, Py_ssize_t nbytes, bint stream,
                     Mode *mode) noexcept nogil:
    """Write by panels or by blocks; return as write_tiling."""
    cdef Job job
    dst += nest.dst
    src += nest.src
    if choose_panels(&job.panels, nest, dst, src, stream, mode.prefaulted):
        return run_task(write_panels, &job, job.panels.total, nbytes, mode)
    choose_blocks(&job.blocks, nest, stream, mode.prefaulted or nbytes < stream_bytes)
    job.blocks.dst, job.blocks.src = dst, src
    return run_task(write_blocks, &job, job.blocks.total, nbytes, mode)


cdef int run_task(tilecore_task task, void *job, Py_ssize_t total, Py_ssize_t nbytes, Mode *mode) noexcept nogil:
    """Run a task for the iterations 0 to total - 1, which write `nbytes`; return as write_tiling."""
    cdef Py_ssize_t first = 0, last, chunk
    cdef long long begun
    if total == 1 or not mode.signals.on:
        if total == 1:
            task(job, 0, 1)
        else:
            tilecore_parallel(task, job, 0, total, nbytes, mode.threads)
        return check_signals(&mode.signals, nbytes)
    # Signals are checked between chunks. A chunk has TILECORE_CHECK_BYTES for each thread, so it is worth as many
    # threads as the whole. A chunk that took little time is followed by one twice as long, because threads wait for
    # each other at the end of each chunk.
    chunk = total // (nbytes // (TILECORE_CHECK_BYTES * min(max(mode.threads, 1), MOST_CHECKED_THREADS)) + 1) + 1
    begun = tilecore_milliseconds()
    while first < total:
        last = first + chunk if first < total - chunk else total
        tilecore_parallel(task, job, first, last, (last - first) * (nbytes // total), mode.threads)
        if check_signals(&mode.signals, TILECORE_CHECK_BYTES) < 0:
            return -1
        if tilecore_milliseconds() - begun < TILECORE_CHECK_MILLISECONDS // 2 and chunk < total // 2:
            chunk *= 2
        elif chunk > 1:
            chunk //= 2
        begun = tilecore_milliseconds()
        first = last
    return 0


if tilecore_register_workers():
    raise ImportError("tilecore: no memory to register what happens at fork()")
