"""Integers as callers write them. See integers.pyx."""


cdef int read_usual(given, Py_ssize_t least, Py_ssize_t *values) except -2
cdef int read_unusual(given, Py_ssize_t *values, str what, int input_ndim) except -1
cdef int count_integers(value, unsigned long numbers) noexcept
cdef int read_signed(given, Py_ssize_t *values, str what) except -1
cdef int spread_repeats(axis, Py_ssize_t *repeats, int nreps, int ndim) except -1
cdef int read_threads(threads) except -1
cdef tuple as_tuple(const Py_ssize_t *values, int n)


cdef inline int read_integers(given, Py_ssize_t *values, str what, int input_ndim) except -1:
    """Fill `values` (room for MAX_RANK + 1) with integers, none negative, and return how many.

    Errors name axes of the result. `input_ndim` below 0: which axes the integers are for is not known yet.
    """
    cdef int n = read_usual(given, 0, values)
    return n if n >= 0 else read_unusual(given, values, what, input_ndim)


cdef inline int read_repeats(reps, axis, Py_ssize_t *repeats, int ndim) except -1:
    """Fill `repeats` for an input of `ndim` axes: for its last ones, or for those that `axis` names; how many."""
    if axis is None:
        return read_integers(reps, repeats, "repeats", ndim)
    return spread_repeats(axis, repeats, read_integers(reps, repeats, "repeats", -1), ndim)
