from tilecore._core.numpy_api cimport MAX_RANK


cdef struct Bounds:     # of a region, as they were given
    int start_ndim, stop_ndim       # entries of start, and of stop
    Py_ssize_t start[MAX_RANK]
    Py_ssize_t stop[MAX_RANK]


cdef int read_fast(given, Py_ssize_t least, Py_ssize_t *values) except -2
cdef int read_generic(given, Py_ssize_t least, Py_ssize_t *values, str argument, int rank) except -1
cdef int spread_repeats(axis, Py_ssize_t *repeats, int nreps, int ndim) except -1
cdef int read_bounds(Bounds *bounds, start, stop) except -1
cdef int read_threads(threads) except -1
cdef tuple as_tuple(const Py_ssize_t *values, int n)


cdef inline int read_integers(given, Py_ssize_t least, Py_ssize_t *values, str argument, int rank) except -1:
    """Fill `values` (of length MAX_RANK) with integers >= `least`, which is 0 or PY_SSIZE_T_MIN; return how many.

    Errors name the axis: integers are for the last axes of the result, whose rank is theirs or `rank`, if that is more.
    If `rank` is negative, errors name no axis.
    """
    cdef int n = read_fast(given, least, values)
    return n if n >= 0 else read_generic(given, least, values, argument, rank)


cdef inline int read_repeats(reps, axis, Py_ssize_t *repeats, int ndim) except -1:
    """Fill `repeats` for the last of `ndim` axes, or for the axes in `axis`; return how many."""
    if axis is None:
        return read_integers(reps, 0, repeats, "repeats", ndim)
    return spread_repeats(axis, repeats, read_integers(reps, 0, repeats, "repeats", -1), ndim)
