cimport numpy as cnp

from tilecore._core.plan.plan cimport Plan


cdef cnp.ndarray tile_or_none(cnp.ndarray array, int n, const Py_ssize_t *repeats, Py_ssize_t most_elements)
cdef cnp.ndarray make_small(const Plan *plan, cnp.ndarray array)
cdef cnp.ndarray make_result(const Plan *plan, cnp.ndarray array, cnp.ndarray out, int threads)
cdef cnp.ndarray make_batch(const Plan *plan, cnp.dtype dtype, list arrays, cnp.ndarray out, int threads)
