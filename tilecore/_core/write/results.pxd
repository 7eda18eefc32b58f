"""A plan and its source -> an array. See results.pyx."""

cimport numpy as cnp

from tilecore._core.plan.plan cimport Bounds, Plan


cdef blank_bytes(tuple shape, cnp.dtype dtype)
cdef cnp.ndarray emptied(cnp.ndarray out)
cdef cnp.ndarray new_result(int ndim, const Py_ssize_t *shape, Py_ssize_t nbytes, bint *warm, cnp.dtype dtype)
cdef cnp.ndarray write_result(const Plan *plan, cnp.ndarray array, const Bounds *bounds, cnp.ndarray out, int threads)
cdef int read_bounds(Bounds *bounds, start, stop, bint signed) except -1
