from tilecore._core.numpy_api cimport MAX_RANK, PY_SSIZE_T_MAX


cdef int read_fast(given, Py_ssize_t least, Py_ssize_t *values) except -2
cdef int read_generic(given, Py_ssize_t *values, str argument, int min_rank) except -1
cdef int read_generic_signed(given, Py_ssize_t *values, str argument) except -1
cdef int spread_repeats(axis, Py_ssize_t *repeats, int nreps, int ndim) except -1
cdef int read_threads(threads) except -1
cdef tuple as_tuple(const Py_ssize_t *values, int n)


cdef inline int read_integers(given, Py_ssize_t *values, str argument, int min_rank) except -1:
    """Fill `values` (of length MAX_RANK) with integers of 0 or more, and return how many.

    Errors count axes in the result. If `min_rank` is negative, the axes of the integers are not known yet.
    """
    cdef int n = read_fast(given, 0, values)
    return n if n >= 0 else read_generic(given, values, argument, min_rank)


cdef inline int read_signed(given, Py_ssize_t *values, str argument) except -1:
    """`read_integers` for integers of either sign."""
    cdef int n = read_fast(given, -PY_SSIZE_T_MAX - 1, values)
    return n if n >= 0 else read_generic_signed(given, values, argument)


cdef inline int read_repeats(reps, axis, Py_ssize_t *repeats, int ndim) except -1:
    """Fill `repeats` for the last of `ndim` axes, or for the axes in `axis`; return how many."""
    if axis is None:
        return read_integers(reps, repeats, "repeats", ndim)
    return spread_repeats(axis, repeats, read_integers(reps, repeats, "repeats", -1), ndim)
