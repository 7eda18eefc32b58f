cimport numpy as cnp

from tilecore._core.plan.plan cimport Plan
from tilecore._core.plan.regions cimport Bounds
from tilecore._core.write.small cimport make_small


cdef cnp.ndarray make_batch(const Plan *plan, cnp.dtype dtype, sources, cnp.ndarray out, int threads)
cdef cnp.ndarray make_results(const Plan *plan, const Plan *whole_plan, cnp.dtype dtype, sources, const Bounds *bounds,
                              cnp.ndarray out, int threads)


cdef inline cnp.ndarray make_result(const Plan *plan, cnp.dtype dtype, cnp.ndarray source, const Bounds *bounds,
                                    cnp.ndarray out, int threads):
    """Return the tiling of an array of `dtype`, or its region `bounds`: `out`, or a new array for None."""
    cdef cnp.ndarray small = make_small(plan, source) if bounds == NULL and out is None else None
    return make_results(plan, plan, dtype, source, bounds, out, threads) if small is None else small
