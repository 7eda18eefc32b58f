"""Results whose repeats share pages. See mapped.pyx."""

cimport numpy as cnp

from tilecore._core.execute cimport Mode
from tilecore._core.plan cimport MAX_RANK, Nest


cdef struct Sharing:
    int level                       # the loop of the nest whose repeats share pages
    Py_ssize_t joined               # so many of its repeats lie in the file one behind the other
    Py_ssize_t mappings
    Py_ssize_t file_bytes
    Py_ssize_t step[2 * MAX_RANK + 1]   # of each loop outside `level`, in the file; 0 for a repeat


cdef bint choose_sharing(Sharing *sharing, const Nest *nest, Py_ssize_t nbytes) noexcept nogil
cdef object mapped_array(Sharing *sharing, const Nest *nest, int ndim, Py_ssize_t *shape, cnp.dtype dtype,
                         const char *src, Py_ssize_t nbytes, Mode mode)
