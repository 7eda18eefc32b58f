"""Regions: the part [start, stop) of a tiling, or of the input's periodic extension."""

from tilecore._core.request.errors import RequestError

from tilecore._core.numpy_api cimport MAX_RANK, PY_SSIZE_T_MAX
from tilecore._core.plan.plan cimport Plan, input_shape, plan_check, plan_init
from tilecore._core.request.integers cimport as_tuple, read_signed


cdef int read_bounds(Region *region, start, stop, bint periodic) except -1:
    """Set `start` and `stop`, before the array is inspected: reading may run code that changes the array."""
    region.n_start = read_signed(start, region.start, "start")
    region.n_stop = read_signed(stop, region.stop, "stop")
    region.periodic = periodic
    return 0


cdef bint plan_region(Plan *tiling, Region *region, const Plan *plan) except -1:
    """Check a region of the tiling `plan`, and set its sizes. Return whether it consists of whole repeats.

    If it does, `tiling` becomes its plan, of the same source.
    """
    cdef Py_ssize_t repeats[MAX_RANK]
    cdef bint whole = True
    cdef int k
    check_bounds(region, plan.ndim, input_shape(plan) if region.periodic else plan.output)
    for k in range(plan.ndim):
        whole = whole and plan.shape[k] > 0 and region.start[k] % plan.shape[k] == region.shape[k] % plan.shape[k] == 0
        repeats[k] = region.shape[k] // plan.shape[k] if whole else 1
    if whole:
        plan_check(tiling, plan_init(tiling, plan.input_ndim, input_shape(plan), plan.ndim, repeats, plan.itemsize))
    else:  # only to check the sizes
        plan_check(tiling, plan_init(tiling, plan.ndim, region.shape, 0, NULL, plan.itemsize))
    region.nbytes = tiling.nbytes
    return whole


cdef int check_bounds(Region *region, int ndim, const Py_ssize_t *extents) except -1:
    """Check start and stop, and set `shape`. `extents`: of the tiling, or of the input if it is periodic."""
    cdef Py_ssize_t first, last
    cdef int k
    if region.n_start != ndim or region.n_stop != ndim:
        name, n = ("stop", region.n_stop) if region.n_start == ndim else ("start", region.n_start)
        axes = "the input" if region.periodic else f"the result's shape {as_tuple(extents, ndim)}"
        raise RequestError(ValueError, f"must have {ndim} entries, one for each axis of {axes}, got {n}", name)
    for k in range(ndim):
        first, last = region.start[k], region.stop[k]
        if region.periodic:
            check_periodic_axis(k, extents[k], first, last)
        elif not 0 <= first <= last <= extents[k]:
            raise RequestError(ValueError, f"expected 0 <= start <= stop <= {extents[k]} on axis {k}, got "
                               f"start {first}, stop {last}")
        region.shape[k] = last - first
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
