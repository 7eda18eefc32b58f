"""A region of a tiling -> bytes. See regions.pyx."""

from tilecore._core.plan.plan cimport Sizes
from tilecore._core.request.strided_arrays cimport StridedArray
from tilecore._core.write.tiling cimport WriteOptions


cdef int write_region(const Sizes *sizes, const StridedArray *source, const StridedArray *target,
                      const Py_ssize_t *start, const Py_ssize_t *shape, Py_ssize_t nbytes,
                      WriteOptions *options) noexcept nogil
