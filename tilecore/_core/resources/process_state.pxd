cdef Py_ssize_t forks   # how often fork() was called from the import to this process, as Python saw it

cdef Py_ssize_t usable_cpus() noexcept nogil
cdef int find_cpu_share() except -1
cdef bint in_main_thread() noexcept nogil
cpdef bint in_multiprocessing_child() except -1
