cimport numpy as cnp

from tilecore._core.plan.plan cimport Plan
from tilecore._core.plan.regions cimport Bounds


cdef cnp.ndarray write_result(const Plan *plan, cnp.dtype dtype, sources, const Bounds *bounds, cnp.ndarray out,
                              int threads)
