"""Notes where the elements of an array lie, before other code may change it. See arguments.pyx."""

cimport numpy as cnp
from cpython.object cimport PyObject

from tilecore._core.numpy_api cimport MAX_RANK, PyArray_IS_C_CONTIGUOUS, descr_of


cdef struct Place:      # where the elements of an array lay when they were noted
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
    """Note an array at `data`. NULL `strides` mean C order; strides that equal it are noted as C order too."""
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


cdef struct Held:       # an array and its memory, as noted by code that holds references to the array and its dtype
    PyObject *array
    PyObject *dtype
    PyObject *base      # the owner of the memory; NULL if that is the array
    const char *data
    Py_ssize_t nbytes   # of its items, wherever they lie


cdef inline void held_note(Held *held, cnp.ndarray array, Py_ssize_t nbytes) noexcept:
    # Field by field: copying a struct that was just written would wait for the writes.
    held.array = <PyObject *>array
    held.dtype = descr_of(array)
    held.base = cnp.PyArray_BASE(array)
    held.data = cnp.PyArray_BYTES(array)
    held.nbytes = nbytes


cdef inline bint still_there(const Held *held) noexcept:
    """False if code that has run since may have freed the memory, or changed its meaning.

    `ndarray.resize` and `ndarray.__setstate__` free it, and may get the same address again. `dtype.__setstate__`
    changes the itemsize. Another shape does no harm.
    """
    cdef cnp.ndarray array = <cnp.ndarray>held.array
    return (cnp.PyArray_BYTES(array) == held.data and cnp.PyArray_NBYTES(array) == held.nbytes
            and descr_of(array) == held.dtype and cnp.PyArray_BASE(array) == held.base)
