"""How many threads write one large result. See threads.pyx."""


cdef int default_threads() noexcept nogil
