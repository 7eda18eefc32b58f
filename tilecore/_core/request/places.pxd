"""Where the elements of an array lie. See arguments.pyx."""

cimport numpy as cnp

from tilecore._core.numpy_api cimport MAX_RANK, PyArray_IS_C_CONTIGUOUS


cdef struct Place:      # where the elements of an array lie
    char *data
    int ndim
    bint contiguous     # in C order
    Py_ssize_t strides[MAX_RANK]    # set if not contiguous


cdef inline void place_note(Place *place, cnp.ndarray array) noexcept:
    cdef int k
    place.data = cnp.PyArray_BYTES(array)
    place.ndim = cnp.PyArray_NDIM(array)
    place.contiguous = PyArray_IS_C_CONTIGUOUS(array)
    if not place.contiguous:
        for k in range(place.ndim):
            place.strides[k] = cnp.PyArray_STRIDE(array, k)


cdef inline void place_at(Place *place, const void *data, const Py_ssize_t *strides, int ndim, const Py_ssize_t *shape,
                          Py_ssize_t itemsize) noexcept nogil:
    """Note an array at `data`, from its strides. NULL means C order; strides of C order are recognized."""
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


cdef inline const Py_ssize_t *place_strides(const Place *place) noexcept nogil:
    """Its strides, or NULL for C order."""
    if place.contiguous:
        return NULL
    return &place.strides[0]
