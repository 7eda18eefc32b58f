"""The fallback path for items that hold references. See references.pyx."""

cimport numpy as cnp

from tilecore._core.write.execute cimport Mode
from tilecore._core.write.walk cimport Part


cdef class Leaves:
    cdef bint is_string         # the item is one of StringDType, else it holds objects
    cdef Py_ssize_t *places     # of the objects' references in the item, in their order
    cdef Py_ssize_t count


cdef Leaves leaves_of(cnp.dtype dtype)
cdef int write_references(const Part *part, Leaves leaves, bint is_new, Mode mode, Py_ssize_t *text) except -1
