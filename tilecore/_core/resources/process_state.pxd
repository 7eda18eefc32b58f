cdef Py_ssize_t forks   # forks between the import and this process, as Python saw them

cdef Py_ssize_t usable_cpus() noexcept nogil
cdef int find_cpu_share() except -1
cdef bint in_main_thread() noexcept nogil
cpdef bint in_multiprocessing_child() except -1
