"""What can be executed: one tiling, of any source of its shape, whole or in part. See tiling.pyx."""

cimport numpy as cnp

from tilecore._core.write.execute cimport Blocks, Mode
from tilecore._core.plan.sizes cimport MAX_RANK, Place, Plan


cdef struct Tiling:
    Plan plan
    bint endless        # regions alone: the plane that the input tiles, in all directions
    void *memory        # of `block`
    Blocks *block       # ready to write, where the result is one block of plain bytes in the order of C; or NULL


cdef struct Bounds:     # of a region
    Py_ssize_t start[MAX_RANK + 1]
    Py_ssize_t stop[MAX_RANK + 1]
    int starts, stops   # how many were given


cdef int tiling_init(Tiling *tiling, int ndim, const Py_ssize_t *shape, int nreps, const Py_ssize_t *repeats,
                     Py_ssize_t itemsize) noexcept nogil
cdef int tiling_of(Tiling *tiling, cnp.ndarray array, int nreps, const Py_ssize_t *repeats) except -1
cdef bint tiling_prepare(Tiling *tiling) noexcept nogil
cdef void tiling_clear(Tiling *tiling) noexcept nogil
cdef Mode choose_mode(const Tiling *tiling, Py_ssize_t nbytes, int threads, bint warm) except *
cdef Mode caller_mode(int threads) noexcept nogil
cdef int tiling_execute(const Tiling *tiling, const Place *source, const Place *target, Mode mode) noexcept nogil
cdef int tiling_execute_region(const Tiling *tiling, const Place *source, const Place *target,
                               const Py_ssize_t *start, const Py_ssize_t *stop, Py_ssize_t nbytes,
                               Mode mode) noexcept nogil
