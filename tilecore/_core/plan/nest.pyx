"""Makes, from a plan, the loops that write its result, as one nest or several. The modules of write/ execute them.

Tile is one rule: out[i] = in[i mod d] on every axis of extent d. So an axis that is repeated r times is two loops over
the output: r times (0 bytes forward in the source) over d steps (the axis' stride forward in the source). All axes make
a nest of such loops, from the innermost outward, around a row of `itemsize` bytes:

    loop = (count, src, dst): `count` steps, `src` bytes forward in the source, `dst` in the output

Collapsing. A loop merges with the loop inside it if its step is the length of the inner loop, in the source and in the
output. Three simplifications follow from this rule:

  - an inner axis that is not repeated merges into the axis outside it;
  - the repeat of an outer axis of extent 1 merges inward, because two repeats are one longer repeat;
  - a broadcast (stride 0) input axis is a repeat like any other.

Worked example: float32 (2, 1, 3, 4) tiled (5, 6, 1, 2), C-contiguous input, strides 48 48 16 4.

    row of 4 bytes        (4, 1, 1)
    axis 3, extent 4      continues the row                  -> (16, 1, 1)
    axis 3, 2 repeats     (2, 0, 16)
    axis 2, extent 3      (3, 16, 32)
    axis 1, 6 repeats     (6, 0, 96)
    axis 0, extent 2      (2, 48, 576)
    axis 0, 5 repeats     (5, 0, 1152)

and with repeats (5, 6, 1, 1): (48, 1, 1), (6, 0, 48), (2, 48, 288), (5, 0, 576).

Regions. A region is the part [start, stop) of a tiling, or of the input's periodic extension. Along one axis it is up
to three stretches: the end of a first repeat, whole repeats, the start of a last one. Extent 5, region [3, 17):

    tiling   0 1 2 3 4 0 1 2 3 4 0 1 2 3 4 0 1 2 ...
    region         3 4|0 1 2 3 4 0 1 2 3 4|0 1           stretches of 2, of 2 x 5, and of 2 elements

Each combination of one stretch per axis is a piece, which one nest writes; a whole tiling is one piece. There are fewer
stretches if start or stop is a multiple of the extent. Only start's index within a repeat matters.
"""

from tilecore._core.strided_arrays cimport magnitude


cdef void region_iter_init(RegionIter *iter, const Plan *plan, const StridedArray *source,
                           const StridedArray *target) noexcept nogil:
    """Fill `iter` for the plan's result, which must not be empty."""
    cdef AxisIter *axis
    cdef int i
    iter.n, iter.src_offset, iter.dst_offset, iter.itemsize, iter.finished = 0, 0, 0, plan.itemsize, False
    sort_axes(iter, plan, source, target)
    for i in range(plan.ndim):
        axis = &iter.axis[i]
        if axis.extent == 1:
            axis.src_step = 0  # the stride may be any number, also one without an opposite
        if axis.dst_step < 0 and axis.count > 1:
            reverse_axis(iter, axis)
        if axis.src_step == 0 or axis.count <= axis.extent - axis.first:  # it wraps to no other byte
            iter.src_offset += axis.first * axis.src_step
            axis.first, axis.extent = 0, axis.count
        axis.src_index = axis.first
        if axis.count > 1:
            add_axis(iter, axis)


cdef void sort_axes(RegionIter *iter, const Plan *plan, const StridedArray *source,
                    const StridedArray *target) noexcept nogil:
    """Fill all axes, innermost first: sorted by the size of their stride in the output; if equal, the last first."""
    cdef Py_ssize_t src_bytes = plan.itemsize, dst_bytes = plan.itemsize, src, dst
    cdef int i, k, padding = plan.ndim - plan.input_ndim
    for k in range(plan.ndim - 1, -1, -1):
        src = src_bytes if source.contiguous or k < padding else source.strides[k - padding]
        dst = dst_bytes if target.contiguous else target.strides[k]
        src_bytes *= plan.shape[k]
        dst_bytes *= plan.output_shape[k]
        i = plan.ndim - 1 - k
        while i > 0 and magnitude(iter.axis[i - 1].dst_step) > magnitude(dst):
            iter.axis[i] = iter.axis[i - 1]
            i -= 1
        iter.axis[i] = AxisIter(plan.output_shape[k], plan.shape[k], plan.start[k] if plan.cuts_repeats else 0,
                                src, dst, 0, 0)


