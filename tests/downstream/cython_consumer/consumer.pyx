# cython: language_level=3
"""A module that builds upon tilecore in Cython: `cimport tilecore` is all that it needs."""

import math

cimport cython
cimport tilecore
from cpython.buffer cimport PyBUF_STRIDED, PyBUF_STRIDED_RO, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.parallel cimport prange


cdef class Tiler:
    """Tiles bytes of one shape again and again."""
    cdef tilecore.tilecore_plan *plan
    cdef readonly tuple shape, output_shape
    cdef Py_ssize_t itemsize, source_bytes

    def __cinit__(self, tuple shape, tuple repeats, Py_ssize_t itemsize):
        cdef Py_ssize_t[64] extents, counts, output
        if not len(shape) == len(repeats) <= 64:
            raise ValueError("expected as many repeats as extents, at most 64")
        for k in range(len(shape)):
            extents[k], counts[k] = shape[k], repeats[k]
        # An error of tilecore's is raised here; nothing to check.
        self.plan = tilecore.tilecore_plan_new(len(shape), extents, counts, itemsize)
        tilecore.tilecore_plan_output_shape(self.plan, output)
        self.output_shape = tuple([output[k] for k in range(len(shape))])
        self.shape, self.itemsize = shape, itemsize
        self.source_bytes = math.prod(shape) * itemsize

    def __dealloc__(self):
        tilecore.tilecore_plan_free(self.plan)  # NULL if __cinit__ raised

    # The executors check nothing, so these do.

    def tile(self, const unsigned char[::1] source not None, int threads=0):
        cdef const void *src = self.start_of(source)
        result = PyBytes_FromStringAndSize(NULL, tilecore.tilecore_plan_nbytes(self.plan))
        cdef char *dst = PyBytes_AS_STRING(result)
        with nogil:
            tilecore.tilecore_plan_execute(self.plan, src, NULL, dst, NULL, threads)
        return result

    def tile_between(self, source, target, tuple start=None, tuple stop=None):
        """From one buffer to another, each of any strides: all of it, or [start, stop)."""
        cdef Py_buffer src, dst
        cdef Py_ssize_t[64] first, last
        cdef Py_ssize_t rank = len(self.output_shape)
        for k in range(rank):
            first[k], last[k] = start[k] if start else 0, stop[k] if stop else self.output_shape[k]
        PyObject_GetBuffer(source, &src, PyBUF_STRIDED_RO)
        try:
            PyObject_GetBuffer(target, &dst, PyBUF_STRIDED)
            try:
                if not src.ndim == dst.ndim == rank or not src.itemsize == dst.itemsize == self.itemsize:
                    raise ValueError(f"expected buffers of rank {rank} and itemsize {self.itemsize}")
                for k in range(rank):
                    extent = self.output_shape[k]
                    if src.shape[k] != self.shape[k] or not 0 <= first[k] <= last[k] <= extent:
                        raise ValueError(f"expected {self.shape[k]} in the source, and a part of {extent}, on axis {k}")
                    if dst.shape[k] != last[k] - first[k]:
                        raise ValueError(f"expected {last[k] - first[k]} in the target on axis {k}")
                with nogil:
                    if start is None:
                        tilecore.tilecore_plan_execute(self.plan, src.buf, src.strides, dst.buf, dst.strides, 0)
                    else:
                        tilecore.tilecore_plan_execute_region(self.plan, src.buf, src.strides, dst.buf, dst.strides,
                                                              first, last, 0)
            finally:
                PyBuffer_Release(&dst)
        finally:
            PyBuffer_Release(&src)

    cdef const void *start_of(self, const unsigned char[::1] source) except? NULL:
        if source.shape[0] != self.source_bytes:
            raise ValueError(f"expected {self.source_bytes} bytes, got {source.shape[0]}")
        return &source[0] if self.source_bytes else NULL


@cython.boundscheck(False)
@cython.wraparound(False)
def tile_each(const float[:, :, :] images not None, Py_ssize_t down, Py_ssize_t across, float[:, :, :] out not None):
    """Each image to its place in `out`, several at a time; both of any strides. No plan, and no GIL."""
    cdef Py_ssize_t[2] repeats = [down, across]
    cdef Py_ssize_t[2] output
    cdef Py_ssize_t i
    cdef int status = tilecore.tilecore_output_shape(2, &images.shape[1], 2, repeats, sizeof(float), output, NULL)
    if status != tilecore.TILECORE_OK:
        raise ValueError(tilecore.tilecore_status_text(status).decode())
    if (out.shape[0], out.shape[1], out.shape[2]) != (images.shape[0], output[0], output[1]):
        raise ValueError(f"expected an output of {images.shape[0]} times {output[0]} by {output[1]}")
    if out.size == 0:
        return
    for i in prange(images.shape[0], nogil=True):
        tilecore.tilecore_tile(2, &images.shape[1], &images.strides[1], 2, repeats, sizeof(float),
                               &images[i, 0, 0], &out[i, 0, 0], &out.strides[1], 1)


def tile_any(array, repeats):
    """Arrays of any strides and dtype."""
    return tilecore.tilecore_array_tile(array, repeats)
