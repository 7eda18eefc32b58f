cimport numpy as cnp

from tilecore._core.plan.plan cimport Plan


cdef cnp.ndarray make_batch(const Plan *plan, cnp.dtype dtype, list sources, cnp.ndarray out, int threads)
