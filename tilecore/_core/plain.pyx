# cython: binding=False
"""Tilings of plain arrays, for `tile` and the dialects. Raises RequestErrors, from which the caller makes the error."""

cimport numpy as cnp

from tilecore._core.numpy_api cimport MAX_RANK
from tilecore._core.plan.plan cimport Plan, plan_array, plan_check
from tilecore._core.request.arguments cimport check_rank, read_out
from tilecore._core.request.integers cimport read_repeats, read_threads
from tilecore._core.write.results cimport make_result

from tilecore._core.request.errors import RequestError

cnp.import_array()


cdef cnp.ndarray plan_request(Plan *plan, cnp.ndarray array, reps, axis, out):
    """Make the plan for `array`. Return `out` as read_out reads it, or None. The plan is made last."""
    cdef Py_ssize_t repeats[MAX_RANK]
    cdef cnp.ndarray target
    cdef int n = read_repeats(reps, axis, repeats, cnp.PyArray_NDIM(array))
    target = read_out(out, array.descr)
    check_rank(array, axis, n)
    plan_check(plan, plan_array(plan, array, n, repeats))
    return target


cpdef tile_array(cnp.ndarray array, reps, out=None, axis=None, threads=None):
    """`tile` of a plain array."""
    cdef Plan plan
    cdef int thread_limit = read_threads(threads)
    cdef cnp.ndarray target = plan_request(&plan, array, reps, axis, out)
    return make_result(&plan, array, target, thread_limit)


cdef tile_fast(cnp.ndarray array, reps, Py_ssize_t min_repeat, Py_ssize_t max_elements):
    """The tiling, if `reps` can be read without running the caller's code, and nothing is wrong; else None.

    If `max_elements` is not 0: None also for a result that is larger or empty.
    """
    cdef Plan plan
    if not plan_fast(&plan, array, reps, min_repeat):
        return None
    if max_elements and not (plan.nbytes and plan.nbytes // plan.itemsize <= max_elements):
        return None
    try:
        return make_result(&plan, array, None, 0)
    except RequestError:
        return None
