"""What can be executed: one tiling, of any source of its shape, whole or in part. See plan.pyx."""

cimport numpy as cnp

from tilecore._core.numpy_api cimport MAX_RANK
from tilecore._core.plan.sizes cimport Sizes


cdef struct Plan:
    Sizes sizes
    bint endless        # regions alone: the plane that the input tiles, in all directions
    void *memory        # of `block`
    void *block         # Blocks of write/execute.pxd, where the result is one of plain bytes in the order of C; or NULL


cdef struct Bounds:     # of a region
    Py_ssize_t start[MAX_RANK + 1]
    Py_ssize_t stop[MAX_RANK + 1]
    int starts, stops   # how many were given


cdef int plan_init(Plan *plan, int ndim, const Py_ssize_t *shape, int nreps, const Py_ssize_t *repeats,
                   Py_ssize_t itemsize) noexcept nogil
cdef int plan_for(Plan *plan, cnp.ndarray array, int nreps, const Py_ssize_t *repeats) except -1
