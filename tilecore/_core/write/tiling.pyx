"""A plan, and the StridedArrays of source and result -> bytes of the whole result, or of a region.

    write_tiling    a small result at once (kernels/isa/small.h); else its nest; of a region, the nest of each piece;
                    by several threads, slabs along the outermost axis, if they pay
      write_nest    by panels, if the source has to be packed (panels.pyx), else by blocks; perhaps only the first
                    repeat is packed, and the others are copied from it
        run_task    blocks and panels are numbered: threads take ranges of the numbers, until a check for signals

This module decides whether a call checks for signals, how many threads write each of its jobs, and whether stores
bypass the caches (panels.pyx may decide so for more outputs). Nothing can fail: the plan has checked every offset;
without workers the caller writes alone.
"""

from tilecore._core.config cimport (
    TILECORE_BLOCKS, TILECORE_BYTES_A_THREAD, TILECORE_CHECK_BYTES, TILECORE_MAX_THREADS, TILECORE_NEW_THREAD_BYTES,
    TILECORE_PANELS, TILECORE_TASK_KINDS, TILECORE_THREAD_BYTES,
)
from tilecore._core.plan.nest cimport (
    AxisIter, Loop, Nest, RegionIter, nest_begin, nest_init, nest_push, next_piece, region_iter_init,
)
from tilecore._core.resources.process_state cimport in_main_thread
from tilecore._core.resources.threads cimport default_threads, max_threads
from tilecore._core.write.blocks cimport Blocks, choose_blocks, write_blocks
from tilecore._core.write.panels cimport Panels, choose_panels, may_pack, write_panels
from tilecore._core.write.processor cimport stream_bytes
from tilecore._core.write.small cimport is_small, write_small
from tilecore._core.write.signals cimport check_signals, signal_checks


cdef extern from "kernels/workers.h" nogil:  # this module holds the process' workers
    ctypedef struct tilecore_record:
        pass

    ctypedef struct tilecore_job:
        tilecore_task task
        void *argument
        Py_ssize_t first, last, each

    Py_ssize_t TILECORE_CHUNK_BYTES
    void tilecore_parallel(tilecore_job *job, int threads, tilecore_record *record, long long until)
    tilecore_record *tilecore_find_record(int kind, Py_ssize_t bytes)
    bint tilecore_begin_job(tilecore_record *record)
    int tilecore_register_workers()


cdef enum:
    LONG_RUN_BYTES = 512        # a first repeat is written alone if copies of it have runs of this many bytes
    MIN_NOTED_BYTES = 65536     # below this, splitting off a first repeat and noting hot memory do not pay
    PREPARED_ITEMS = 256        # cost of preparing a piece, in items

cdef Py_ssize_t cached_bytes = min(stream_bytes, 20 << 20)  # the caches hold an output of this size, by timings


cdef extern from "kernels/hot.h" nogil:
    bint tilecore_hot_streams(const char *dst, Py_ssize_t nbytes, Py_ssize_t bound, long long *begin)
    void tilecore_note_written(const char *dst, Py_ssize_t nbytes, bint streams, long long begin)


cdef struct Slabs:  # parts of a region, along its outermost axis
    RegionIter iter
    char *dst
    const char *src
    bint stream


# ---------------------------------------------------------------- options

cdef int choose_options(WriteOptions *options, Py_ssize_t nbytes, int threads, bint prefaulted,
                        bint references) except -1:
    """Set how to write with at most `threads` threads; 0: the default. It may run the caller's code.

    Items that hold `references` are written by one thread, without checks for signals.
    """
    cdef bint by_default = threads <= 0
    if by_default or references:
        threads = max_threads() if nbytes >= TILECORE_THREAD_BYTES and not references else 1
    options.nbytes, options.threads, options.by_default = nbytes, threads, by_default
    options.prefaulted = prefaulted and not references
    options.signals = signal_checks(nbytes >= TILECORE_CHECK_BYTES and not references and in_main_thread())
    return 0


cdef void choose_options_without_gil(WriteOptions *options, Py_ssize_t nbytes, int threads,
                                     bint prefaulted) noexcept nogil:
    """As choose_options, for C callers and tasks: no checks for signals, and the default is that of the process."""
    options.nbytes, options.prefaulted, options.signals = nbytes, prefaulted, signal_checks(False)
    options.threads, options.by_default = threads, threads <= 0
    if options.by_default:
        options.threads = default_threads() if nbytes >= TILECORE_THREAD_BYTES else 1


