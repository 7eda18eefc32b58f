"""A nest of loops and a source -> bytes of the output.

The inner loops of a nest that write at most TILECORE_BLOCK_BYTES are a *block*: made once, by the kernels, from the
innermost dimension outward. The loops outside go over blocks, in a new order: those that move in the source, and
within them those that repeat. So every block is written to all of its destinations while it is hot, and the source is
read once.

    nest of (1024, 1024) float32 tiled (4, 4):   run 4096, 4x 4096, 1024 rows, 4x 16777216
    block: run 4096, 4 times = 16384 bytes;      for each of 1024 rows: to 4 destinations

A loop that would overfill the block is split: some of its steps join the block, the rest loop over blocks; the last
of these may be shorter.

A source of another layout is packed first, by panels, and each panel is tiled as above; or it is packed in the output's
first place, and repeated from there (pack.pyx).

The blocks are numbered. Threads, and the stretches between two looks for a signal, take ranges of those numbers; a
region of the output is a few nests of its own (regions.pyx).

Nothing here can fail: the plan has shown that every offset fits, the memory is the caller's, and the few kilobytes of
state lie on the stack. Without memory for a block of scratch, the block is made in the output; if a worker cannot be
created, the others do its share. Hence `noexcept nogil`.
"""

from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from tilecore._core.plan.nest cimport MOST_AXES, Axis, Nest, Step, advance
from tilecore._core.write.pack cimport Panels, choose_panels, find_panel, pack_panel, packs_first, panel_nest
from tilecore._core.write.processor cimport (
    TILECORE_PAST_CACHES, kernels, libc_bytes, stream_bytes, tilecore_prepare_rows,
)
from tilecore._core.write.signals cimport (
    TILECORE_LOOK_MILLISECONDS, TILECORE_WATCH_BYTES, Watch, look_for_signals, tilecore_milliseconds, watch_begin,
)


cdef extern from "kernels/workers.h" nogil:  # all workers of the process are this module's
    void tilecore_parallel(tilecore_task task, void *argument, Py_ssize_t first, Py_ssize_t last, Py_ssize_t nbytes,
                           int threads)
    int tilecore_backs_off()
    int tilecore_register_workers()


cdef enum:
    # At most this many runs, of at most this many bytes, are copied one by one, because a kernel needs preparing:
    # 24 runs of 4 bytes, to another stride, take 73 ns one by one, and 118 by kernels. But if a run repeats in place,
    # kernels are faster.
    FEW_RUNS = 24
    FEW_RUN_BYTES = 16
    # Separate rows of at least this many bytes bypass the cache one by one, rather than as a block that does not.
    LEAST_STREAMED_ROW = 256


