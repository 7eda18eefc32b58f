"""Regions: the part [start, stop) of a tiling, or of the input's periodic extension."""

from tilecore._core.request.errors import RequestError

from tilecore._core.numpy_api cimport MAX_RANK, PY_SSIZE_T_MAX
from tilecore._core.plan.plan cimport Plan, input_shape, plan_check, plan_init
from tilecore._core.request.integers cimport as_tuple, read_integers, read_signed


cdef int read_bounds(Bounds *bounds, start, stop, bint periodic) except -1:
    """Fill `bounds`, before the array is inspected: reading may run code that changes the array."""
    bounds.periodic = periodic
    if periodic:
        bounds.n_start = read_signed(start, bounds.start, "start")
        bounds.n_stop = read_signed(stop, bounds.stop, "stop")
    else:
        bounds.n_start = read_integers(start, bounds.start, "start", 0)
        bounds.n_stop = read_integers(stop, bounds.stop, "stop", 0)
    return 0


cdef bint plan_region(Plan *region, const Plan *plan, const Bounds *bounds) except -1:
    """Plan the region `bounds` of the tiling `plan`. Return whether it consists of whole repeats.

    If it does, `region` becomes a plan of the same source. Otherwise `region` holds only the result's sizes.
    """
    cdef Py_ssize_t shape[MAX_RANK]
    cdef Py_ssize_t repeats[MAX_RANK]
    cdef bint whole = True
    cdef int k
    check_bounds(bounds, plan.ndim, input_shape(plan) if bounds.periodic else plan.output, shape)
    for k in range(plan.ndim):
        whole = whole and plan.shape[k] > 0 and bounds.start[k] % plan.shape[k] == shape[k] % plan.shape[k] == 0
        repeats[k] = shape[k] // plan.shape[k] if whole else 1
    if whole:
        plan_check(region, plan_init(region, plan.input_ndim, input_shape(plan), plan.ndim, repeats, plan.itemsize))
    else:
        plan_check(region, plan_init(region, plan.ndim, shape, 0, NULL, plan.itemsize))
    return whole


cdef int check_bounds(const Bounds *bounds, int ndim, const Py_ssize_t *extents, Py_ssize_t *shape) except -1:
    """Check a region, and fill its `shape`. `extents`: of the tiling, or of the input if it is periodic."""
    cdef Py_ssize_t first, last
    cdef int k
    if bounds.n_start != ndim or bounds.n_stop != ndim:
        name, n = ("stop", bounds.n_stop) if bounds.n_start == ndim else ("start", bounds.n_start)
        axes = "the input" if bounds.periodic else f"the result's shape {as_tuple(extents, ndim)}"
        raise RequestError(ValueError, f"must have {ndim} entries, one for each axis of {axes}, got {n}", name)
    for k in range(ndim):
        first, last = bounds.start[k], bounds.stop[k]
        if bounds.periodic:
            check_periodic_axis(k, extents[k], first, last)
        elif not first <= last <= extents[k]:
            raise RequestError(ValueError, f"expected 0 <= start <= stop <= {extents[k]} on axis {k}, got "
                               f"start {first}, stop {last}")
        shape[k] = last - first
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
