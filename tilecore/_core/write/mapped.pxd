"""Results whose repeats share pages. See mapped.pyx."""

cimport numpy as cnp

from tilecore._core.plan.plan cimport Tiling


cdef cnp.ndarray mapped(const Tiling *tiling, cnp.ndarray array)