cdef void choose_blocks(Blocks *blocks, const Nest *nest, bint stream, bint reorder) noexcept nogil:
    """Choose the block and its kernel, and order the loops over blocks."""
    cdef Axis *axis = blocks.axis
    cdef Axis top
    cdef Py_ssize_t payload = 1, extent = 1, inner, steps
    cdef int i, k, n = 0
    cdef bint dense = True, is_split = False, in_place, near
    # Inner axes, as long as they fit; the first that does not is split.
    while n < nest.n:
        top = nest.axis[n]
        if dense and top.dst != extent and top.count > 1:
            dense = False
            if payload >= (LEAST_STREAMED_ROW if stream else TILECORE_BLOCK_BYTES // 8):
                dense = True
                break  # a dense block this large is better than a larger one that is not
        if payload * top.count > TILECORE_BLOCK_BYTES:
            break
        axis[n] = top
        payload *= top.count
        extent = top.dst * top.count
        n += 1
    blocks.last_count = 0
    steps = 0
    if n < nest.n:
        top = nest.axis[n]
        inner = TILECORE_BLOCK_BYTES // payload
        if inner >= 2 and (n == 0 or not dense or top.dst == extent):
            steps = (top.count + inner - 1) // inner          # blocks along this axis
            inner = (top.count + steps - 1) // steps          # of nearly equal length
            if n == 0:
                inner = (inner + 63) & ~<Py_ssize_t>63        # a run: whole cache lines
            steps = (top.count + inner - 1) // inner
            axis[n] = Axis(inner, top.src, top.dst)
            blocks.last_count = top.count - (steps - 1) * inner
            is_split = True
            n += 1
    blocks.n = n
    blocks.dense = dense
    blocks.stream = stream and dense
    # The loops outside: repeats first, or all as they come.
    blocks.loops = 0
    blocks.split = -1
    blocks.total = 1
    for k in range(2 if reorder else 1):
        for i in range(n - 1 if is_split else n, nest.n):
            top = nest.axis[i]
            if reorder and (top.src == 0) != (k == 0):
                continue
            if is_split and i == n - 1:
                blocks.split = blocks.loops
                inner = axis[n - 1].count
                top = Axis(steps, top.src * inner, top.dst * inner)
            blocks.loop[blocks.loops] = top
            blocks.loops += 1
            blocks.total *= top.count
    # The axes that one kernel call writes: a run, its repeats in place, and rows of those.
    near = blocks.loops == 0
    blocks.kernel_axes = 1
    # Of two inner axes, the longer one is the better innermost loop: pixels rather than their three colours.
    blocks.by_columns = (n > 2 and axis[1].count < axis[2].count
                         and (not dense or (axis[1].src != 0 and axis[2].src != 0)))
    if n > 1:
        in_place = axis[1].src == 0 and axis[1].dst == axis[0].count
        blocks.by_columns = blocks.by_columns and not in_place
        blocks.kernel_axes = 3 if blocks.by_columns or (in_place and n > 2 and axis[2].src != 0) else 2
        top = axis[blocks.kernel_axes - 1]
        if in_place and blocks.kernel_axes == 2:
            top = Axis(1, 0, 0)
        tilecore_prepare_rows(&blocks.rows, kernels, axis[0].count, axis[1].count if in_place else 1, top.src, top.dst,
                              top.count, near)


cdef void write_axes(const Blocks *blocks, int n, Py_ssize_t count, char *dst, const char *src) noexcept nogil:
    """Write the inner `n` axes of a block, the outermost of them for `count` steps."""
    cdef const Axis *top = &blocks.axis[n - 1]
    cdef const Axis *inner
    cdef Py_ssize_t i
    if n == 1:
        kernels.copy(dst, src, count)
    elif n == blocks.kernel_axes:
        if blocks.by_columns:
            inner = &blocks.axis[1]
            for i in range(inner.count):
                blocks.rows.write(&blocks.rows, dst + i * inner.dst, src + i * inner.src, count, 1)
        elif n == 3:
            blocks.rows.write(&blocks.rows, dst, src, count, blocks.axis[1].count)
        elif top.src == 0 and top.dst == blocks.axis[0].count:
            blocks.rows.write(&blocks.rows, dst, src, 1, count)
        else:
            blocks.rows.write(&blocks.rows, dst, src, count, 1)
    else:
        inner = &blocks.axis[n - 2]
        if top.src == 0 and blocks.dense:
            write_axes(blocks, n - 1, inner.count, dst, src)
            kernels.replicate(dst, top.dst, count)
        else:
            for i in range(count):
                write_axes(blocks, n - 1, inner.count, dst + i * top.dst, src + i * top.src)


cdef void write_one_block(const Blocks *blocks, char *dst, const char *src) noexcept nogil:
    """Write an output that is a single block."""
    write_axes(blocks, blocks.n, blocks.axis[blocks.n - 1].count, dst, src)


cdef void write_blocks(const Blocks *blocks, char *dst, const char *src, Py_ssize_t first,
                       Py_ssize_t last) noexcept nogil:
    """Write the blocks numbered first to last - 1."""
    cdef void *scratch = NULL
    cdef char *aligned = NULL
    cdef bint stream = blocks.stream
    cdef Step loop[MOST_AXES]
    cdef const char *hot = NULL     # `ready` steps of the current block, already made
    cdef const char *made = src     # from here
    cdef Py_ssize_t number = first, count, nbytes, ready = 0, index, _block
    cdef int k
    cdef const Axis *top = &blocks.axis[blocks.n - 1]
    if stream and blocks.n > 1:
        # Not on the stack: a thread may have little. Not by PyMem_RawMalloc: tracemalloc takes the GIL for it, and
        # its holder waits for this thread.
        scratch = malloc(TILECORE_BLOCK_BYTES + 64)
        aligned = <char *>((<size_t>scratch + 63) & ~<size_t>63)
        stream = scratch != NULL
    for k in range(blocks.loops):
        count = blocks.loop[k].count
        index = number % count
        number //= count
        loop[k] = Step(count, count, 0, index, blocks.loop[k].src, blocks.loop[k].dst, index)
        dst += index * loop[k].dst
        src += index * loop[k].src
    for _block in range(first, last):
        count = top.count
        if blocks.split >= 0 and loop[blocks.split].place == loop[blocks.split].count - 1:
            count = blocks.last_count
        if not blocks.dense:
            write_axes(blocks, blocks.n, count, dst, src)
        else:
            nbytes = top.dst * count
            if blocks.n == 1:
                hot = src
            elif src != made or ready < count:  # not yet made, or only a shorter part
                if stream:
                    write_axes(blocks, blocks.n, count, aligned, src)
                    hot = aligned
                else:
                    write_axes(blocks, blocks.n, count, dst, src)
                    hot = dst
                made, ready = src, count
            if stream:
                kernels.stream(dst, hot, nbytes)
            elif hot != dst and nbytes >= libc_bytes:
                memcpy(dst, hot, nbytes)
            elif hot != dst:
                kernels.copy(dst, hot, nbytes)
        advance(loop, blocks.loops, 1, &dst, &src)
    if stream:
        kernels.stream_end()
    free(scratch)


cdef void write_job_by_blocks(void *of_blocks, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef const Job *job = <const Job *>of_blocks
    if job.units.blocks.loops:
        write_blocks(&job.units.blocks, job.dst, job.src, first, last)
    else:
        write_one_block(&job.units.blocks, job.dst, job.src)


cdef inline Py_ssize_t part_begin(Py_ssize_t total, Py_ssize_t parts, Py_ssize_t part) noexcept nogil:
    """Where a part begins, of so many nearly equal ones."""
    return part * (total // parts) + min(part, total % parts)


cdef void write_job_by_panels(void *of_panels, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Write the parts numbered first to last - 1 of what is made of the panels."""
    cdef const Job *job = <const Job *>of_panels
    cdef const Panels *panels = &job.units.panels
    cdef void *scratch = NULL
    cdef char *cells = NULL     # where a transposition goes by way of them
    cdef char *panel = NULL     # unless it is direct
    cdef char *dst
    cdef const char *src
    cdef Blocks blocks
    cdef Nest nest
    cdef Py_ssize_t count[MOST_AXES]
    cdef Py_ssize_t number, part, begin, end, packed = -1
    if panels.cell_bytes or not panels.direct:
        scratch = malloc(panels.cell_bytes + (0 if panels.direct else panels.nbytes) + 64)
    if scratch != NULL:
        panel = <char *>((<size_t>scratch + 63) & ~<size_t>63)
        if panels.cell_bytes:
            cells = panel
            panel += panels.cell_bytes
    for number in range(first, last):
        dst, src = job.dst, job.src
        find_panel(panels, number // panels.parts, count, &dst, &src)
        if panels.direct:
            pack_panel(panels, count, dst, src, cells)
            continue
        if scratch != NULL and number // panels.parts != packed:
            packed = number // panels.parts
            pack_panel(panels, count, panel, src, cells)
        panel_nest(panels, count, scratch != NULL, &nest)
        choose_blocks(&blocks, &nest, panels.stream, True)
        part = number % panels.parts
        begin = part_begin(blocks.total, panels.parts, part)
        end = part_begin(blocks.total, panels.parts, part + 1)
        if begin < end:
            write_blocks(&blocks, dst, <const char *>panel if scratch != NULL else src, begin, end)
    if panels.where == TILECORE_PAST_CACHES:
        kernels.stream_end()
    free(scratch)


cdef bint stays_alone() noexcept nogil:
    """Whether a call that was given no number of threads uses one: others have cost more than they brought."""
    return tilecore_backs_off()


# ---------------------------------------------------------------- a nest

cdef inline void copy_each(const Py_ssize_t *src_at, const Py_ssize_t *dst_at, Py_ssize_t n, Py_ssize_t itemsize,
                           char *dst, const char *src) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        memcpy(dst + dst_at[i], src + src_at[i], itemsize)


cdef void write_table(const Py_ssize_t *src_at, const Py_ssize_t *dst_at, Py_ssize_t n, Py_ssize_t itemsize,
                      char *dst, const char *src) noexcept nogil:
    """Copy `n` items, each from its offset in the source to its offset in the output."""
    if itemsize == 1:  # a constant size is copied without a call
        copy_each(src_at, dst_at, n, 1, dst, src)
    elif itemsize == 2:
        copy_each(src_at, dst_at, n, 2, dst, src)
    elif itemsize == 4:
        copy_each(src_at, dst_at, n, 4, dst, src)
    elif itemsize == 8:
        copy_each(src_at, dst_at, n, 8, dst, src)
    elif itemsize == 16:
        copy_each(src_at, dst_at, n, 16, dst, src)
    else:
        copy_each(src_at, dst_at, n, itemsize, dst, src)


cdef bint write_few(const Nest *nest, char *dst, const char *src) noexcept nogil:
    """Write a result of few runs one by one; False, with nothing written, for others."""
    cdef Py_ssize_t src_at[FEW_RUNS]
    cdef Py_ssize_t dst_at[FEW_RUNS]
    cdef const Axis *axis
    cdef Py_ssize_t n = 1, i, j
    cdef int k
    for k in range(1, nest.n):
        if nest.axis[k].count > FEW_RUNS or n * nest.axis[k].count > FEW_RUNS:  # a division takes 5 ns
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
    write_table(src_at, dst_at, n, nest.axis[0].count, dst, src)
    return True


cdef int execute(const Nest *nest, char *dst, const char *src, Py_ssize_t nbytes, Mode mode) noexcept nogil:
    """Write all `nbytes` that `nest` describes; 0, or -1 if a signal handler has raised."""
    cdef Watch watch
    watch_begin(&watch, mode.poll)
    return execute_watched(nest, dst, src, nbytes, mode, &watch)


cdef int execute_watched(const Nest *nest, char *dst, const char *src, Py_ssize_t nbytes, Mode mode,
                         Watch *watch) noexcept nogil:
    """As `execute`; several share one watch."""
    cdef Py_ssize_t run = nest.axis[0].count
    cdef bint in_place = nest.n == 1 or (nest.axis[1].src == 0 and nest.axis[1].dst == run)
    cdef Py_ssize_t one
    cdef Nest first, others
    if run <= FEW_RUN_BYTES and not in_place and write_few(nest, dst, src):
        return look_for_signals(watch, nbytes)
    if nbytes < TILECORE_NOGIL_BYTES:
        return execute_nest(nest, dst, src, nbytes, mode, watch)
    # The first repeat is read again and again: it lies in the cache, and leaves room for what is written.
    one = nbytes // nest.axis[nest.n - 1].count
    if one > stream_bytes // 2 or not packs_first(nest, &first, &others):
        return execute_nest(nest, dst, src, nbytes, mode, watch)
    if execute_nest(&first, dst, src, one, mode, watch) < 0:
        return -1
    return execute_nest(&others, dst, dst, nbytes - one, mode, watch)


cdef int execute_nest(const Nest *nest, char *dst, const char *src, Py_ssize_t nbytes, Mode mode,
                      Watch *watch) noexcept nogil:
    cdef Job job
    choose_job(&job, nest, nbytes, mode.warm)
    return execute_job(&job, dst, src, nbytes, mode, watch)


cdef void choose_job(Job *job, const Nest *nest, Py_ssize_t nbytes, bint warm) noexcept nogil:
    """How to write `nbytes`, for any source and output of this nest."""
    # The system clears a fresh page at its first touch. Then the page lies in the cache, so it is filled at once: no
    # stores that bypass the cache, and no visits to many places in turn.
    cdef bint stream = warm and nbytes >= stream_bytes
    job.nest = nest
    if choose_panels(&job.units.panels, nest, stream, warm):
        job.write = write_job_by_panels
        job.total = job.units.panels.total
    else:
        choose_blocks(&job.units.blocks, nest, stream, warm or nbytes < stream_bytes)
        job.write = write_job_by_blocks
        job.total = job.units.blocks.total


cdef int execute_job(Job *job, char *dst, const char *src, Py_ssize_t nbytes, Mode mode, Watch *watch) noexcept nogil:
    """As `execute`, for what choose_job has chosen."""
    job.dst, job.src = dst + job.nest.dst, src + job.nest.src
    return execute_units(job.write, job, job.total, nbytes, mode, watch)


cdef int execute_units(tilecore_task write, void *job, Py_ssize_t total, Py_ssize_t nbytes, Mode mode,
                       Watch *watch) noexcept nogil:
    """As `execute`, for all units of any job."""
    cdef Py_ssize_t first = 0, last, stretch
    cdef long long begun
    if total == 1 or not watch.on:
        if total == 1:
            write(job, 0, 1)
        else:
            tilecore_parallel(write, job, 0, total, nbytes, mode.threads)
        return look_for_signals(watch, nbytes) if watch.on else 0
    # Stretches of work, each as long as a look for signals may be off. They are longer after one that took little
    # time, and the first is longer for several threads: so threads wait less for each other.
    stretch = total // (nbytes // (TILECORE_WATCH_BYTES * (2 if mode.threads > 1 else 1)) + 1) + 1
    begun = tilecore_milliseconds()
    while first < total:
        last = first + stretch if first < total - stretch else total
        tilecore_parallel(write, job, first, last, (last - first) * (nbytes // total), mode.threads)
        if look_for_signals(watch, TILECORE_WATCH_BYTES) < 0:
            return -1
        if tilecore_milliseconds() - begun < TILECORE_LOOK_MILLISECONDS // 2 and stretch < total // 2:
            stretch *= 2
        elif stretch > 1:
            stretch //= 2
        begun = tilecore_milliseconds()
        first = last
    return 0


if tilecore_register_workers():
    raise ImportError("tilecore: no memory to register what happens at fork()")
