"""Strings of variable length. See strings.pyx."""

cimport numpy as cnp

from tilecore._core.walk cimport Walk


cdef int write_strings(Walk *walk, cnp.ndarray array, cnp.ndarray result, Py_ssize_t most) except -1
