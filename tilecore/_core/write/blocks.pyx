"""A nest of loops and a source -> bytes of the output, by blocks.

The inner loops of a nest that write at most TILECORE_BLOCK_BYTES are a *block*: kernels make it once, from the
innermost dimension outward. The loops outside go over blocks, in a new order: loops that move in the source, and
inside them loops that repeat. So every block is written to all of its destinations while it is cached, and the source
is read once. A block that nothing outside repeats need not stay cached: by ordinary stores it may have
MAX_UNREPEATED_BYTES.

    nest of (1024, 1024) float32 tiled (4, 4):   row 4096, 4x 4096, 1024 rows, 4x 16777216
    block: row 4096, 4 times = 16384 bytes;      for each of 1024 rows: to 4 destinations

A loop that would overfill the block is split: some of its steps join the block, the rest loop over blocks. The last
block along it may be shorter. The blocks are numbered, and a task writes a range of them (tiling.pyx).

Nothing here can fail, so all is `noexcept nogil`: the plan has checked every offset, and the state lies on the stack.
If there is no memory for a block of scratch, the block is made in the output.
"""

from libc.stdlib cimport free, malloc

from tilecore._core.config cimport TILECORE_BLOCK_BYTES
from tilecore._core.plan.nest cimport MAX_LOOPS, Loop, Nest, next_step
from tilecore._core.resources.processor cimport kernels, movsb_bytes, tilecore_movsb, tilecore_prepare_rows
from tilecore._core.write.stores cimport ORDINARY_IN_ORDER, PAST_CACHES, Stores


cdef enum:
    # From this many bytes on, rows with gaps between them bypass the cache one by one; shorter rows form a block.
    MIN_STREAMED_ROW = 256
    # Of a block that nothing outside repeats: to start a kernel takes as long as writing some 2 KiB.
    MAX_UNREPEATED_BYTES = 65536


cdef void choose_blocks(Blocks *blocks, const Nest *nest, char *dst, const char *src, Stores stores) noexcept nogil:
    """Choose the block and its kernel, and order the loops over blocks: repeats innermost, or in the nest's order."""
    cdef Py_ssize_t blocks_along = choose_inner(blocks, nest, stores == PAST_CACHES)
    blocks.dst, blocks.src = dst, src
    order_outer(blocks, nest, blocks_along, stores != ORDINARY_IN_ORDER)
    choose_rows(blocks)


