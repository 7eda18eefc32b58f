cimport numpy as cnp
from cpython.object cimport PyObject

from tilecore._core.numpy_api cimport PyArray_CheckExact, descr_of
from tilecore._core.strided_arrays cimport StridedArray


cdef cnp.ndarray read_plain(a, argument=*)
cdef cnp.ndarray read_plain_or_none(a, argument=*)
cdef bint is_foreign(value) except -1
cdef int check_dtype(cnp.ndarray array, cnp.dtype dtype, str argument) except -1
cdef int check_rank_unchanged(cnp.ndarray array, axis, int ndim) except -1
cdef int read_items(list arrays, cnp.dtype dtype, int ndim, const Py_ssize_t *shape) except -1
cdef cnp.ndarray read_generic_out(value, cnp.dtype dtype)
cdef int check_out(cnp.ndarray out, const Py_ssize_t *shape, int ndim, Py_ssize_t itemsize,
                   StridedArray *place) except -1
cdef shape_error(cnp.ndarray array, int ndim, const Py_ssize_t *shape, str argument)


cdef inline cnp.ndarray read_out(out, cnp.dtype dtype):
    """Return `out`, which must be None or an array of this dtype; check_out checks its shape and memory."""
    if out is None or PyArray_CheckExact(out) and descr_of(<cnp.ndarray>out) == <PyObject *>dtype:
        return <cnp.ndarray>out
    return read_generic_out(out, dtype)
