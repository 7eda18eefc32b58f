cimport numpy as cnp


cdef Py_ssize_t max_bytes   # one aligned word: other threads read the old limit or the new one
cdef bint leave_heap_alone    # glibc's, while a profile measures the program

cdef cnp.ndarray new_array(int ndim, Py_ssize_t *shape, cnp.dtype dtype, Py_ssize_t nbytes, bint *prefaulted)
cdef int check_size(Py_ssize_t nbytes, what=*) except -1
cdef no_memory_error(nbytes)
