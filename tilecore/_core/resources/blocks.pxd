"""Blocks of memory that are kept when they are idle. See blocks.pyx."""


cdef bint resize_block(char *data, Py_ssize_t bytes) noexcept nogil
cdef char *new_block(Py_ssize_t wanted) noexcept nogil
cdef char *take_block(Py_ssize_t bytes, bint *warm) noexcept nogil
cdef void give_back_block(char *data) noexcept nogil
cdef Py_ssize_t block_bytes(const char *data) noexcept nogil
cdef Py_ssize_t count_idle() noexcept nogil
cdef Py_ssize_t idle_limit() noexcept nogil
cdef void set_idle_limit(Py_ssize_t most) noexcept nogil
cdef void trim(Py_ssize_t most) noexcept nogil
