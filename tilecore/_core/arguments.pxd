"""Reading and refusing what a caller hands in. See arguments.pyx."""

cimport numpy as cnp


cdef refuse(kind, name, what, source, reps)
cdef int read_repeats(reps, Py_ssize_t *repeats, str name, source) except -1
cdef int read_integers(given, Py_ssize_t *values, str what, str name, source, reps) except -1
cdef int read_threads(threads, str name) except -1
cdef cnp.ndarray as_plain_array(a, str name)
cdef cnp.ndarray check_out(given, const Py_ssize_t *shape, int ndim, cnp.ndarray array, str name, reps)
cdef int check_size(Py_ssize_t nbytes, str name, source, reps) except -1
cdef tuple as_tuple(const Py_ssize_t *values, int n)
cdef bint is_masked(a)
