"""The fallback path for items that hold references. See references.pyx."""

cimport numpy as cnp

from tilecore._core.plan.sizes cimport Sizes
from tilecore._core.request.places cimport Held, Place
from tilecore._core.write.execute cimport Mode


cdef class Leaves:
    cdef bint is_string         # the item is one of StringDType, else it holds objects
    cdef Py_ssize_t itemsize
    cdef Py_ssize_t *places     # of the objects' references in the item, in their order
    cdef Py_ssize_t count, room


cdef Leaves leaves_of(cnp.dtype dtype)
cdef int write_references(const Sizes *sizes, const Place *source, const Place *target, const Held *array,
                          const Held *result, const Py_ssize_t *start, const Py_ssize_t *shape, Leaves leaves,
                          bint is_new, Mode mode, Py_ssize_t *text) except -1
