cimport numpy as cnp


cdef extern from "kernels/config.h" nogil:
    Py_ssize_t TILECORE_MIN_RECYCLED_BYTES


cdef cnp.ndarray make_recycled_array(int ndim, Py_ssize_t *shape, cnp.dtype dtype, Py_ssize_t nbytes, bint *prefaulted)
