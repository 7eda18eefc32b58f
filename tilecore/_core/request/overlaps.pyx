"""Whether elements of an array share bytes with each other, or with another array: those of an `out` must not.

Addresses and strides decide for most arrays, and NumPy decides for the rest.
"""

import numpy

cimport numpy as cnp

from tilecore._core.numpy_api cimport PY_SSIZE_T_MAX, array_upon
from tilecore._core.strided_arrays cimport StridedArray, magnitude

cnp.import_array()


cdef bint share_bytes(const StridedArray *a, const Py_ssize_t *a_shape, const StridedArray *b,
                      const Py_ssize_t *b_shape, Py_ssize_t itemsize) except -1:
    return may_share(a, a_shape, b, b_shape, itemsize) and shares_memory(bytes_at(a, a_shape, itemsize),
                                                                         bytes_at(b, b_shape, itemsize))


cdef bint overlaps_itself(const StridedArray *place, const Py_ssize_t *shape, Py_ssize_t itemsize) except -1:
    cdef int k
    if not may_overlap(place, shape, itemsize):
        return False
    # If two overlapping elements differ in their index on axis k, shift both along k until one of them has index 0:
    # they still overlap. So it is enough to compare index 0 with all others, axis by axis.
    view = bytes_at(place, shape, itemsize)
    for k in range(place.ndim):
        index = (slice(None),) * k
        if shares_memory(view[(*index, slice(0, 1))], view[(*index, slice(1, None))]):
            return True
    return False


cdef bint may_share(const StridedArray *a, const Py_ssize_t *a_shape, const StridedArray *b,
                    const Py_ssize_t *b_shape, Py_ssize_t itemsize) noexcept nogil:
    """Whether the arrays may share a byte. Ranges that are disjoint, also modulo a stride (two columns), share none."""
    cdef Py_ssize_t a_low, a_high, b_low, b_high, distance, modulus = PY_SSIZE_T_MAX
    cdef int k, a_steps = 0 if a.contiguous else a.ndim, b_steps = 0 if b.contiguous else b.ndim
    for k in range(-1, a_steps + b_steps):
        if k >= 0:
            modulus = magnitude(a.strides[k] if k < a_steps else b.strides[k - a_steps])
        if modulus == 0:
            continue
        if (not find_ends(a, a_shape, itemsize, modulus, &a_low, &a_high)
                or not find_ends(b, b_shape, itemsize, modulus, &b_low, &b_high)):
            return False
        distance = (b_low - a_low) % modulus
        distance += modulus if distance < 0 else 0
        if a_high - a_low <= distance <= modulus - (b_high - b_low):
            return False
    return True


cdef bint find_ends(const StridedArray *place, const Py_ssize_t *shape, Py_ssize_t itemsize, Py_ssize_t modulus,
                    Py_ssize_t *low, Py_ssize_t *high) noexcept nogil:
    """Find the lowest and the highest byte, without axes whose stride is a multiple of `modulus`; False: no bytes."""
    cdef Py_ssize_t reach
    cdef int k
    low[0] = high[0] = <Py_ssize_t>place.data
    for k in range(place.ndim):
        if shape[k] == 0:
            return False
        if place.contiguous:
            itemsize *= shape[k]
        elif place.strides[k] % modulus:
            reach = (shape[k] - 1) * place.strides[k]
            low[0] += min(reach, 0)
            high[0] += max(reach, 0)
    high[0] += itemsize
    return itemsize > 0


cdef bint may_overlap(const StridedArray *place, const Py_ssize_t *shape, Py_ssize_t itemsize) noexcept nogil:
    """Whether an axis may step by fewer bytes than the axes with shorter steps cover together."""
    cdef Py_ssize_t covered, step
    cdef bint found = False
    cdef int i, k
    for k in range(place.ndim):
        if shape[k] == 0:
            return False
        covered, step = itemsize, magnitude(place.strides[k])
        for i in range(place.ndim):
            if i != k and magnitude(place.strides[i]) <= step:
                covered += magnitude(place.strides[i]) * (shape[i] - 1)
        found |= shape[k] > 1 and step < covered
    return found


cdef bytes_at(const StridedArray *place, const Py_ssize_t *shape, Py_ssize_t itemsize):
    """A view of the elements, with items of plain bytes."""
    dtype = numpy.dtype(f"V{itemsize}")  # numpy.dtype((numpy.void, itemsize)) runs Python code
    if place.contiguous:
        return array_upon(None, place.ndim, shape, NULL, dtype, place.data, 0)
    return array_upon(None, place.ndim, shape, place.strides, dtype, place.data, 0)


# NumPy's dispatcher is left out: it is Python code, where a signal handler could raise.
cdef object SHARES_MEMORY = getattr(numpy.shares_memory, "_implementation", numpy.shares_memory)


cdef bint shares_memory(a, b) except -1:
    try:
        return SHARES_MEMORY(a, b, max_work=100000)
    except numpy.exceptions.TooHardError:
        return True
