"""The C functions that other modules call: see include/tilecore/tilecore.h for their description."""

cdef extern from *:
    """
    typedef struct tilecore_plan tilecore_plan;
    """
    ctypedef struct tilecore_plan:
        pass  # opaque


cdef tilecore_plan *tilecore_plan_new(int ndim, const Py_ssize_t *shape, const Py_ssize_t *repeats,
                                      Py_ssize_t itemsize) except NULL
cdef void tilecore_plan_free(tilecore_plan *plan) noexcept nogil
cdef void tilecore_plan_output_shape(const tilecore_plan *plan, Py_ssize_t *shape) noexcept nogil
cdef Py_ssize_t tilecore_plan_nbytes(const tilecore_plan *plan) noexcept nogil
cdef void tilecore_plan_execute(const tilecore_plan *plan, const void *src, void *dst, int threads) noexcept nogil
cdef void tilecore_plan_execute_region(const tilecore_plan *plan, const void *src, void *dst,
                                       const Py_ssize_t *start, const Py_ssize_t *stop, int threads) noexcept nogil
cdef object tilecore_array_tile(object array, object repeats)
# Since 1.1:
cdef void tilecore_plan_execute_strided(const tilecore_plan *plan, const void *src, const Py_ssize_t *src_strides,
                                        void *dst, const Py_ssize_t *dst_strides, int threads) noexcept nogil
cdef void tilecore_plan_execute_region_strided(const tilecore_plan *plan, const void *src,
                                               const Py_ssize_t *src_strides, void *dst,
                                               const Py_ssize_t *dst_strides, const Py_ssize_t *start,
                                               const Py_ssize_t *stop, int threads) noexcept nogil
