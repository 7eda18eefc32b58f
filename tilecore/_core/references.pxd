"""The fallback path for items that hold references. See references.pyx."""

cimport numpy as cnp

from tilecore._core.execute cimport Mode
from tilecore._core.plan cimport Place, Plan


cdef int write_references(const Plan *plan, const Place *source, const Place *target, const Py_ssize_t *start,
                          const Py_ssize_t *shape, cnp.ndarray array, cnp.ndarray result, bint is_new,
                          Mode mode) except -1
