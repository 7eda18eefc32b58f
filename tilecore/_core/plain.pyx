# cython: binding=False
"""Tilings of plain arrays, for `tile` and the dialects. Raises RequestErrors, from which the caller makes the error."""

cimport numpy as cnp

from tilecore._core.numpy_api cimport MAX_RANK
from tilecore._core.plan.plan cimport Plan, plan_tiling
from tilecore._core.request.arguments cimport check_rank, read_out
from tilecore._core.request.integers cimport read_repeats, read_threads
from tilecore._core.write.results cimport make_and_write, make_result

from tilecore._core.request.errors import RequestError

cnp.import_array()


cdef cnp.ndarray plan_request(Plan *plan, cnp.ndarray array, reps, axis, out):
    """Make the plan for `array`. Return `out` as read_out reads it, or None. The plan is made last."""
    cdef Py_ssize_t repeats[MAX_RANK]
    cdef cnp.ndarray target
    cdef int n = read_repeats(reps, axis, repeats, cnp.PyArray_NDIM(array))
    target = read_out(out, array.descr)
    check_rank(array, axis, n)
    plan_tiling(plan, cnp.PyArray_NDIM(array), <Py_ssize_t *>cnp.PyArray_DIMS(array), n, repeats,
                cnp.PyArray_ITEMSIZE(array))
    return target


cpdef tile_array(cnp.ndarray array, reps, out=None, axis=None, threads=None):
    """`tile` of a plain array."""
    cdef Plan plan
    cdef int thread_limit = read_threads(threads)
    cdef cnp.ndarray target = plan_request(&plan, array, reps, axis, out)
    return make_result(&plan, array, target, thread_limit)


cdef cnp.ndarray make_or_none(const Plan *plan, cnp.ndarray array):
    """make_and_write, or None."""
    try:
        return make_and_write(plan, array, None, 0)
    except RequestError:
        return None
