"""A plan and its source -> an array. See results.pyx."""

cimport numpy as cnp

from tilecore._core.plan.plan cimport Bounds, Plan


cdef blank_bytes(tuple shape, cnp.dtype dtype)
cdef cnp.ndarray write_result(const Plan *plan, cnp.dtype dtype, sources, const Bounds *bounds, cnp.ndarray out,
                              int threads)
cdef int read_bounds(Bounds *bounds, start, stop, bint signed) except -1
