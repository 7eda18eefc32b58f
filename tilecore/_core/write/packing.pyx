"""How items are packed: the loops that move in a nest's source, and the kernel that takes two of them at once.

A source is packed by loops of its own, without the nest's repeats. A loop that continues another one in the source
merges with it, even if a repeat lies between them in the output:

    nest of every second of (401, 316, 5) bytes, tiled (2, 1, 3), is
                            run 1, 5 x (2, 1), 3 x (0, 5), 158 x (10, 15), 401 x (3160, 2370), 2 x (0, 950370)
    packed by:              790 x (2, 1), 401 x (3160, 790)
    links:                  5 -> loop 1, 158 -> loop 1 by 5 steps each, 401 -> loop 2

If nothing repeats, packing has the nest's own loops, so that items may be packed directly into the output.

By default the inner loop of a packer is the innermost one of the output. The packers:

    transpose       the other loop is contiguous in the source; a short one merges with the loop that continues it
    deinterleave    the inner loop steps over a few items, forward or backward; or it has two to four steps, and the
                    next loop steps over a few items: interleaved channels
    gather          all other sources: item by item
"""

from tilecore._core.plan.nest cimport Loop, LoopIter, continues, first_moving, next_step
from tilecore._core.strided_arrays cimport magnitude
from tilecore._core.write.kernels cimport TILECORE_PAST_CACHES, tilecore_gather, tilecore_prepare_deinterleave
from tilecore._core.write.processor cimport kernels


cdef enum:
    MAX_STEP_BYTES = 64     # of `deinterleave`: farther apart, each item has a cache line of its own
    MAX_CHANNELS = 4        # that `deinterleave` separates
    MIN_SHUFFLED = 64       # bytes of a loop from which on shuffles pay
    # A transposition is faster than gathering from 16 bytes and this many items on: MIN_COLUMNS along the source, and
    # MIN_ROWS along the output. 32 bytes along the output (a tile) always suffice.
    MIN_COLUMNS = 4
    MIN_ROWS = 10
    MIN_GATHERED_STEPS = 5         # steps of an innermost loop that gathers


cdef void choose_packer(Packing *packing, const Nest *nest, bint stream) noexcept nogil:
    """Choose the loops and the kernel. `stream`: stores into the output bypass the cache."""
    cdef PackedLoop *loop = packing.loop
    cdef int k
    merge_loops(packing, nest, stream)
    loop[packing.n] = PackedLoop(1, 0, 0, 1)  # from row to row, if there is but one loop
    packing.finest = 2
    for k in range(3, packing.n):
        if magnitude(loop[k].src_step) < magnitude(loop[packing.finest].src_step):
            packing.finest = k
    packing.along_row, packing.to_next_row = 1, packing.finest
    if can_transpose(loop[1].count, loop[1].src_step, loop[packing.finest].count, loop[packing.finest].src_step,
                     packing.itemsize, stream):
        packing.packer = TRANSPOSE
    elif kernels.deinterleave != NULL and choose_deinterleave(packing):
        packing.packer = DEINTERLEAVE
    else:
        packing.packer = GATHER
        for k in range(2, packing.n):  # rows run along the output, or along a longer loop if these are short
            if loop[packing.along_row].count < MIN_GATHERED_STEPS and loop[k].count > loop[packing.along_row].count:
                packing.along_row, packing.to_next_row = k, 1


cdef void merge_loops(Packing *packing, const Nest *nest, bint stream) noexcept nogil:
    """Fill the loops and links. `finest` has the smallest steps in the source; if short, `later` continues it."""
    cdef const Loop *loop = &nest.loop[0]
    cdef int first = first_moving(nest), finest = 0, later = 0, k
    cdef Py_ssize_t itemsize = loop[0].count, rows = loop[first].count, pitch = loop[first].src_step, columns, step
    packing.as_nest = first == 1
    for k in range(first + 1, nest.n):
        packing.as_nest = packing.as_nest and loop[k].src_step != 0
        if loop[k].src_step != 0 and (finest == 0 or magnitude(loop[k].src_step) < magnitude(loop[finest].src_step)):
            finest = k
    columns, step = loop[finest].count, loop[finest].src_step
    if not can_transpose(rows, pitch, columns, step, itemsize, stream):
        for k in range(nest.n - 1, first, -1):
            if (continues(loop[k].src_step, columns, step)
                    and can_transpose(rows, pitch, columns * loop[k].count, step, itemsize, stream)):
                later, packing.as_nest = k, False
    packing.n, packing.itemsize = 1, itemsize
    packing.loop[0] = PackedLoop(itemsize, 1, 1, 1)
    for k in range(1, nest.n):
        if loop[k].src_step == 0:
            packing.link[k] = Link(0, 0)
        elif k != later:
            add_loop(packing, nest, k)
        if k == finest and later:
            add_loop(packing, nest, later)


