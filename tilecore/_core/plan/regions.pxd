from tilecore._core.numpy_api cimport MAX_RANK
from tilecore._core.plan.plan cimport Plan


cdef struct Bounds:     # of a region
    Py_ssize_t start[MAX_RANK]
    Py_ssize_t stop[MAX_RANK]
    int n_start, n_stop  # how many entries each has
    bint periodic       # whether the input repeats without end, in both directions along every axis


cdef int read_bounds(Bounds *bounds, start, stop, bint periodic) except -1
cdef bint plan_region(Plan *region, const Plan *plan, const Bounds *bounds) except -1
