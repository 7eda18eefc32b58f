"""Plan and source -> bytes of the output. See _execute.pyx."""

from tilecore._plan cimport Nest, Plan


cdef extern from "tilecore/config.h" nogil:
    Py_ssize_t TILECORE_THREAD_BYTES, TILECORE_NOGIL_BYTES


cdef struct Mode:
    int threads   # at most so many
    bint warm     # the output has been written before, so that its pages are there
    bint poll     # look for a KeyboardInterrupt between stretches of a large output


cdef int execute(const Nest *nest, char *dst, const char *src, Py_ssize_t nbytes, Mode mode) noexcept nogil
cdef int execute_region(const Plan *plan, int ndim, const Py_ssize_t *strides, char *dst, const char *src,
                        const Py_ssize_t *start, const Py_ssize_t *stop, Mode mode) noexcept nogil
