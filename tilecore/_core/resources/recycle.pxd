"""Recycled memory. See recycle.pyx."""

cimport numpy as cnp


cdef extern from "kernels/config.h" nogil:
    Py_ssize_t TILECORE_MIN_RECYCLED_BYTES


cdef bint can_recycle(Py_ssize_t nbytes) except -1
cdef cnp.ndarray make_recycled_array(int ndim, Py_ssize_t *shape, cnp.dtype dtype, Py_ssize_t nbytes, bint *prefaulted)
