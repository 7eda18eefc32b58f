"""How many threads write one large result. See threads.pyx."""


cdef int threads_for_c() noexcept nogil
