# cython: language_level=3
"""A module that builds upon tilecore in Cython: `cimport tilecore` is all that it needs."""

cimport tilecore
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize


cdef class Tiler:
    """Tiles bytes of one shape again and again."""
    cdef tilecore.tilecore_plan *plan
    cdef int ndim

    def __cinit__(self, shape, repeats, Py_ssize_t itemsize):
        cdef Py_ssize_t extents[64]
        cdef Py_ssize_t counts[64]
        self.ndim = len(shape)
        for k in range(self.ndim):
            extents[k] = shape[k]
            counts[k] = repeats[k]
        # An error of tilecore's is raised here; nothing to check.
        self.plan = tilecore.tilecore_plan_new(self.ndim, extents, counts, itemsize)

    def __dealloc__(self):
        tilecore.tilecore_plan_free(self.plan)

    @property
    def output_shape(self):
        cdef Py_ssize_t shape[64]
        tilecore.tilecore_plan_output_shape(self.plan, shape)
        return tuple([shape[k] for k in range(self.ndim)])

    def tile(self, const unsigned char[::1] source, int threads=0):
        result = PyBytes_FromStringAndSize(NULL, tilecore.tilecore_plan_nbytes(self.plan))
        cdef char *target = PyBytes_AS_STRING(result)
        with nogil:
            tilecore.tilecore_plan_execute(self.plan, &source[0], target, threads)
        return result

    def region(self, const unsigned char[::1] source, start, stop, Py_ssize_t nbytes):
        cdef Py_ssize_t first[64]
        cdef Py_ssize_t last[64]
        for k in range(self.ndim):
            first[k], last[k] = start[k], stop[k]
        result = PyBytes_FromStringAndSize(NULL, nbytes)
        cdef char *target = PyBytes_AS_STRING(result)
        with nogil:
            tilecore.tilecore_plan_execute_region(self.plan, &source[0], target, first, last, 0)
        return result


def tile_any(array, repeats):
    """Arrays of any strides and dtype."""
    return tilecore.tilecore_array_tile(array, repeats)
