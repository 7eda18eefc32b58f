"""The memory and the processors that this process may use. See limits.pyx."""


cdef Py_ssize_t usable_cpus() noexcept nogil
cdef int ask_cpu_share() except -1
cpdef bint in_multiprocessing_child() except -1
