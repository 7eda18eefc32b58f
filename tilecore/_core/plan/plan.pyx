"""Makes a `Plan`: checks a shape, repeats, an itemsize, and the bounds of a region.

After these checks every count and offset fits 64 bits. So functions that execute a plan cannot fail (`noexcept nogil`).
"""

from tilecore._core.request.errors import RequestError

from tilecore._core.config cimport tilecore_multiply
from tilecore._core.numpy_api cimport MAX_RANK, PY_SSIZE_T_MAX
from tilecore._core.request.integers cimport Bounds, as_tuple


cdef bint plan_init(Plan *plan, int ndim, const Py_ssize_t *shape, int nreps, const Py_ssize_t *repeats,
                    Py_ssize_t itemsize) noexcept nogil:
    """Fill `plan`; return whether no repeat is negative and all sizes fit 64 bits.

    Needs ranks up to MAX_RANK, no negative extent. As in NumPy, an empty result's non-zero extents must not overflow.
    """
    cdef Py_ssize_t k, rank = ndim if ndim > nreps else nreps, padding = rank - ndim, reps_padding = rank - nreps
    cdef Py_ssize_t count = 1, extent, repeat, output, nbytes
    cdef size_t copies = 1  # unsigned, because it overflows if `count` does
    cdef bint empty = False, failed = False
    plan.ndim, plan.input_ndim, plan.itemsize, plan.cuts_repeats = <int>rank, ndim, itemsize, False
    for k in range(rank):  # one loop, in registers: several loops may take three times as long
        extent = shape[k - padding] if k >= padding else 1
        repeat = repeats[k - reps_padding] if k >= reps_padding else 1
        failed |= tilecore_multiply(extent, repeat, &output) | (repeat < 0)
        plan.shape[k], plan.repeats[k], plan.output_shape[k] = extent, repeat, output
        if output:
            failed |= tilecore_multiply(count, output, &count)
            copies *= repeat
        else:
            empty = True
    failed |= tilecore_multiply(count, itemsize, &nbytes)
    plan.nbytes = 0 if empty else nbytes
    plan.copies = 0 if empty else copies
    return not failed


cdef bint fits_64_bits(cnp.ndarray array, int n, const Py_ssize_t *repeats) noexcept:
    """Whether the tiling does. For a module in which the plan may not be inlined: see serve_numpy_tile."""
    cdef Plan plan
    return plan_init(&plan, cnp.PyArray_NDIM(array), <Py_ssize_t *>cnp.PyArray_DIMS(array), n, repeats,
                     cnp.PyArray_ITEMSIZE(array))


cdef int raise_plan_error(const Plan *plan) except -1:
    """Raise the RequestError for a plan that plan_init refused."""
    cdef Py_ssize_t count = 1, product
    cdef int k
    for k in range(plan.ndim):
        if plan.repeats[k] < 0:  # only in calls from C: for Python, read_generic has refused it
            raise RequestError(ValueError, f"must not be negative, got {plan.repeats[k]}", "repeats", k)
    for k in range(plan.ndim):
        if tilecore_multiply(plan.shape[k], plan.repeats[k], &product):
            raise RequestError(ValueError, f"axis {k} overflows: {plan.shape[k]} * {plan.repeats[k]} is more than "
                               f"{PY_SSIZE_T_MAX}")
    output = as_tuple(plan.output_shape, plan.ndim)
    for k in range(plan.ndim):
        if plan.output_shape[k] and tilecore_multiply(count, plan.output_shape[k], &count):
            raise RequestError(ValueError, f"the result would have more than {PY_SSIZE_T_MAX} elements: its shape "
                               f"{output} overflows at axis {k}")
    raise RequestError(ValueError, f"the result would have more than {PY_SSIZE_T_MAX} bytes: its shape is {output}, "
                       f"with {plan.itemsize} bytes per element")


