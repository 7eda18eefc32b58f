cdef Py_ssize_t forks   # how many `os.fork()` calls lie between the import and this process

cdef Py_ssize_t usable_cpus() noexcept nogil
cdef int find_cpu_share() except -1
cdef bint in_main_thread() noexcept nogil
cpdef bint in_multiprocessing_child() except -1
