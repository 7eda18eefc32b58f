"""The fallback path for items that hold references. See references.pyx."""

cimport numpy as cnp

from tilecore._core.plan.plan cimport Sizes
from tilecore._core.request.places cimport Held, Place
from tilecore._core.write.execute cimport Mode


cdef struct Part:               # of a tiling, all of it or a region, and the arrays that it is read from and written to
    const Sizes *sizes
    const Py_ssize_t *start     # of the region, any integers; NULL for all of the tiling
    const Py_ssize_t *shape     # of it, without a 0
    const Held *array
    const Held *result
    const Place *source         # of the items in the memory of both, whatever shape other code gives these meanwhile
    const Place *target


cdef class Leaves:
    cdef bint is_string         # the item is one of StringDType, else it holds objects
    cdef Py_ssize_t *places     # of the objects' references in the item, in their order
    cdef Py_ssize_t count


cdef Leaves leaves_of(cnp.dtype dtype)
cdef int write_references(const Part *part, Leaves leaves, bint is_new, Mode mode, Py_ssize_t *text) except -1
