from tilecore._core.strided_arrays cimport StridedArray


cdef bint share_bytes(const StridedArray *a, const Py_ssize_t *a_shape, const StridedArray *b,
                      const Py_ssize_t *b_shape, Py_ssize_t itemsize) except -1
cdef bint overlaps_itself(const StridedArray *place, const Py_ssize_t *shape, Py_ssize_t itemsize) except -1
cdef bint may_share(const StridedArray *a, const Py_ssize_t *a_shape, const StridedArray *b,
                    const Py_ssize_t *b_shape, Py_ssize_t itemsize) noexcept nogil
cdef bint may_overlap(const StridedArray *place, const Py_ssize_t *shape, Py_ssize_t itemsize) noexcept nogil
