"""What can be executed: a tiling of any source of its shape, whole or in part, any number of times (write/plans.pyx).

    tile            makes one on its stack, and executes it once
    TilePlan        keeps one, its block prepared
    the C API       keeps one, its block prepared: tilecore_plan; or makes one on its stack: tilecore_tile
"""

cimport numpy as cnp

from tilecore._core.numpy_api cimport MAX_RANK
from tilecore._core.plan.sizes cimport SIZES_OK, Sizes, sizes_check, sizes_init


cdef struct Plan:
    Sizes sizes
    bint endless        # regions alone: the plane that the input tiles, in all directions
    void *memory        # of `block`
    void *block         # Blocks of write/execute.pxd, where the result is one of plain bytes in the order of C; or NULL


cdef struct Bounds:     # of a region
    Py_ssize_t start[MAX_RANK + 1]
    Py_ssize_t stop[MAX_RANK + 1]
    int starts, stops   # how many were given


cdef inline int plan_init(Plan *plan, int ndim, const Py_ssize_t *shape, int nreps, const Py_ssize_t *repeats,
                          Py_ssize_t itemsize) noexcept nogil:
    """A SizesStatus."""
    plan.endless = False
    plan.memory = plan.block = NULL
    return sizes_init(&plan.sizes, ndim, shape, nreps, repeats, itemsize)


cdef inline int plan_for(Plan *plan, cnp.ndarray array, int nreps, const Py_ssize_t *repeats) except -1:
    """For the shape that `array` has now."""
    cdef int status = plan_init(plan, cnp.PyArray_NDIM(array), <Py_ssize_t *>cnp.PyArray_DIMS(array), nreps, repeats,
                                cnp.PyArray_ITEMSIZE(array))
    return sizes_check(&plan.sizes, status) if status != SIZES_OK else 0
