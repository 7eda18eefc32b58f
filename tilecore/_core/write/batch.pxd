"""The tilings of many arrays, in one array. See batch.pyx."""

cimport numpy as cnp

from tilecore._core.plan.plan cimport Tiling


cdef cnp.ndarray batch(const Tiling *tiling, cnp.dtype dtype, arrays, out, int threads)
