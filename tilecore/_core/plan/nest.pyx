# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Checked sizes -> the loops that write the tiling.

Tile is one rule: out[i] = in[i mod d] on every axis of extent d. An axis that is repeated r times
is therefore two loops over the output: r times (0 bytes forward in the source) over d steps
(the axis' stride forward in the source). All axes make a nest of such loops, from the innermost
outward, round a run of `itemsize` bytes:

    loop = (count, src, dst): `count` steps, `src` bytes forward in the source, `dst` in the output

Collapsing. A loop merges with the one inside it if it only continues that: if its step is what the inner loop covers,
in the source and in the output. Three simplifications follow from this rule:

  - an inner axis that is not repeated merges into the axis outside it;
  - the repeat of an outer axis of extent 1 merges inward, because two repeats are one longer repeat;
  - a broadcast (stride 0) input axis is a repeat like any other.

Worked example: float32 (2, 1, 3, 4) tiled (5, 6, 1, 2), C-contiguous input, strides 48 48 16 4.

    run of 4 bytes        (4, 1, 1)
    axis 3, extent 4      continues the run                  -> (16, 1, 1)
    axis 3, 2 repeats     (2, 0, 16)
    axis 2, extent 3      (3, 16, 32)
    axis 1, 6 repeats     (6, 0, 96)
    axis 0, extent 2      (2, 48, 576)
    axis 0, 5 repeats     (5, 0, 1152)

and with repeats (5, 6, 1, 1): (48, 1, 1), (6, 0, 48), (2, 48, 288), (5, 0, 576).
"""


cdef void order_axes(const Sizes *sizes, const Py_ssize_t *strides, int *order) noexcept nogil:
    """The axes by their strides in the output, the shortest step first; of equals, the last axis first."""
    cdef int k, i
    for k in range(sizes.ndim):
        i = k
        order[i] = sizes.ndim - 1 - k
        while i > 0 and magnitude(strides[order[i - 1]]) > magnitude(strides[order[i]]):
            order[i - 1], order[i] = order[i], order[i - 1]
            i -= 1


cdef void nest_init(const Sizes *sizes, const Py_ssize_t *src_strides, const Py_ssize_t *dst_strides,
                    Nest *nest) noexcept nogil:
    """The loops of the whole output of a plan that is not empty.

    `src_strides` are those of the input's axes, `dst_strides` those of the output's; NULL for C order. With other
    strides of the output, the axis with the shortest step becomes the innermost loop, and an axis with a negative
    stride is written from its other end.
    """
    cdef int order[MAX_RANK]
    cdef int i, k, padding = sizes.ndim - sizes.input_ndim
    cdef Py_ssize_t src = sizes.itemsize, dst = sizes.itemsize
    cdef Py_ssize_t pitch[MAX_RANK]
    nest_begin(nest, sizes.itemsize)
    if dst_strides == NULL:
        for k in range(sizes.ndim - 1, -1, -1):
            if src_strides != NULL and sizes.shape[k] != 1:  # a padded axis has extent 1 and no stride
                src = src_strides[k - padding]
            nest_push(nest, sizes.shape[k], src, dst)
            src *= sizes.shape[k]
            dst *= sizes.shape[k]
            nest_push(nest, sizes.repeats[k], 0, dst)
            dst *= sizes.repeats[k]
        return
    for k in range(sizes.ndim - 1, -1, -1):
        pitch[k] = src_strides[k - padding] if src_strides != NULL and k >= padding else src
        src *= sizes.shape[k]
    order_axes(sizes, dst_strides, order)
    for i in range(sizes.ndim):
        k = order[i]
        src, dst = pitch[k], dst_strides[k]
        if dst < 0:
            nest.src += (sizes.shape[k] - 1) * src
            nest.dst += (sizes.output[k] - 1) * dst
            src, dst = -src, -dst
        nest_push(nest, sizes.shape[k], src, dst)
        nest_push(nest, sizes.repeats[k], 0, dst * sizes.shape[k])
