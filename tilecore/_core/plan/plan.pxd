"""Plan: a tiling that write/whole.pyx executes for any source of its shape, whole or in part, any number of times.

    tile, tilecore_tile         make one on the stack, and execute it once
    TilePlan, tilecore_plan     keep one, with its block prepared
"""

cimport numpy as cnp

from tilecore._core.numpy_api cimport MAX_RANK
from tilecore._core.plan.sizes cimport SIZES_OK, Sizes, sizes_check, sizes_init


cdef struct Plan:
    Sizes sizes
    bint endless        # for regions: the input repeats without end in all directions
    void *memory        # of `block`
    void *block         # Blocks of write/execute.pxd, if the result has plain bytes in C order; or NULL


cdef struct Bounds:     # of a region
    Py_ssize_t start[MAX_RANK + 1]
    Py_ssize_t stop[MAX_RANK + 1]
    int starts, stops   # how many were given


cdef inline int plan_init(Plan *plan, int ndim, const Py_ssize_t *shape, int nreps, const Py_ssize_t *repeats,
                          Py_ssize_t itemsize) noexcept nogil:
    """Return a SizesStatus."""
    plan.endless = False
    plan.memory = plan.block = NULL
    return sizes_init(&plan.sizes, ndim, shape, nreps, repeats, itemsize)


cdef inline int plan_for(Plan *plan, cnp.ndarray array, int nreps, const Py_ssize_t *repeats) except -1:
    """For the shape that `array` has now."""
    cdef int status = plan_init(plan, cnp.PyArray_NDIM(array), <Py_ssize_t *>cnp.PyArray_DIMS(array), nreps, repeats,
                                cnp.PyArray_ITEMSIZE(array))
    return sizes_check(&plan.sizes, status) if status != SIZES_OK else 0
