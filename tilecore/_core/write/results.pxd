cimport numpy as cnp

from tilecore._core.plan.plan cimport Plan
from tilecore._core.write.small cimport make_small


cdef cnp.ndarray make_and_write(const Plan *plan, cnp.ndarray array, cnp.ndarray out, int threads)
cdef cnp.ndarray make_batch(const Plan *plan, cnp.dtype dtype, list sources, cnp.ndarray out, int threads)


cdef inline cnp.ndarray make_result(const Plan *plan, cnp.ndarray array, cnp.ndarray out, int threads):
    """Return the plan's result for an array: `out`, as read_out returned it, or a new array for None."""
    cdef cnp.ndarray small = make_small(plan, array) if out is None else None
    return make_and_write(plan, array, out, threads) if small is None else small
