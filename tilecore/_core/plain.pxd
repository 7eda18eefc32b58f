cimport numpy as cnp

from tilecore._core.numpy_api cimport MAX_RANK
from tilecore._core.plan.plan cimport Plan, plan_array
from tilecore._core.request.integers cimport read_fast


cdef cnp.ndarray plan_request(Plan *plan, cnp.ndarray array, reps, axis, out)
cpdef tile_array(cnp.ndarray array, reps, out=*, axis=*, threads=*)
cdef tile_fast(cnp.ndarray array, reps, Py_ssize_t min_repeat, Py_ssize_t max_elements)


cdef inline bint plan_fast(Plan *plan, cnp.ndarray array, reps, Py_ssize_t min_repeat) except -1:
    """Make the plan, if `reps` can be read without the caller's code and nothing is wrong; else return False."""
    cdef Py_ssize_t repeats[MAX_RANK]
    cdef int n = read_fast(reps, min_repeat, repeats)
    return n >= 0 and plan_array(plan, array, n, repeats)
