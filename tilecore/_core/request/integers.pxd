"""Integers as callers write them. See integers.pyx."""


cdef int read_integers(given, Py_ssize_t *values, str what, int input_ndim) except -1
cdef int known_integers(value, unsigned long numbers) noexcept
cdef tuple integers_of(value, unsigned long numbers)
cdef int read_signed(given, Py_ssize_t *values, str what) except -1
cdef int spread(axis, Py_ssize_t *repeats, int nreps, int ndim) except -1
cdef int read_threads(threads) except -1
cdef tuple as_tuple(const Py_ssize_t *values, int n)
