cimport numpy as cnp

from tilecore._core.plan.plan cimport Plan


cdef cnp.ndarray map_repeats(const Plan *plan, cnp.ndarray array)