cdef Py_ssize_t choose_inner(Blocks *blocks, const Nest *nest, bint stream) noexcept nogil:
    """Choose the inner loops that make a block, while they fit. Split the first loop that does not, if that is useful.

    Return the number of blocks along the split loop, or 0.
    """
    cdef Loop top
    cdef Py_ssize_t payload = 1, dst_end = 1, most = TILECORE_BLOCK_BYTES, fitting, blocks_along
    cdef int n = 0
    blocks.dense = True
    blocks.last_count = 0
    while n < nest.n:
        top = nest.loop[n]
        if blocks.dense and top.dst_step != dst_end and top.count > 1:
            if payload >= (MIN_STREAMED_ROW if stream else TILECORE_BLOCK_BYTES // 8):
                break  # a dense block this large is better than a larger one with gaps
            blocks.dense = False
        if payload * top.count > most:
            if not stream and nothing_repeats(nest, n):
                most = MAX_UNREPEATED_BYTES
            if payload * top.count > most:
                break
        blocks.inner[n] = top
        payload *= top.count
        dst_end = top.dst_step * top.count
        n += 1
    blocks.n_inner = n
    blocks.stream = stream and blocks.dense
    fitting = most // payload
    if n == nest.n or fitting < 2 or (n > 0 and blocks.dense and nest.loop[n].dst_step != dst_end):
        return 0
    top = nest.loop[n]
    blocks_along = (top.count + fitting - 1) // fitting
    fitting = (top.count + blocks_along - 1) // blocks_along    # of nearly equal length
    if n == 0:
        fitting = (fitting + 63) & ~<Py_ssize_t>63              # a row: whole cache lines
    blocks_along = (top.count + fitting - 1) // fitting
    blocks.inner[n] = Loop(fitting, top.src_step, top.dst_step)
    blocks.last_count = top.count - (blocks_along - 1) * fitting
    blocks.n_inner += 1
    return blocks_along


cdef bint nothing_repeats(const Nest *nest, int n) noexcept nogil:
    """Whether all loops from the one numbered `n` on move in the source."""
    while n < nest.n and nest.loop[n].src_step != 0:
        n += 1
    return n == nest.n


cdef void order_outer(Blocks *blocks, const Nest *nest, Py_ssize_t blocks_along, bint reorder) noexcept nogil:
    """Set the loops over blocks. `blocks_along`: the number of blocks along a split loop; 0: no loop is split."""
    cdef Loop loop
    cdef Py_ssize_t inside
    cdef int i, k, n = 0, begin = blocks.n_inner - 1 if blocks_along else blocks.n_inner
    blocks.split = -1
    blocks.total = 1
    for k in range(2 if reorder else 1):  # first the loops that repeat, then those that move
        for i in range(begin, nest.n):
            loop = nest.loop[i]
            if reorder and (loop.src_step == 0) != (k == 0):
                continue
            if i < blocks.n_inner:
                blocks.split = n
                inside = blocks.inner[i].count
                loop = Loop(blocks_along, loop.src_step * inside, loop.dst_step * inside)
            blocks.outer[n] = loop
            blocks.total *= loop.count
            n += 1
    blocks.n_outer = n


cdef void choose_rows(Blocks *blocks) noexcept nogil:
    """Choose the loops that kernel calls write: a row, its repeats in place, and more such rows."""
    cdef const Loop *inner = blocks.inner
    cdef Loop rows
    cdef int n = blocks.n_inner
    blocks.row_loop = blocks.call_loop = 0
    blocks.loops_in_kernel = blocks.repeats = 1
    if n == 1:
        return
    if inner[1].src_step == 0 and inner[1].dst_step == inner[0].count:
        blocks.repeats = inner[1].count
        blocks.row_loop = 2 if n > 2 and inner[2].src_step != 0 else 0
    elif (n > 2 and inner[1].count < min(inner[2].count, 16)
            and (not blocks.dense or (inner[1].src_step != 0 and inner[2].src_step != 0))):
        # Of a few steps and many, the many are the better innermost loop: pixels rather than their three colours.
        blocks.call_loop, blocks.row_loop = 1, 2
    else:
        blocks.row_loop = 1
    blocks.loops_in_kernel = max(blocks.row_loop, 1) + 1
    rows = inner[blocks.row_loop] if blocks.row_loop else Loop(1, 0, 0)
    if blocks.split >= 0 and blocks.row_loop == n - 1:
        rows.count *= blocks.outer[blocks.split].count  # the rows of all blocks: what a kernel prepares serves them all
    tilecore_prepare_rows(&blocks.rows, kernels, inner[0].count, blocks.repeats, rows.src_step, rows.dst_step,
                          rows.count,
                          blocks.n_outer == 0 and inner[n - 1].count * inner[n - 1].dst_step <= TILECORE_BLOCK_BYTES)


cdef void write_inner(const Blocks *blocks, int n, Py_ssize_t count, char *dst, const char *src) noexcept nogil:
    """Write the inner `n` loops of a block, the outermost of them for `count` steps."""
    cdef const Loop *top = &blocks.inner[n - 1]
    cdef const Loop *inside
    cdef Py_ssize_t i, rows, repeats
    if n == 1:
        kernels.copy(dst, src, count)
    elif n == blocks.loops_in_kernel:
        rows = count if blocks.row_loop else 1
        repeats = blocks.repeats if blocks.row_loop else count
        if blocks.call_loop == 0:
            blocks.rows.write(&blocks.rows, dst, src, rows, repeats)
            return
        inside = &blocks.inner[blocks.call_loop]
        for i in range(inside.count):
            blocks.rows.write(&blocks.rows, dst + i * inside.dst_step, src + i * inside.src_step, rows, repeats)
    else:
        inside = &blocks.inner[n - 2]
        if top.src_step == 0 and blocks.dense:
            write_inner(blocks, n - 1, inside.count, dst, src)
            kernels.replicate(dst, top.dst_step, count)
        else:
            for i in range(count):
                write_inner(blocks, n - 1, inside.count, dst + i * top.dst_step, src + i * top.src_step)


cdef void write_blocks(void *of_blocks, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Write the blocks numbered first to last - 1."""
    cdef const Blocks *blocks = <const Blocks *>of_blocks
    cdef char *dst = blocks.dst
    cdef const char *src = blocks.src
    cdef void *scratch = NULL
    cdef char *aligned = NULL       # in `scratch`
    cdef bint stream = blocks.stream
    cdef Py_ssize_t at[MAX_LOOPS]   # the position in each loop over blocks
    cdef const char *block = NULL   # the block last made: `ready` steps
    cdef const char *made = src     # its source
    cdef Py_ssize_t ready = 0, count, _block
    cdef const Loop *top = &blocks.inner[blocks.n_inner - 1]
    if blocks.n_outer == 0:
        write_inner(blocks, blocks.n_inner, top.count, dst, src)
        return
    if stream and blocks.n_inner > 1:
        # Not on the stack, which may be small in a thread. Not by PyMem_RawMalloc: under tracemalloc it takes the GIL,
        # and the thread that holds the GIL waits for this one.
        scratch = malloc(TILECORE_BLOCK_BYTES + 64)
        stream = scratch != NULL
        aligned = <char *>((<size_t>scratch + 63) & ~<size_t>63)
    start_outer(blocks, first, at, &dst, &src)
    for _block in range(first, last):
        count = top.count
        if blocks.split >= 0 and at[blocks.split] == blocks.outer[blocks.split].count - 1:
            count = blocks.last_count
        if not blocks.dense:
            write_inner(blocks, blocks.n_inner, count, dst, src)
        else:
            if blocks.n_inner == 1:
                block = src
            elif src != made or ready < count:  # not made yet, or with fewer steps
                made, ready, block = src, count, aligned if stream else dst
                write_inner(blocks, blocks.n_inner, count, <char *>block, src)
            copy_block(dst, block, top.dst_step * count, stream)
        next_step(blocks.outer, at, blocks.n_outer, &dst, &src)
    if stream:
        kernels.stream_end()
    free(scratch)


cdef inline void copy_block(char *dst, const char *block, Py_ssize_t nbytes, bint stream) noexcept nogil:
    if stream:
        kernels.stream(dst, block, nbytes)
    elif block != dst and nbytes >= movsb_bytes:
        tilecore_movsb(dst, block, nbytes)
    elif block != dst:
        kernels.copy(dst, block, nbytes)


cdef void start_outer(const Blocks *blocks, Py_ssize_t number, Py_ssize_t *at, char **dst,
                      const char **src) noexcept nogil:
    """Set `at` to a block's position in the loops over blocks; move `dst` and `src` to its start."""
    cdef const Loop *loop
    cdef int k
    for k in range(blocks.n_outer):
        loop = &blocks.outer[k]
        at[k] = number % loop.count
        number //= loop.count
        dst[0] += at[k] * loop.dst_step
        src[0] += at[k] * loop.src_step
