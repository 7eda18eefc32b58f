"""The C functions that other modules call: see include/tilecore/tilecore.h for their description."""

cdef extern from *:
    """
    typedef struct tilecore_plan tilecore_plan;
    """
    ctypedef struct tilecore_plan:
        pass  # opaque

cpdef enum:  # as in tilecore.h
    TILECORE_MAX_RANK = 64

    TILECORE_OK = 0
    TILECORE_BAD_RANK = 1
    TILECORE_BAD_SHAPE = 2
    TILECORE_BAD_ITEMSIZE = 3
    TILECORE_BAD_REPEATS = 4
    TILECORE_OVERFLOW = 5
    TILECORE_NO_MEMORY = 6
    TILECORE_NOT_IMPORTED = 7

cdef tilecore_plan *tilecore_plan_new(int ndim, const Py_ssize_t *shape, const Py_ssize_t *repeats,
                                      Py_ssize_t itemsize) except NULL
cdef tilecore_plan *tilecore_plan_make(int ndim, const Py_ssize_t *shape, const Py_ssize_t *repeats,
                                       Py_ssize_t itemsize, int *status) noexcept nogil
cdef void tilecore_plan_free(tilecore_plan *plan) noexcept nogil
cdef void tilecore_plan_output_shape(const tilecore_plan *plan, Py_ssize_t *shape) noexcept nogil
cdef Py_ssize_t tilecore_plan_nbytes(const tilecore_plan *plan) noexcept nogil
cdef void tilecore_plan_execute(const tilecore_plan *plan, const void *src, const Py_ssize_t *src_strides,
                                void *dst, const Py_ssize_t *dst_strides, int threads) noexcept nogil
cdef void tilecore_plan_execute_region(const tilecore_plan *plan, const void *src, const Py_ssize_t *src_strides,
                                       void *dst, const Py_ssize_t *dst_strides, const Py_ssize_t *start,
                                       const Py_ssize_t *stop, int threads) noexcept nogil
cdef int tilecore_output_shape(int ndim, const Py_ssize_t *shape, int nreps, const Py_ssize_t *repeats,
                               Py_ssize_t itemsize, Py_ssize_t *output_shape, Py_ssize_t *nbytes) noexcept nogil
cdef int tilecore_tile(int ndim, const Py_ssize_t *shape, const Py_ssize_t *src_strides, int nreps,
                       const Py_ssize_t *repeats, Py_ssize_t itemsize, const void *src, void *dst,
                       const Py_ssize_t *dst_strides, int threads) noexcept nogil
# For code that Numba has compiled, and cached: with another signature it needs another name. Not in tilecore.h.
cdef int tilecore_find_overlap(int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides, const void *data,
                               int out_ndim, const Py_ssize_t *out_shape, const Py_ssize_t *out_strides,
                               const void *out, Py_ssize_t itemsize) noexcept nogil
cdef const char *tilecore_status_text(int status) noexcept nogil
cdef object tilecore_array_tile(object array, object repeats)