cdef int choose_threads(const tilecore_job *job, int kind, Py_ssize_t nbytes, const WriteOptions *options,
                        tilecore_record **record) noexcept nogil:
    """Return how many threads write what is left of a job of `nbytes`, and count the job in its record.

    Two threads need TILECORE_THREAD_BYTES in all; three and more need TILECORE_BYTES_A_THREAD each. The default is one
    thread if the call writes little into new memory, or if that was faster in earlier jobs of this kind and size
    (learn.h). Sets `record` to the record of such jobs, or to NULL if there was no choice.
    """
    cdef Py_ssize_t iterations = job.last - job.first, left = iterations * job.each
    cdef Py_ssize_t by_size = max(left // TILECORE_BYTES_A_THREAD, 2 if left >= TILECORE_THREAD_BYTES else 1)
    cdef int threads = <int>min(options.threads, TILECORE_MAX_THREADS, iterations, by_size)
    record[0] = NULL
    if not options.by_default or threads == 1:
        return threads
    if not options.prefaulted and options.nbytes < TILECORE_NEW_THREAD_BYTES:
        return 1
    record[0] = tilecore_find_record(kind if options.prefaulted else TILECORE_TASK_KINDS + kind, nbytes)
    return 1 if tilecore_begin_job(record[0]) else threads


# ---------------------------------------------------------------- all results

cdef int write_tiling(const Plan *plan, const StridedArray *source, const StridedArray *target,
                      WriteOptions *options) noexcept nogil:
    """Write the plan's result; return 0, or -1 if a signal handler raised.

    `target` has the shape of the result, which must not be empty. Preparing a piece of a region takes 0.1 us.
    """
    cdef Slabs slabs
    cdef Nest nest
    cdef Py_ssize_t nbytes
    if plan.copies:
        if source.contiguous and target.contiguous and is_small(plan):
            write_small(plan, target.data, source.data)
            return 0
        nest_init(plan, source, target, &nest)
        return write_nest(&nest, target.data, source.data, plan.nbytes, options)
    region_iter_init(&slabs.iter, plan, source, target)
    if slabs_pay(&slabs.iter, options):
        slabs.dst, slabs.src, slabs.stream = target.data, source.data, options.nbytes >= stream_bytes
        return run_task(write_slabs, TILECORE_BLOCKS + slabs.stream, &slabs, slabs.iter.axis[slabs.iter.n - 1].count,
                        options.nbytes, options)
    nbytes = next_piece(&slabs.iter, &nest)
    while nbytes:
        if write_nest(&nest, target.data, source.data, nbytes, options) < 0:
            return -1
        if check_signals(&options.signals, PREPARED_ITEMS * plan.itemsize) < 0:  # counts the cost of preparing
            return -1
        nbytes = next_piece(&slabs.iter, &nest)
    return 0


cdef bint slabs_pay(const RegionIter *region, const WriteOptions *options) noexcept nogil:
    """Whether several threads write a region by slabs, and not piece after piece.

    Each piece would be a job, and the pieces of a row share cache lines: by two threads, 3 to 30 MB of a texture took
    1.2 to 2.1 times as long (Granite Rapids). Slabs do not pay for small regions, new memory or one axis, nor if slabs
    are few, the source has to be packed, or it has left the cache when it is read again.
    """
    cdef const AxisIter *axis
    cdef Py_ssize_t item_bytes
    cdef RegionIter iter
    cdef Nest nest
    if options.threads == 1 or options.nbytes < TILECORE_BYTES_A_THREAD or not options.prefaulted or region.n < 2:
        return False
    iter = region[0]
    if next_piece(&iter, &nest) == options.nbytes or may_pack(&nest):
        return False
    axis = &region.axis[region.n - 1]
    item_bytes = options.nbytes // axis.count
    return item_bytes <= TILECORE_CHUNK_BYTES and (axis.extent >= axis.count
                                                   or item_bytes * axis.extent <= cached_bytes // 2)


cdef void write_slabs(void *of_slabs, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Write the items first to last - 1 of the region's outermost axis."""
    cdef const Slabs *slabs = <const Slabs *>of_slabs
    cdef RegionIter iter = slabs.iter
    cdef AxisIter *axis = &iter.axis[iter.n - 1]
    cdef Blocks blocks
    cdef Nest nest
    iter.dst_offset += first * axis.dst_step
    axis.src_index = (axis.first + first) % axis.extent
    axis.count = last - first
    while next_piece(&iter, &nest):
        choose_blocks(&blocks, &nest, slabs.dst + nest.dst_offset, slabs.src + nest.src_offset, slabs.stream, True)
        write_blocks(&blocks, 0, blocks.total)


cdef int write_nest(const Nest *nest, char *dst, const char *src, Py_ssize_t nbytes,
                    WriteOptions *options) noexcept nogil:
    """Write all `nbytes` that `nest` describes; return as write_tiling."""
    cdef Py_ssize_t repeat_bytes
    cdef bint stream = False
    cdef long long begin = 0
    cdef Nest first_repeat, other_repeats
    cdef int status = 0
    if nbytes < MIN_NOTED_BYTES:
        return write_by_panels_or_blocks(nest, dst, src, nbytes, stream, options)
    # The system clears a new page at its first touch, and so brings it into the cache. Then the page is filled at once:
    # no stores that bypass the cache, and no blocks copied to distant pages in turn.
    if options.prefaulted and nbytes >= stream_bytes // 2:
        stream = tilecore_hot_streams(dst + nest.dst_offset, nbytes, stream_bytes, &begin)
    # The first repeat is read again for each of the others, so it must fit the cache beside the output.
    repeat_bytes = nbytes // nest.loop[nest.n - 1].count
    if repeat_bytes <= cached_bytes // 2 and split_first_repeat(nest, &first_repeat, &other_repeats):
        status = write_by_panels_or_blocks(&first_repeat, dst, src, repeat_bytes, False, options)
        if status == 0:
            status = write_by_panels_or_blocks(&other_repeats, dst, dst, nbytes - repeat_bytes, stream, options)
    else:
        status = write_by_panels_or_blocks(nest, dst, src, nbytes, stream, options)
    tilecore_note_written(dst + nest.dst_offset, nbytes, stream, begin)
    return status


cdef bint split_first_repeat(const Nest *nest, Nest *first_repeat, Nest *other_repeats) noexcept nogil:
    """Whether to pack the first repeat of the outermost loop alone, and then copy it: only if copies have long runs.

    Sets `first_repeat` to the loops of the first repeat, `other_repeats` to the loops that copy it within the output.
    """
    cdef const Loop *top = &nest.loop[nest.n - 1]
    cdef int k
    if top.src_step != 0 or not may_pack(nest):
        return False
    nest_begin(other_repeats, nest.loop[0].count)
    for k in range(1, nest.n - 1):
        nest_push(other_repeats, nest.loop[k].count, nest.loop[k].dst_step, nest.loop[k].dst_step)
    nest_push(other_repeats, top.count - 1, 0, top.dst_step)
    other_repeats.src_offset, other_repeats.dst_offset = nest.dst_offset, nest.dst_offset + top.dst_step
    first_repeat[0] = nest[0]
    first_repeat.n -= 1
    return other_repeats.loop[0].count >= LONG_RUN_BYTES


cdef int write_by_panels_or_blocks(const Nest *nest, char *dst, const char *src, Py_ssize_t nbytes, bint stream,
                                   WriteOptions *options) noexcept nogil:
    """Return as write_tiling."""
    cdef Panels panels
    cdef Blocks blocks
    dst += nest.dst_offset
    src += nest.src_offset
    if choose_panels(&panels, nest, dst, src, stream, options.prefaulted):
        return run_task(write_panels, TILECORE_PANELS + panels.stream, &panels, panels.total, nbytes, options)
    choose_blocks(&blocks, nest, dst, src, stream, options.prefaulted or nbytes < cached_bytes)
    return run_task(write_blocks, TILECORE_BLOCKS + stream, &blocks, blocks.total, nbytes, options)


cdef int run_task(tilecore_task task, int kind, void *job, Py_ssize_t total, Py_ssize_t nbytes,
                  WriteOptions *options) noexcept nogil:
    """Run a task for the iterations 0 to total - 1, which write `nbytes`; return as write_tiling."""
    cdef tilecore_job work
    cdef tilecore_record *record
    cdef int threads
    work.task, work.argument = task, job
    work.first, work.last, work.each = 0, total, max(nbytes // total, 1)
    while work.first < work.last:  # again, if it is time to check for signals
        threads = choose_threads(&work, kind, nbytes, options, &record)
        tilecore_parallel(&work, threads, record, options.signals.next)
        if check_signals(&options.signals, nbytes) < 0:
            return -1
    return 0


if tilecore_register_workers():
    raise ImportError("tilecore: no memory to register what happens at fork()")
