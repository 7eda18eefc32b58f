# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""What can be executed: a tiling, made once from shape, repeats and itemsize, and executed any number of
times, whole or a region of it, from any place of such a shape to any other (write/plans.pyx).

    tile            makes one on its stack, and executes it once
    TilePlan        keeps one, its block prepared
    the C API       keeps one, its block prepared: tilecore_plan; or makes one on its stack: tilecore_tile
"""

cimport numpy as cnp

from tilecore._core.plan.sizes cimport SIZES_OK, sizes_check, sizes_init

cnp.import_array()


cdef int plan_init(Plan *plan, int ndim, const Py_ssize_t *shape, int nreps, const Py_ssize_t *repeats,
                     Py_ssize_t itemsize) noexcept nogil:
    """A PlanStatus."""
    plan.endless = False
    plan.memory = NULL
    plan.block = NULL
    return sizes_init(&plan.sizes, ndim, shape, nreps, repeats, itemsize)


cdef int plan_for(Plan *plan, cnp.ndarray array, int nreps, const Py_ssize_t *repeats) except -1:
    """For the shape that `array` has now."""
    cdef int status = plan_init(plan, cnp.PyArray_NDIM(array), <Py_ssize_t *>cnp.PyArray_DIMS(array), nreps,
                                  repeats, cnp.PyArray_ITEMSIZE(array))
    if status != SIZES_OK:
        sizes_check(&plan.sizes, status)
    return 0
