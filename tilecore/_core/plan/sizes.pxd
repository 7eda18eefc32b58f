"""Checked sizes. See sizes.pyx."""

from tilecore._core.numpy_api cimport MAX_RANK


cdef extern from "kernels/config.h" nogil:
    bint tilecore_multiply(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *product)


cdef enum SizesStatus:
    SIZES_OK
    SIZES_NEGATIVE        # a negative repeat
    SIZES_AXIS_OVERFLOW   # extent * repeat of one axis
    SIZES_COUNT_OVERFLOW  # the product of the output's extents
    SIZES_BYTES_OVERFLOW  # that times the itemsize


cdef struct Sizes:
    int ndim                        # rank of the output
    int input_ndim
    int axis                        # the axis at fault if sizes_init fails
    Py_ssize_t itemsize
    Py_ssize_t nbytes               # of the output
    Py_ssize_t input_nbytes         # of the input; 0 if the output is empty
    Py_ssize_t copies               # of each input element; 0 if the output is empty
    Py_ssize_t shape[MAX_RANK]      # of the input, padded with 1s in front
    Py_ssize_t repeats[MAX_RANK]    # padded with 1s in front
    Py_ssize_t output[MAX_RANK]     # shape * repeats


cdef int sizes_init(Sizes *sizes, int ndim, const Py_ssize_t *shape, int nreps, const Py_ssize_t *repeats,
                    Py_ssize_t itemsize) noexcept nogil
cdef int sizes_check(const Sizes *sizes, int status) except -1
