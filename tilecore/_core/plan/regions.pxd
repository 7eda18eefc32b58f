from tilecore._core.numpy_api cimport MAX_RANK


cdef struct Bounds:     # of a region
    Py_ssize_t start[MAX_RANK]
    Py_ssize_t stop[MAX_RANK]
    int n_start, n_stop  # how many entries each has
    bint periodic       # whether the input repeats without end, in both directions along every axis


cdef int read_bounds(Bounds *bounds, start, stop, bint periodic) except -1
cdef int check_bounds(const Bounds *bounds, int ndim, const Py_ssize_t *extents, Py_ssize_t *shape) except -1
