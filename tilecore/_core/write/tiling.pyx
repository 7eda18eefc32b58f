"""A plan, and the StridedArrays of source and result -> bytes of the whole result, or of a region.

The code from write_tiling to run_task writes every result, except small new ones (make_small) and items that NumPy
copies (references.pyx). Panels and blocks are numbered, so that threads take ranges of the numbers. This module also
decides how many threads write each job, and when a call checks for signals. A call ends early only if a signal handler
raises: the plan has checked every offset, and without workers the caller writes alone.
"""

from libc.limits cimport LLONG_MAX
from libc.stdlib cimport free

from tilecore._core.config cimport (
    TILECORE_BLOCKS, TILECORE_BYTES_A_THREAD, TILECORE_CHECK_BYTES, TILECORE_CHECK_NANOSECONDS,
    TILECORE_FIRST_CHECK_NANOSECONDS, TILECORE_MAX_THREADS, TILECORE_NEW_THREAD_BYTES, TILECORE_PANELS,
    TILECORE_THREAD_BYTES,
)
from tilecore._core.plan.nest cimport (
    AxisIter, Loop, Nest, RegionIter, nest_begin, nest_init, nest_push, next_piece, region_iter_init,
)
from tilecore._core.plan.plan cimport is_small
from tilecore._core.resources.process_state cimport in_main_thread
from tilecore._core.resources.threads cimport default_threads, max_threads
from tilecore._core.write.blocks cimport Blocks, choose_blocks, write_blocks
from tilecore._core.write.panels cimport Panels, choose_panels, may_pack, new_scratch, pack_panel, write_panels
from tilecore._core.resources.processor cimport cached_bytes, kernels
from tilecore._core.write.stores cimport ORDINARY, PAST_CACHES, Stores, choose_stores, note_written


cdef extern from "Python.h":
    int PyErr_CheckSignals()

cdef extern from "runtime/system.h" nogil:
    long long tilecore_nanoseconds(int of_thread)

cdef extern from "runtime/workers.h" nogil:
    ctypedef struct tilecore_record:
        pass

    ctypedef struct tilecore_job:
        tilecore_task task
        void *argument
        Py_ssize_t first, last, each

    Py_ssize_t TILECORE_CHUNK_BYTES
    void tilecore_parallel(tilecore_job *job, int threads, tilecore_record *record, long long until)
    tilecore_record *tilecore_find_record(int kind, bint prefaulted, bint past_caches, Py_ssize_t bytes)
    bint tilecore_next_is_serial(tilecore_record *record)
    int tilecore_register_workers()


cdef enum:
    LONG_ROW_BYTES = 512        # a first repeat is written alone if copies of it have rows of this many bytes
    MIN_NOTED_BYTES = 65536     # below this, splitting off a first repeat and noting hot memory do not pay
    PREPARED_ITEMS = 256        # cost of preparing a piece, in items
    MIN_BANDED_BYTES = 2097152  # a region of this size or more may be written by bands


# ---------------------------------------------------------------- the way of every result

cdef int write_tiling(const Plan *plan, const StridedArray *source, const StridedArray *target,
                      WriteOptions *options) noexcept nogil:
    """Write the plan's result; return 0, or -1 if a signal handler raised.

    `target` has the shape of the result, which must not be empty.
    """
    cdef Nest nest
    if plan.cuts_repeats:
        return write_region(plan, source, target, options)
    if source.contiguous and target.contiguous and is_small(plan):
        kernels.write_small(kernels, plan.ndim, plan.shape, plan.repeats, plan.itemsize, target.data, source.data)
        return 0
    nest_init(plan, source, target, &nest)
    return write_nest(&nest, target.data, source.data, plan.nbytes, options)


