"""Sizes that several files use, and a checked product: see config.h."""


cdef extern from "config.h" nogil:
    enum: TILECORE_MAX_THREADS, TILECORE_BLOCKS, TILECORE_PANELS, TILECORE_ARRAYS
    Py_ssize_t TILECORE_BLOCK_BYTES, TILECORE_CHECK_BYTES, TILECORE_SMALL_BYTES, TILECORE_NOGIL_BYTES
    Py_ssize_t TILECORE_THREAD_BYTES, TILECORE_NEW_THREAD_BYTES, TILECORE_BYTES_A_THREAD
    long long TILECORE_CHECK_NANOSECONDS, TILECORE_FIRST_CHECK_NANOSECONDS
    bint tilecore_multiply(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *product)
