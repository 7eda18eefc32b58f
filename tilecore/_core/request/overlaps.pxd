from tilecore._core.strided_arrays cimport StridedArray


cdef bint share_bytes(const StridedArray *a, const Py_ssize_t *a_shape, const StridedArray *b,
                      const Py_ssize_t *b_shape, Py_ssize_t itemsize) except -1
cdef bint overlaps_itself(const StridedArray *place, const Py_ssize_t *shape, Py_ssize_t itemsize) except -1
# Code in Numba's caches calls this: with another signature it needs another name.
cdef int tilecore_find_overlap(int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides, const void *data,
                               int out_ndim, const Py_ssize_t *out_shape, const Py_ssize_t *out_strides,
                               const void *out, Py_ssize_t itemsize) noexcept nogil
