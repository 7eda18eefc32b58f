cimport numpy as cnp

from tilecore._core.plan.plan cimport Plan, plan_array
from tilecore._core.write.results cimport make_small


cpdef tile_array(cnp.ndarray array, reps, out=*, axis=*, threads=*)
cdef cnp.ndarray make_or_none(const Plan *plan, cnp.ndarray array)


cdef inline cnp.ndarray try_fast(cnp.ndarray array, int n, const Py_ssize_t *repeats, Py_ssize_t most_elements):
    """The tiling by `n` repeats, as read_fast returns it; None if anything is wrong, for the caller to find out.

    If `most_elements` is not 0: None also for a result that is larger or empty.
    """
    cdef Plan plan
    if n < 0 or not plan_array(&plan, array, n, repeats):
        return None
    if most_elements and not (plan.nbytes and plan.nbytes // plan.itemsize <= most_elements):
        return None
    cdef cnp.ndarray result = make_small(&plan, array)
    return make_or_none(&plan, array) if result is None else result
