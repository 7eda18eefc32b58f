"""A plan and its sources -> an array. See results.pyx."""

cimport numpy as cnp

from tilecore._core.plan.plan cimport Plan
from tilecore._core.plan.regions cimport Bounds


cdef cnp.ndarray write_result(const Plan *plan, cnp.dtype dtype, cnp.ndarray source, const Bounds *bounds,
                              cnp.ndarray out, int threads)
cdef cnp.ndarray write_batch(const Plan *plan, cnp.dtype dtype, sources, Py_ssize_t n, cnp.ndarray out, int threads)
