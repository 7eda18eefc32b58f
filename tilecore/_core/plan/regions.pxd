from tilecore._core.numpy_api cimport MAX_RANK
from tilecore._core.plan.plan cimport Plan


cdef struct Region:                 # the part [start, stop) of a tiling, or of the input's periodic extension
    int n_start, n_stop             # how many entries each has
    bint periodic                   # whether the input repeats without end, in both directions along every axis
    Py_ssize_t start[MAX_RANK]
    Py_ssize_t stop[MAX_RANK]
    Py_ssize_t shape[MAX_RANK]      # stop - start, and the region's bytes: set by plan_region
    Py_ssize_t nbytes


cdef int read_bounds(Region *region, start, stop, bint periodic) except -1
cdef bint plan_region(Plan *tiling, Region *region, const Plan *plan) except -1


cdef inline const Py_ssize_t *result_shape(const Plan *plan, const Region *region) noexcept nogil:
    """The shape of the region, or of the whole tiling for NULL."""
    if region == NULL:
        return &plan.output[0]
    return &region.shape[0]
