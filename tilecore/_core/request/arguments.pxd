cimport numpy as cnp

from tilecore._core.numpy_api cimport PyArray_CheckExact, descr_of
from tilecore._core.strided_arrays cimport StridedArray


cdef frozenset KNOWN
cdef cnp.ndarray read_plain(a)
cdef cnp.ndarray read_plain_or_none(a)
cdef int check_rank(cnp.ndarray array, axis, int ndim) except -1
cdef int read_items(list arrays, cnp.dtype dtype, int ndim, const Py_ssize_t *shape) except -1
cdef cnp.ndarray read_target(value, cnp.dtype dtype)
cdef int check_out(cnp.ndarray out, const Py_ssize_t *shape, int ndim, Py_ssize_t itemsize,
                   StridedArray *place) except -1
cdef shape_error(cnp.ndarray array, int ndim, const Py_ssize_t *shape, str wanted, argument)


cdef inline cnp.ndarray read_out(out, cnp.ndarray array):
    """Return `out`, which must be a plain array of the dtype of `array`; check_out checks its shape and memory."""
    if PyArray_CheckExact(out) and descr_of(<cnp.ndarray>out) == descr_of(array):
        return <cnp.ndarray>out
    return read_target(out, array.descr)
