"""A plan and a source -> an array. See _results.pyx."""

cimport numpy as cnp

from tilecore._execute cimport Mode
from tilecore._plan cimport MAX_RANK, Plan


cdef struct Bounds:
    Py_ssize_t start[MAX_RANK + 1]
    Py_ssize_t stop[MAX_RANK + 1]
    int starts, stops   # how many were given


cdef const Py_ssize_t *strides_of(cnp.ndarray array) noexcept
cdef Mode choose_mode(Py_ssize_t nbytes, int threads, bint warm) except *
cdef cnp.ndarray new_result(int ndim, const Py_ssize_t *shape, Py_ssize_t nbytes, bint *warm,
                            cnp.ndarray array, str name, reps)
cdef whole(const Plan *plan, cnp.ndarray array, out, int threads, str name, reps)
cdef int read_bounds(Bounds *bounds, start, stop, str name, array, reps) except -1
cdef part(const Plan *plan, cnp.ndarray array, const Bounds *bounds, out, int threads, str name, reps)
