"""How items are packed: the kernel that takes two of a nest's loops at once. Nothing repeats in the nest.

By default the inner loop of a packer is the innermost one of the output. The packers:

    transpose       the other loop is contiguous in the source
    deinterleave    the inner loop steps over a few items, forward or backward; or it has two to four steps, and the
                    next loop steps over a few items: interleaved channels
    gather          all other sources: item by item
"""

from tilecore._core.plan.nest cimport next_step
from tilecore._core.strided_arrays cimport magnitude
from tilecore._core.write.processor cimport (
    TILECORE_PAST_CACHES, kernels, tilecore_gather, tilecore_prepare_deinterleave,
)


cdef enum:
    MAX_STEP_BYTES = 64     # of `deinterleave`: farther apart, each item has a cache line of its own
    MAX_CHANNELS = 4        # that `deinterleave` separates
    MIN_SHUFFLED = 64       # bytes of a loop from which on shuffles pay
    # A transposition is faster than gathering from 16 bytes and this many items on: MIN_COLUMNS along the source, and
    # MIN_ROWS along the output. 32 bytes along the output (a tile) always suffice.
    MIN_COLUMNS = 4
    MIN_ROWS = 10
    MIN_GATHERED_STEPS = 5         # steps of an innermost loop that gathers


cdef void choose_packer(Packing *packing, const Nest *nest) noexcept nogil:
    """Choose the kernel, and its two loops."""
    cdef Loop *loop = packing.loop
    cdef int k, finest = 2  # the smallest steps in the source, beside the inner loop
    packing.n, packing.itemsize = nest.n, nest.loop[0].count
    for k in range(nest.n):
        loop[k] = nest.loop[k]
    loop[nest.n] = Loop(1, 0, 0)  # from row to row, if there is but one loop
    for k in range(3, nest.n):
        if magnitude(loop[k].src_step) < magnitude(loop[finest].src_step):
            finest = k
    packing.along_row, packing.to_next_row = 1, finest
    if can_transpose(loop[1].count, loop[finest].count, loop[finest].src_step, packing.itemsize):
        packing.packer = TRANSPOSE
    elif kernels.deinterleave != NULL and choose_deinterleave(packing):
        packing.packer = DEINTERLEAVE
    else:
        packing.packer = GATHER
        for k in range(2, packing.n):  # rows run along the output, or along a longer loop if these are short
            if loop[packing.along_row].count < MIN_GATHERED_STEPS and loop[k].count > loop[packing.along_row].count:
                packing.along_row, packing.to_next_row = k, 1


cdef bint can_transpose(Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t step, Py_ssize_t itemsize) noexcept nogil:
    """Whether a transposition is faster than gathering, for `columns` steps of `step` bytes along the source."""
    return (magnitude(step) == itemsize and columns >= max(16 // itemsize, MIN_COLUMNS)
            and rows >= min(max(16 // itemsize, MIN_ROWS), 32 // itemsize))


cdef bint choose_deinterleave(Packing *packing) noexcept nogil:
    """Whether the inner loop, or groups of its few steps, can be deinterleaved. If so, prepare the kernel."""
    cdef const Loop *loop = &packing.loop[0]
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
    cdef Loop others[MAX_LOOPS]
    cdef Py_ssize_t at[MAX_LOOPS]   # the positions in them
    cdef const Loop *loop = &packing.loop[0]
    cdef const Loop *along = &loop[packing.along_row]
    cdef const Loop *rows = &loop[packing.to_next_row]
    cdef Py_ssize_t n_rows = steps[packing.to_next_row], row_items = steps[packing.along_row], dst_pitch = rows.dst_step
    cdef int k, n = 0
    for k in range(1, packing.n):
        if k != packing.along_row and k != packing.to_next_row:
            others[n] = Loop(steps[k], loop[k].src_step, loop[k].dst_step)
            at[n] = 0
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
        if not next_step(others, at, n, &dst, &src):
            return