cdef void reverse_axis(RegionIter *iter, AxisIter *axis) noexcept nogil:
    """Begin an axis at its other end: there the first item is extent - 1 - (first + count - 1) % extent."""
    cdef Py_ssize_t rest = axis.extent - 1 - (axis.count - 1) % axis.extent  # the sum may overflow
    iter.src_offset += (axis.extent - 1) * axis.src_step
    iter.dst_offset += (axis.count - 1) * axis.dst_step
    axis.first = rest - axis.first if rest >= axis.first else rest - axis.first + axis.extent
    axis.src_step, axis.dst_step = -axis.src_step, -axis.dst_step


cdef void add_axis(RegionIter *iter, const AxisIter *axis) noexcept nogil:
    """Add an axis around the others, or merge it with the outermost axis if it only continues that axis.

    nest_push cannot merge them: the next piece may begin elsewhere on each axis, so both must be one axis before.
    """
    cdef AxisIter *inner = &iter.axis[max(iter.n - 1, 0)]
    if (iter.n and inner.first == 0 and inner.extent == inner.count
            and continues(axis.src_step, inner.count, inner.src_step)
            and continues(axis.dst_step, inner.count, inner.dst_step)):
        inner.first = inner.src_index = axis.first * inner.count
        inner.extent = axis.extent * inner.count
        inner.count *= axis.count
    else:
        iter.axis[iter.n] = axis[0]
        iter.n += 1


cdef Py_ssize_t next_piece(RegionIter *iter, Nest *nest) noexcept nogil:
    """Fill `nest` with the loops of the next piece, and return its bytes; return 0 after the last."""
    cdef AxisIter *axis
    cdef Py_ssize_t index, left, length, src = iter.src_offset, dst = iter.dst_offset, nbytes = iter.itemsize
    cdef bint carry = True  # until an axis is found that has another piece
    cdef int k
    if iter.finished:
        return 0
    nest_begin(nest, nbytes)
    for k in range(iter.n):
        axis = &iter.axis[k]
        index = axis.src_index
        left = axis.count - axis.dst_index
        src += index * axis.src_step
        dst += axis.dst_index * axis.dst_step
        length = min(axis.extent - index, left)
        nest_push(nest, length, axis.src_step, axis.dst_step)
        if length < left and length == axis.extent:
            nest_push(nest, left // length, 0, axis.dst_step * length)
            length *= left // length
        nbytes *= length
        if carry and length < left:
            axis.dst_index, axis.src_index = axis.dst_index + length, 0
            carry = False
        elif carry:  # back to the axis' first piece
            axis.dst_index, axis.src_index = 0, axis.first
    nest.src_offset, nest.dst_offset, iter.finished = src, dst, carry
    return nbytes


cdef void nest_init(const Plan *plan, const StridedArray *source, const StridedArray *target,
                    Nest *nest) noexcept nogil:
    """Fill `nest` with the loops of a whole output, which must not be empty."""
    cdef int k, padding = plan.ndim - plan.input_ndim
    cdef Py_ssize_t src = plan.itemsize, dst = plan.itemsize
    cdef RegionIter iter
    if not target.contiguous:
        region_iter_init(&iter, plan, source, target)
        next_piece(&iter, nest)
        return
    # The axes are in order already. In the general way, a small call would take up to 9 % more instructions.
    nest_begin(nest, plan.itemsize)
    for k in range(plan.ndim - 1, -1, -1):
        if not source.contiguous and plan.shape[k] != 1:  # a padded axis has extent 1 and no stride
            src = source.strides[k - padding]
        nest_push(nest, plan.shape[k], src, dst)
        src *= plan.shape[k]
        dst *= plan.shape[k]
        nest_push(nest, plan.repeats[k], 0, dst)
        dst *= plan.repeats[k]