cdef int write_region(const Plan *plan, const StridedArray *source, const StridedArray *target,
                      WriteOptions *options) noexcept nogil:
    """Write a region piece by piece, each by its nest, or by bands; return as write_tiling."""
    cdef Bands bands
    cdef Nest nest
    cdef Py_ssize_t nbytes
    cdef long long begin
    cdef int status
    region_iter_init(&bands.iter, plan, source, target)
    nbytes = next_piece(&bands.iter, &nest)
    if nbytes < options.nbytes and bands_pay(&bands.iter, &nest, options):
        region_iter_init(&bands.iter, plan, source, target)
        bands.dst, bands.src = target.data, source.data
        bands.stores = choose_stores(target.data + bands.iter.dst_offset, options.nbytes, True, &begin)
        status = run_task(write_bands, TILECORE_BLOCKS, bands.stores, &bands,
                          bands.iter.axis[bands.iter.n - 1].count, options.nbytes, options)
        note_written(target.data + bands.iter.dst_offset, options.nbytes, bands.stores, begin)
        return status
    while nbytes:
        if write_nest(&nest, target.data, source.data, nbytes, options) < 0:
            return -1
        if check_signals(options, PREPARED_ITEMS * plan.itemsize) < 0:  # counts the cost of preparing, 0.1 us
            return -1
        nbytes = next_piece(&bands.iter, &nest)
    return 0


cdef int write_nest(const Nest *nest, char *dst, const char *src, Py_ssize_t nbytes,
                    WriteOptions *options) noexcept nogil:
    """Write all `nbytes` that `nest` describes, the first repeat alone if that pays; return as write_tiling."""
    cdef Py_ssize_t repeat_bytes
    cdef Stores stores
    cdef long long begin
    cdef Nest first_repeat, other_repeats
    cdef bint packs = may_pack(nest)
    cdef int status
    if nbytes < MIN_NOTED_BYTES:
        return write_loops(nest, packs, dst, src, nbytes, ORDINARY, options)
    stores = choose_stores(dst + nest.dst_offset, nbytes, options.prefaulted, &begin)
    # The first repeat is read again for each of the others, so it must fit the cache beside the output.
    repeat_bytes = nbytes // nest.loop[nest.n - 1].count
    if packs and repeat_bytes <= cached_bytes // 2 and split_first_repeat(nest, &first_repeat, &other_repeats):
        status = write_loops(&first_repeat, packs, dst, src, repeat_bytes, ORDINARY, options)
        if status == 0:
            status = write_loops(&other_repeats, False, dst, dst, nbytes - repeat_bytes, stores, options)
    else:
        status = write_loops(nest, packs, dst, src, nbytes, stores, options)
    note_written(dst + nest.dst_offset, nbytes, stores, begin)
    return status


cdef int write_loops(const Nest *nest, bint packs, char *dst, const char *src, Py_ssize_t nbytes, Stores stores,
                     WriteOptions *options) noexcept nogil:
    """Write by panels, if the source has to be packed, else by blocks; return as write_tiling."""
    cdef Panels panels
    cdef Blocks blocks
    dst += nest.dst_offset
    src += nest.src_offset
    if packs and choose_panels(&panels, nest, dst, src, stores):
        return run_panels(&panels, &blocks, nbytes, options)
    choose_blocks(&blocks, nest, dst, src, stores)
    return run_task(write_blocks, TILECORE_BLOCKS, stores, &blocks, blocks.total, nbytes, options)


cdef int run_panels(const Panels *panels, Blocks *blocks, Py_ssize_t nbytes,
                    WriteOptions *options) noexcept nogil:
    """Run one task that writes all panels; or, if a panel's output is large, for each panel a task of its `blocks`."""
    cdef int status = 0
    cdef Py_ssize_t number, panel_bytes = nbytes // panels.total
    cdef void *scratch
    if panels.direct or (panels.total > 1 and panel_bytes < TILECORE_CHECK_BYTES):
        return run_task(write_panels, TILECORE_PANELS, panels.stores, <void *>panels, panels.total, nbytes, options)
    scratch = new_scratch(panels)
    for number in range(panels.total):
        pack_panel(panels, number, scratch, blocks)
        status = run_task(write_blocks, TILECORE_PANELS, panels.stores, blocks, blocks.total, panel_bytes, options)
        if status < 0:
            break
    free(scratch)
    return status


