"""A nest of loops and a source -> bytes of the output, by blocks.

The inner loops of a nest that write at most TILECORE_BLOCK_BYTES are a *block*: kernels make it once, from the
innermost dimension outward. The loops outside go over blocks, in a new order: loops that move in the source, and
inside them loops that repeat. So every block is written to all of its destinations while it is cached, and the source
is read once.

    nest of (1024, 1024) float32 tiled (4, 4):   run 4096, 4x 4096, 1024 rows, 4x 16777216
    block: run 4096, 4 times = 16384 bytes;      for each of 1024 rows: to 4 destinations

A loop that would overfill the block is split: some of its steps join the block, the rest loop over blocks, of which the
last may be shorter. The blocks are numbered, and a task writes a range of them (tiling.pyx).

Nothing here can fail, so all is `noexcept nogil`: the plan has checked every offset, and the state lies on the stack.
If there is no memory for a block of scratch, the block is made in the output.
"""

from libc.stdlib cimport free, malloc

from tilecore._core.plan.nest cimport MAX_AXES, Axis, Loop, Nest, next_step
from tilecore._core.write.processor cimport kernels, move_bytes, tilecore_move, tilecore_prepare_rows


cdef enum:
    # From this many bytes on, rows with gaps between them bypass the cache one by one; shorter rows form a block.
    MIN_STREAMED_ROW = 256


cdef void choose_blocks(Blocks *blocks, const Nest *nest, bint stream, bint reorder) noexcept nogil:
    """Choose the block and its kernel, and order the loops over blocks: repeats innermost, or in the nest's order."""
    cdef Py_ssize_t steps = choose_axes(blocks, nest, stream)
    order_loops(blocks, nest, steps, reorder)
    choose_kernel(blocks)