cdef void add_loop(Packing *packing, const Nest *nest, int i) noexcept nogil:
    """Add the nest's loop `i` around the loops so far, or merge it with the outermost of them if it continues that."""
    cdef const Loop *loop = &nest.loop[i]
    cdef PackedLoop *top = &packing.loop[packing.n - 1]
    cdef Py_ssize_t end = top.count * top.dst_step
    if packing.as_nest or not continues(loop.src_step, top.count, top.src_step):
        top = &packing.loop[packing.n]
        top[0] = PackedLoop(1, loop.src_step, loop.dst_step if packing.as_nest else end, 1)
        packing.n += 1
    packing.link[i] = Link(packing.n - 1, top.count)
    top.count *= loop.count


cdef bint can_transpose(Py_ssize_t rows, Py_ssize_t pitch, Py_ssize_t columns, Py_ssize_t step, Py_ssize_t itemsize,
                        bint stream) noexcept nogil:
    """Whether a transposition is faster than gathering, for `columns` steps of `step` bytes along the source."""
    # Items of 16 bytes need no shuffles. Only cells pay: if rows share cache sets, or stores bypass the caches.
    return (magnitude(step) == itemsize and columns >= max(16 // itemsize, MIN_COLUMNS)
            and (itemsize < 16 or stream or pitch % 1024 == 0)
            and rows >= min(max(16 // itemsize, MIN_ROWS), 32 // itemsize))


cdef bint choose_deinterleave(Packing *packing) noexcept nogil:
    """Whether the inner loop, or groups of its few steps, can be deinterleaved. If so, prepare the kernel."""
    cdef const PackedLoop *loop = &packing.loop[0]
    cdef Py_ssize_t itemsize = packing.itemsize, channels = loop[1].count, apart = loop[1].src_step, step
    if channels > MAX_CHANNELS:
        channels, apart, step = 1, 0, loop[1].src_step
        if loop[1].count * itemsize < MIN_SHUFFLED:
            return False
    else:
        step = loop[2].src_step
        if channels * loop[2].count * itemsize < MIN_SHUFFLED or loop[2].dst_step != channels * itemsize:
            return False
    if step != itemsize and (apart % itemsize or magnitude(apart) * (channels - 1) + itemsize > magnitude(step)):
        return False  # channels neither in rows of their own, nor all within one step
    if (step % itemsize or magnitude(step) > MAX_STEP_BYTES
            or not tilecore_prepare_deinterleave(&packing.shuffles, channels, apart, step, itemsize)):
        return False
    if channels > 1:
        packing.along_row, packing.to_next_row = 2, 1
    return True


cdef void pack(const Packing *packing, const Py_ssize_t *steps, char *dst, const char *src, int store_mode,
               char *cells) noexcept nogil:
    """Pack `steps` of each loop to `dst`. `store_mode` and `cells` are those of `transpose`: see kernels.h."""
    cdef LoopIter others[MAX_LOOPS]
    cdef const PackedLoop *loop = &packing.loop[0]
    cdef const PackedLoop *along = &loop[packing.along_row]
    cdef const PackedLoop *rows = &loop[packing.to_next_row]
    cdef Py_ssize_t n_rows = steps[packing.to_next_row], row_items = steps[packing.along_row], dst_pitch = rows.dst_step
    cdef int k, n = 0
    for k in range(1, packing.n):
        if k != packing.along_row and k != packing.to_next_row:
            others[n] = LoopIter(steps[k], 0, loop[k].src_step, loop[k].dst_step)
            n += 1
    if packing.packer == TRANSPOSE and rows.src_step < 0:  # start at the other end
        dst += (n_rows - 1) * dst_pitch
        src += (n_rows - 1) * rows.src_step
        dst_pitch = -dst_pitch
    while True:
        if packing.packer == TRANSPOSE:
            kernels.transpose(dst, dst_pitch, src, along.src_step, row_items, n_rows, packing.itemsize, store_mode,
                              cells)
        elif packing.packer == DEINTERLEAVE:
            kernels.deinterleave(&packing.shuffles, dst, dst_pitch, src, rows.src_step,
                                 1 if packing.along_row > 1 else n_rows, row_items, store_mode == TILECORE_PAST_CACHES)
        else:
            tilecore_gather(dst, dst_pitch, along.dst_step, src, rows.src_step, along.src_step, n_rows, row_items,
                            packing.itemsize)
        if not next_step(others, n, &dst, &src):
            return
