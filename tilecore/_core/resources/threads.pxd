"""How many threads may write one large result. See threads.pyx."""


cdef int max_threads() except -1
cdef int default_threads() noexcept nogil
