# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Shape, repeats and itemsize -> checked sizes, and the loops that write the tiling.

Tile is one rule: out[i] = in[i mod d] on every axis of extent d. An axis that is repeated r times
is therefore two loops over the output: r times (0 bytes forward in the source) over d steps
(the axis' stride forward in the source). All axes make a nest of such loops, from the innermost
outward, round a run of `itemsize` bytes:

    loop = (count, src, dst): `count` steps, `src` bytes forward in the source, `dst` in the output

Collapsing. A loop that only continues the one inside it merges with it: its step is just what the
inner loop covers, in the source and in the output. Three things happen by that one rule:

  - an inner axis that is not repeated merges into the axis outside it;
  - an outer axis of extent 1 merges its repeat inward, for two repeats are one longer repeat;
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

After a plan exists nothing can fail: every count and every offset has been shown to fit, so the
functions that follow it are `noexcept nogil`.
"""

from tilecore._core.request.refusals import Refusal


cdef int plan_init(Plan *plan, int ndim, const Py_ssize_t *shape,
                   int nreps, const Py_ssize_t *repeats, Py_ssize_t itemsize) noexcept nogil:
    """Fill `plan`; a PlanStatus. Both ranks are at most MAX_RANK, the extents not negative.

    Element and byte counts are taken over the non-zero extents, as NumPy does, so that an empty
    result is refused where a slice of its shape could not exist.
    """
    cdef int k, status = PLAN_OK
    cdef int rank = ndim if ndim > nreps else nreps
    cdef Py_ssize_t count = 1, taken = 1, copies = 1, nbytes
    cdef bint empty = False
    plan.ndim = rank
    plan.input_ndim = ndim
    plan.itemsize = itemsize
    plan.axis = 0
    for k in range(rank):
        plan.shape[k] = shape[k - (rank - ndim)] if k >= rank - ndim else 1
        plan.repeats[k] = repeats[k - (rank - nreps)] if k >= rank - nreps else 1
        if plan.repeats[k] < 0:
            plan.axis = k
            return PLAN_NEGATIVE
    for k in range(rank):
        if tilecore_multiply(plan.shape[k], plan.repeats[k], &plan.output[k]):
            plan.axis = k
            return PLAN_AXIS_OVERFLOW
    for k in range(rank):
        if plan.output[k] == 0:
            empty = True
        elif tilecore_multiply(count, plan.output[k], &count):
            plan.axis = k
            return PLAN_COUNT_OVERFLOW
        else:
            taken *= plan.shape[k]
            copies *= plan.repeats[k]
    if tilecore_multiply(count, itemsize, &nbytes):
        return PLAN_BYTES_OVERFLOW
    plan.nbytes = 0 if empty else nbytes
    plan.input_nbytes = 0 if empty else taken * itemsize
    plan.copies = 0 if empty else copies
    return status


cdef int plan_check(const Plan *plan, int status) except -1:
    """Raise what a failed plan_init found."""
    cdef int k = plan.axis
    if status == PLAN_OK:
        return 0
    if status == PLAN_NEGATIVE:
        raise Refusal(ValueError, f"must not be negative, got {plan.repeats[k]}", "repeats", k)
    if status == PLAN_AXIS_OVERFLOW:
        raise Refusal(ValueError, f"axis {k} overflows: {plan.shape[k]} * {plan.repeats[k]} is more than "
                      f"{PY_SSIZE_T_MAX}")
    output = tuple([plan.output[k] for k in range(plan.ndim)])
    if status == PLAN_COUNT_OVERFLOW:
        raise Refusal(ValueError, f"the result would have more than {PY_SSIZE_T_MAX} elements: its shape "
                      f"{output} overflows at axis {plan.axis}")
    raise Refusal(ValueError, f"the result would have more than {PY_SSIZE_T_MAX} bytes: its shape is {output}, "
                  f"of {plan.itemsize} bytes an element")


cdef void plan_order(const Plan *plan, const Py_ssize_t *strides, int *order) noexcept nogil:
    """The axes by their strides in the output, the shortest step first; of equals, the last axis first."""
    cdef int k, i
    for k in range(plan.ndim):
        i = k
        order[i] = plan.ndim - 1 - k
        while i > 0 and magnitude(strides[order[i - 1]]) > magnitude(strides[order[i]]):
            order[i - 1], order[i] = order[i], order[i - 1]
            i -= 1


cdef Py_ssize_t magnitude(Py_ssize_t stride) noexcept nogil:
    return -stride if stride < 0 else stride


cdef void plan_nest(const Plan *plan, const Py_ssize_t *src_strides, const Py_ssize_t *dst_strides,
                    Nest *nest) noexcept nogil:
    """The loops of the whole output of a plan that is not empty.

    `src_strides` are those of the input's axes, `dst_strides` those of the output's; NULL for the
    order of C. In an output of other strides, the axis with the shortest step becomes the innermost
    loop, and one that steps backward is walked from its other end.
    """
    cdef int order[MAX_RANK]
    cdef int i, k, padding = plan.ndim - plan.input_ndim
    cdef Py_ssize_t src = plan.itemsize, dst = plan.itemsize
    cdef Py_ssize_t pitch[MAX_RANK]
    nest_begin(nest, plan.itemsize)
    if dst_strides == NULL:
        for k in range(plan.ndim - 1, -1, -1):
            if src_strides != NULL and plan.shape[k] != 1:  # a padded axis has extent 1 and no stride
                src = src_strides[k - padding]
            nest_push(nest, plan.shape[k], src, dst)
            src *= plan.shape[k]
            dst *= plan.shape[k]
            nest_push(nest, plan.repeats[k], 0, dst)
            dst *= plan.repeats[k]
        return
    for k in range(plan.ndim - 1, -1, -1):
        pitch[k] = src_strides[k - padding] if src_strides != NULL and k >= padding else src
        src *= plan.shape[k]
    plan_order(plan, dst_strides, order)
    for i in range(plan.ndim):
        k = order[i]
        src, dst = pitch[k], dst_strides[k]
        if dst < 0:
            nest.src += (plan.shape[k] - 1) * src
            nest.dst += (plan.output[k] - 1) * dst
            src, dst = -src, -dst
        nest_push(nest, plan.shape[k], src, dst)
        nest_push(nest, plan.repeats[k], 0, dst * plan.shape[k])