cdef Py_ssize_t choose_axes(Blocks *blocks, const Nest *nest, bint stream) noexcept nogil:
    """Choose the inner axes that make a block, while they fit. Split the first axis that does not, if that is useful.

    Return the number of blocks along the split axis, or 0.
    """
    cdef Axis *axis = blocks.axis
    cdef Axis top
    cdef Py_ssize_t payload = 1, dst_end = 1, inner, steps
    cdef int n = 0
    blocks.dense = True
    blocks.last_count = 0
    while n < nest.n:
        top = nest.axis[n]
        if blocks.dense and top.dst != dst_end and top.count > 1:
            if payload >= (MIN_STREAMED_ROW if stream else TILECORE_BLOCK_BYTES // 8):
                break  # a dense block this large is better than a larger one with gaps
            blocks.dense = False
        if payload * top.count > TILECORE_BLOCK_BYTES:
            break
        axis[n] = top
        payload *= top.count
        dst_end = top.dst * top.count
        n += 1
    blocks.n = n
    blocks.stream = stream and blocks.dense
    inner = TILECORE_BLOCK_BYTES // payload
    if n == nest.n or inner < 2 or (n > 0 and blocks.dense and nest.axis[n].dst != dst_end):
        return 0
    top = nest.axis[n]
    steps = (top.count + inner - 1) // inner
    inner = (top.count + steps - 1) // steps              # of nearly equal length
    if n == 0:
        inner = (inner + 63) & ~<Py_ssize_t>63            # a run: whole cache lines
    steps = (top.count + inner - 1) // inner
    axis[n] = Axis(inner, top.src, top.dst)
    blocks.last_count = top.count - (steps - 1) * inner
    blocks.n += 1
    return steps


cdef void order_loops(Blocks *blocks, const Nest *nest, Py_ssize_t steps, bint reorder) noexcept nogil:
    """Set the loops over blocks, of which one takes the `steps` of a split axis; 0: none is split."""
    cdef Axis top
    cdef Py_ssize_t inner
    cdef int i, k
    cdef int split = blocks.n - 1 if steps else -1
    blocks.loops = 0
    blocks.split = -1
    blocks.total = 1
    for k in range(2 if reorder else 1):
        for i in range(split if steps else blocks.n, nest.n):
            top = nest.axis[i]
            if reorder and (top.src == 0) != (k == 0):
                continue
            if i == split:
                blocks.split = blocks.loops
                inner = blocks.axis[i].count
                top = Axis(steps, top.src * inner, top.dst * inner)
            blocks.loop[blocks.loops] = top
            blocks.loops += 1
            blocks.total *= top.count


cdef void choose_kernel(Blocks *blocks) noexcept nogil:
    """Choose the axes that one kernel call writes: a run, its repeats in place, and rows of them."""
    cdef const Axis *axis = blocks.axis
    cdef Axis top
    cdef bint in_place, dense = blocks.dense
    cdef int n = blocks.n
    blocks.kernel_axes = 1
    blocks.by_columns = False
    if n == 1:
        return
    in_place = axis[1].src == 0 and axis[1].dst == axis[0].count
    # Of two inner axes, the longer one is the better innermost loop: pixels rather than their three colours.
    blocks.by_columns = (n > 2 and not in_place and axis[1].count < axis[2].count
                         and (not dense or (axis[1].src != 0 and axis[2].src != 0)))
    blocks.kernel_axes = 3 if blocks.by_columns or (in_place and n > 2 and axis[2].src != 0) else 2
    top = axis[blocks.kernel_axes - 1]
    if in_place and blocks.kernel_axes == 2:
        top = Axis(1, 0, 0)
    tilecore_prepare_rows(&blocks.rows, kernels, axis[0].count, axis[1].count if in_place else 1, top.src, top.dst,
                          top.count, blocks.loops == 0)


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


cdef void write_blocks(void *of_blocks, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Write the blocks numbered first to last - 1."""
    cdef const Blocks *blocks = <const Blocks *>of_blocks
    cdef char *dst = blocks.dst
    cdef const char *src = blocks.src
    cdef void *scratch = NULL
    cdef char *aligned = NULL       # in `scratch`
    cdef bint stream = blocks.stream
    cdef Loop loop[MAX_AXES]
    cdef const char *block = NULL   # the block last made: `ready` steps
    cdef const char *made = src     # its source
    cdef Py_ssize_t ready = 0, count, nbytes, _block
    cdef const Axis *top = &blocks.axis[blocks.n - 1]
    if blocks.loops == 0:
        write_axes(blocks, blocks.n, top.count, dst, src)
        return
    if stream and blocks.n > 1:
        # Not on the stack, which may be small in a thread. Not by PyMem_RawMalloc: under tracemalloc it takes the GIL,
        # and the thread that holds the GIL waits for this one.
        scratch = malloc(TILECORE_BLOCK_BYTES + 64)
        stream = scratch != NULL
        aligned = <char *>((<size_t>scratch + 63) & ~<size_t>63)
    start_loops(blocks, first, loop, &dst, &src)
    for _block in range(first, last):
        count = top.count
        if blocks.split >= 0 and loop[blocks.split].index == loop[blocks.split].count - 1:
            count = blocks.last_count
        if not blocks.dense:
            write_axes(blocks, blocks.n, count, dst, src)
        else:
            nbytes = top.dst * count
            if blocks.n == 1:
                block = src
            elif src != made or ready < count:  # not made yet, or with fewer steps
                made, ready, block = src, count, aligned if stream else dst
                write_axes(blocks, blocks.n, count, <char *>block, src)
            if stream:
                kernels.stream(dst, block, nbytes)
            elif block != dst and nbytes >= move_bytes:
                tilecore_move(dst, block, nbytes)
            elif block != dst:
                kernels.copy(dst, block, nbytes)
        next_step(loop, blocks.loops, &dst, &src)
    if stream:
        kernels.stream_end()
    free(scratch)


cdef void start_loops(const Blocks *blocks, Py_ssize_t number, Loop *loop, char **dst,
                      const char **src) noexcept nogil:
    """Set `loop` to a block's position in the loops over blocks; move `dst` and `src` to its start."""
    cdef const Axis *axis
    cdef Py_ssize_t index
    cdef int k
    for k in range(blocks.loops):
        axis = &blocks.loop[k]
        index = number % axis.count
        number //= axis.count
        loop[k] = Loop(axis.count, index, axis.src, axis.dst)
        dst[0] += index * axis.dst
        src[0] += index * axis.src
