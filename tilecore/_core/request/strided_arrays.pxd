"""The address and the strides of an array, for code without Python objects. See arguments.pyx."""

cimport numpy as cnp

from tilecore._core.numpy_api cimport MAX_RANK, PyArray_IS_C_CONTIGUOUS


cdef struct StridedArray:
    char *data
    int ndim
    bint contiguous     # in C order
    Py_ssize_t strides[MAX_RANK]    # set if not contiguous


cdef inline void ref_array(StridedArray *ref, cnp.ndarray array) noexcept:
    cdef int k
    ref.data = cnp.PyArray_BYTES(array)
    ref.ndim = cnp.PyArray_NDIM(array)
    ref.contiguous = PyArray_IS_C_CONTIGUOUS(array)
    if not ref.contiguous:
        for k in range(ref.ndim):
            ref.strides[k] = cnp.PyArray_STRIDE(array, k)


cdef inline void ref_at(StridedArray *ref, const void *data, const Py_ssize_t *strides, int ndim,
                        const Py_ssize_t *shape, Py_ssize_t itemsize) noexcept nogil:
    """Fill `ref` for an array at `data`. NULL strides mean C order; other strides are compared with C order."""
    cdef int k
    ref.data = <char *>data
    ref.ndim = ndim
    ref.contiguous = True
    if strides == NULL:
        return
    for k in range(ndim - 1, -1, -1):
        ref.strides[k] = strides[k]
        if strides[k] != itemsize and shape[k] != 1:
            ref.contiguous = False
        itemsize *= shape[k]


cdef inline const Py_ssize_t *ref_strides(const StridedArray *ref) noexcept nogil:
    """The strides, or NULL for C order."""
    if ref.contiguous:
        return NULL
    return &ref.strides[0]