cdef int run_task(tilecore_task task, int kind, Stores stores, void *argument, Py_ssize_t total, Py_ssize_t nbytes,
                  WriteOptions *options) noexcept nogil:
    """Run a task for the iterations 0 to total - 1, which write `nbytes`; return as write_tiling."""
    cdef tilecore_job job
    cdef tilecore_record *record
    cdef int threads
    job.task, job.argument = task, argument
    job.first, job.last, job.each = 0, total, max(nbytes // total, 1)
    while job.first < job.last:  # again, if it is time to check for signals
        threads = choose_threads(&job, kind, stores, nbytes, options, &record)
        tilecore_parallel(&job, threads, record, options.next_check)
        if check_signals(options, nbytes) < 0:
            return -1
    return 0


# ---------------------------------------------------------------- parts of it

cdef bint split_first_repeat(const Nest *nest, Nest *first_repeat, Nest *other_repeats) noexcept nogil:
    """Whether to pack the first repeat of the outermost loop alone, and then copy it: only if copies have long rows.

    Sets `first_repeat` to the loops of the first repeat, `other_repeats` to the loops that copy it within the output.
    """
    cdef const Loop *top = &nest.loop[nest.n - 1]
    cdef int k
    if top.src_step != 0:
        return False
    nest_begin(other_repeats, nest.loop[0].count)
    for k in range(1, nest.n - 1):
        nest_push(other_repeats, nest.loop[k].count, nest.loop[k].dst_step, nest.loop[k].dst_step)
    nest_push(other_repeats, top.count - 1, 0, top.dst_step)
    other_repeats.src_offset, other_repeats.dst_offset = nest.dst_offset, nest.dst_offset + top.dst_step
    first_repeat[0] = nest[0]
    first_repeat.n -= 1
    return other_repeats.loop[0].count >= LONG_ROW_BYTES


cdef bint bands_pay(const RegionIter *region, const Nest *first_piece, const WriteOptions *options) noexcept nogil:
    """Whether several threads write a region by bands, and not piece after piece.

    Each piece would be a job, and the pieces of a row share cache lines. Bands do not pay for small regions, new memory
    or many repeats along one axis, nor if bands are few, the source has to be packed, or it has left the cache when it
    is read again.
    """
    cdef const AxisIter *axis = &region.axis[region.n - 1]
    cdef Py_ssize_t item_bytes = options.nbytes // axis.count
    if options.threads == 1 or options.nbytes < MIN_BANDED_BYTES or not options.prefaulted:
        return False
    if may_pack(first_piece) or (region.n == 1 and axis.count // 4 > axis.extent):
        return False
    return item_bytes <= TILECORE_CHUNK_BYTES and (axis.extent >= axis.count
                                                   or item_bytes * axis.extent <= cached_bytes // 2)


cdef void write_bands(void *of_bands, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Write the items first to last - 1 of the region's outermost axis."""
    cdef const Bands *bands = <const Bands *>of_bands
    cdef RegionIter iter = bands.iter
    cdef AxisIter *axis = &iter.axis[iter.n - 1]
    cdef Blocks blocks
    cdef Nest nest
    iter.dst_offset += first * axis.dst_step
    axis.src_index = (axis.first + first) % axis.extent
    axis.count = last - first
    while next_piece(&iter, &nest):
        choose_blocks(&blocks, &nest, bands.dst + nest.dst_offset, bands.src + nest.src_offset, bands.stores)
        write_blocks(&blocks, 0, blocks.total)


# ---------------------------------------------------------------- options

cdef int read_options(WriteOptions *options, Py_ssize_t nbytes, int threads, bint prefaulted,
                      bint references) except -1:
    """Set how to write with at most `threads` threads; 0: the default. It may run the caller's code.

    Items that hold `references` are written by one thread, without checks for signals.
    """
    cdef bint by_default = threads <= 0
    if by_default or references:
        threads = max_threads() if nbytes >= TILECORE_THREAD_BYTES and not references else 1
    options.nbytes, options.threads, options.by_default = nbytes, threads, by_default
    options.prefaulted = prefaulted and not references
    begin_checks(options, nbytes >= TILECORE_CHECK_BYTES and not references and in_main_thread())
    return 0


cdef void fill_options(WriteOptions *options, Py_ssize_t nbytes, int threads,
                       bint prefaulted) noexcept nogil:
    """As read_options, for C callers and tasks: no checks for signals, and the default is that of the process."""
    begin_checks(options, False)
    options.nbytes, options.prefaulted = nbytes, prefaulted
    options.threads, options.by_default = threads, threads <= 0
    if options.by_default:
        options.threads = default_threads() if nbytes >= TILECORE_THREAD_BYTES else 1


cdef int choose_threads(const tilecore_job *job, int kind, Stores stores, Py_ssize_t nbytes,
                        const WriteOptions *options, tilecore_record **record) noexcept nogil:
    """Return how many threads write what is left of a job of `nbytes`, and count the job in its record.

    Two threads need TILECORE_THREAD_BYTES in all; three and more need TILECORE_BYTES_A_THREAD each. The default is one
    thread if the call writes little into new memory, or if that was faster in earlier jobs of this kind and size
    (learn_threads.c). Sets `record` to the record of such jobs, or to NULL if there was no choice.
    """
    cdef Py_ssize_t iterations = job.last - job.first, left = iterations * job.each
    cdef Py_ssize_t by_size = max(left // TILECORE_BYTES_A_THREAD, 2 if left >= TILECORE_THREAD_BYTES else 1)
    cdef int threads = <int>min(options.threads, TILECORE_MAX_THREADS, iterations, by_size)
    record[0] = NULL
    if not options.by_default or threads == 1:
        return threads
    if not options.prefaulted and options.nbytes < TILECORE_NEW_THREAD_BYTES:
        return 1
    record[0] = tilecore_find_record(kind, options.prefaulted, stores == PAST_CACHES, nbytes)
    return 1 if tilecore_next_is_serial(record[0]) else threads


# ---------------------------------------------------------------- signals

# Python delivers signals to the main thread alone, so only a call in the main thread checks for them. Another thread
# must not take the GIL here: a daemon thread keeps running while the process ends, and the interpreter may be gone.

cdef int handlers_within = 0  # checks in progress, each in a handler of the one before; of the main thread alone


cdef void begin_checks(WriteOptions *options, bint on) noexcept nogil:
    """Before the call. The first check comes early: a Ctrl-C just before a long call ends that call soon."""
    options.next_check = tilecore_nanoseconds(0) + TILECORE_FIRST_CHECK_NANOSECONDS if on else LLONG_MAX
    options.unchecked = 0


cdef int check_signals(WriteOptions *options, Py_ssize_t nbytes) noexcept nogil:
    """Count `nbytes`; check for signals if it is time. Return 0, or -1 with an exception set."""
    global handlers_within
    cdef long long now
    cdef int status
    options.unchecked += nbytes
    if options.unchecked < TILECORE_CHECK_BYTES:
        return 0
    options.unchecked = 0
    now = tilecore_nanoseconds(0)
    if now < options.next_check:
        return 0
    options.next_check = now + TILECORE_CHECK_NANOSECONDS
    with gil:
        if handlers_within >= 16:  # each takes 30 KiB of the stack, which Python's limit of recursion does not know
            return 0
        handlers_within += 1
        status = PyErr_CheckSignals()
        handlers_within -= 1
        return status


if tilecore_register_workers():
    raise ImportError("tilecore: no memory to register what happens at fork()")