cdef int plan_many(Plan *stacked, const Plan *plan, Py_ssize_t n) except -1:
    """Fill `stacked` for `n` arrays: one more axis in front, which is not repeated."""
    cdef Py_ssize_t shape[MAX_RANK], repeats[MAX_RANK]
    cdef int k
    if plan.ndim == MAX_RANK:
        raise RequestError(ValueError, f"the result would have {plan.ndim + 1} axes, more than {MAX_RANK}, NumPy's "
                           "largest rank")
    shape[0], repeats[0] = n, 1
    for k in range(plan.ndim):
        shape[k + 1], repeats[k + 1] = plan.shape[k], plan.repeats[k]
    return plan_tiling(stacked, plan.ndim + 1, shape, plan.ndim + 1, repeats, plan.itemsize)


cdef int plan_region(Plan *region, const Plan *plan, const Bounds *bounds, bint periodic) except -1:
    """Check the bounds and fill `region`. If `periodic`, it is a part of `plan` repeated without end."""
    check_bounds(bounds, plan.ndim, input_shape(plan) if periodic else plan.output_shape, periodic)
    return 0 if region_init(region, plan, bounds.start, bounds.stop) else raise_plan_error(region)


cdef bint region_init(Plan *region, const Plan *plan, const Py_ssize_t *start, const Py_ssize_t *stop) noexcept nogil:
    """Fill `region` with the part [start, stop) of the tiling, or of its periodic extension; return as plan_init."""
    cdef Py_ssize_t extent, first, count
    cdef bint whole = True, fits
    cdef int k
    for k in range(plan.ndim):
        extent = max(plan.shape[k], 1)
        first, count = start[k] % extent, max(stop[k] - start[k], 0)
        whole = whole and first == count % extent == 0
        region.start[k] = first + extent if first < 0 else first
        region.output_shape[k], region.repeats[k] = count, count // extent
    if whole:
        return plan_init(region, plan.input_ndim, input_shape(plan), plan.ndim, region.repeats, plan.itemsize)
    fits = plan_init(region, plan.ndim, region.output_shape, 0, NULL, plan.itemsize)
    region.input_ndim, region.copies, region.cuts_repeats = plan.input_ndim, 0, True
    for k in range(plan.ndim):
        region.shape[k] = plan.shape[k]
    return fits


cdef int check_bounds(const Bounds *bounds, int ndim, const Py_ssize_t *extents, bint periodic) except -1:
    """Check bounds against the `extents` of the tiling, or, if it is periodic, of the input."""
    cdef Py_ssize_t first, last
    cdef int k
    if bounds.start_ndim != ndim or bounds.stop_ndim != ndim:
        name, n = ("stop", bounds.stop_ndim) if bounds.start_ndim == ndim else ("start", bounds.start_ndim)
        axes = "the input" if periodic else f"the result's shape {as_tuple(extents, ndim)}"
        raise RequestError(ValueError, f"must have {ndim} entries, one for each axis of {axes}, got {n}", name)
    for k in range(ndim):
        first, last = bounds.start[k], bounds.stop[k]
        if periodic:
            check_periodic_axis(k, extents[k], first, last)
        elif not 0 <= first <= last <= extents[k]:
            raise RequestError(ValueError, f"expected 0 <= start <= stop <= {extents[k]} on axis {k}, got "
                               f"start {first}, stop {last}")
    return 0


cdef int check_periodic_axis(int k, Py_ssize_t extent, Py_ssize_t first, Py_ssize_t last) except -1:
    if first > last:
        raise RequestError(ValueError, f"expected start <= stop on axis {k}, got start {first}, stop {last}")
    if first < 0 and last > PY_SSIZE_T_MAX + first:
        raise RequestError(ValueError, f"axis {k} overflows: from {first} to {last} are more than "
                           f"{PY_SSIZE_T_MAX} elements")
    if first < last and extent == 0:
        raise RequestError(ValueError, f"axis {k} of the input is empty, but the region has "
                           f"{last - first} elements along it")
    return 0
