"""Where an array lies, by address and strides, for code without Python objects; the check of an array's shape."""

cimport numpy as cnp

from tilecore._core.numpy_api cimport MAX_RANK, PY_SSIZE_T_MAX, PyArray_IS_C_CONTIGUOUS


cdef inline bint has_shape(cnp.ndarray array, int ndim, const Py_ssize_t *shape) noexcept:
    """Whether the array has this shape. The shape may change during a call, even by an assignment to `dtype`."""
    cdef int k
    if cnp.PyArray_NDIM(array) != ndim:
        return False
    for k in range(ndim):
        if cnp.PyArray_DIM(array, k) != shape[k]:
            return False
    return True


cdef struct StridedArray:
    char *data
    int ndim
    bint contiguous     # in C order
    Py_ssize_t strides[MAX_RANK]    # set if not contiguous


cdef inline void locate_array(StridedArray *place, cnp.ndarray array) noexcept:
    cdef int k
    place.data = cnp.PyArray_BYTES(array)
    place.ndim = cnp.PyArray_NDIM(array)
    place.contiguous = PyArray_IS_C_CONTIGUOUS(array)
    if not place.contiguous:
        for k in range(place.ndim):
            place.strides[k] = cnp.PyArray_STRIDE(array, k)


cdef inline void locate_data(StridedArray *place, const void *data, const Py_ssize_t *strides, int ndim,
                             const Py_ssize_t *shape, Py_ssize_t itemsize) noexcept nogil:
    """Fill `place` for an array at `data`. NULL strides mean C order; other strides are compared with C order."""
    cdef int k
    place.data = <char *>data
    place.ndim = ndim
    place.contiguous = True
    if strides == NULL:
        return
    for k in range(ndim - 1, -1, -1):
        place.strides[k] = strides[k]
        if strides[k] != itemsize and shape[k] != 1:
            place.contiguous = False
        itemsize *= shape[k]


cdef inline Py_ssize_t magnitude(Py_ssize_t stride) noexcept nogil:
    return -max(stride, -PY_SSIZE_T_MAX) if stride < 0 else stride  # the least integer has no opposite
