cdef int max_threads() except -1
cdef int default_threads() noexcept nogil
