"""The fallback path for items that hold references. See references.pyx."""

cimport numpy as cnp

from tilecore._core.plan cimport Plan


cdef int write_references(const Plan *plan, cnp.ndarray array, cnp.ndarray result) except -1
cdef int write_references_region(const Plan *plan, cnp.ndarray array, cnp.ndarray result,
                                 const Py_ssize_t *start, const Py_ssize_t *stop) except -1
