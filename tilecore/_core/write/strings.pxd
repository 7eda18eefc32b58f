"""Strings of variable length. See strings.pyx."""

from tilecore._core.write.walk cimport Walk


cdef int write_strings(Walk *walk, bint is_new, Py_ssize_t *left) except -1
