cimport numpy as cnp


cdef cnp.ndarray make_recycled_array(int ndim, Py_ssize_t *shape, cnp.dtype dtype, Py_ssize_t nbytes, bint *prefaulted)
