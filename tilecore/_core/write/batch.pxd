"""The tilings of many arrays, in one array. See batch.pyx."""

cimport numpy as cnp

from tilecore._core.plan.plan cimport Plan


cdef cnp.ndarray write_batch(const Plan *plan, cnp.dtype dtype, arrays, out, int threads)
