"""Reads and checks arguments, before anything is allocated.

The order is the same everywhere: types, ranks, signs, overflow, then `out` or the size limit.

Reading may run the caller's code: `__index__`, `__iter__`, `__array__`, the `__eq__` of a dtype's titles. That code
may change the input and `out`. So everything that may run it comes first, then memory for the result, which may collect
garbage, and the number of threads. Arrays are looked at last: their shape must still be the plan's, and where their
elements lie is noted (`ref_array`) just before they are read and written.
"""

import numpy

from tilecore._core.request.inputs import UNREADABLE, as_any_array, input_error, out_error
from tilecore._core.request.errors import RequestError
from tilecore._core.request.subclasses import is_masked

cimport numpy as cnp

from tilecore._core.numpy_api cimport PyArray_Check, PyArray_CheckExact, PyArray_ISWRITEABLE, array_upon
from tilecore._core.request.integers cimport as_tuple
from tilecore._core.request.array_refs cimport ArrayRef, ref_array, ref_strides

cnp.import_array()


# ---------------------------------------------------------------- inputs

# NumPy reads these classes directly: no need to look for a protocol.
cdef frozenset KNOWN = frozenset([float, int, bool, complex, str, bytes, list, tuple, *numpy.sctypeDict.values()])


cdef cnp.ndarray convert_to_plain(a):
    """`as_plain_array` for an object that is not exactly an ndarray."""
    if PyArray_Check(a):
        return a if isinstance(a, numpy.memmap) else None
    if type(a) in KNOWN:
        try:
            return cnp.PyArray_FROM_O(a)
        except UNREADABLE as reason:
            raise input_error(a, reason) from reason
    if hasattr(type(a), "__array_function__"):
        return None
    array = as_any_array(a)
    return array if PyArray_CheckExact(array) else None


cdef cnp.ndarray plain_array(a):
    """`a` as a plain array, for functions that take no other."""
    cdef cnp.ndarray array = as_plain_array(a)
    if array is None:
        raise RequestError(TypeError, f"must be a plain array, got {type(a).__name__}", "input")
    return array


# ---------------------------------------------------------------- out

cdef cnp.ndarray read_target(given, cnp.dtype dtype):
    """`given` as a plain array of this dtype. Comparing dtypes may run code: the `__eq__` of titles."""
    cdef cnp.ndarray out
    cdef cnp.dtype found
    if not PyArray_CheckExact(given) and (not PyArray_Check(given) or is_masked(given)):
        raise out_error(given)
    out = given
    found = out.descr
    if not (found is dtype or found == dtype or is_blank(dtype)
            and found.type_num == dtype.type_num and found.itemsize == blank_itemsize(dtype)):
        raise RequestError(TypeError, f"must have dtype {dtype}, got {found}", "out")
    return out


cdef bint is_blank(cnp.dtype dtype) noexcept:
    """Whether its items are strings of no characters. In a new array, NumPy gives each room for one character."""
    return dtype.itemsize == 0 and dtype.kind in b"SU"


cdef Py_ssize_t blank_itemsize(cnp.dtype dtype) except -1:
    """The room for each string in a new array of `dtype`, which is blank."""
    return numpy.dtype(((<object>dtype).type, 1)).itemsize


cdef int check_out(cnp.ndarray out, const Py_ssize_t *shape, int ndim, Py_ssize_t itemsize, ArrayRef *ref) except -1:
    """Check the shape of `out`, and that its elements lie apart. Describe it in `ref`."""
    if not has_shape(out, ndim, shape):
        raise shape_error(out, ndim, shape, "must have", "out")
    if not PyArray_ISWRITEABLE(out):
        raise RequestError(ValueError, "must be writeable, got a read-only array", "out")
    ref_array(ref, out)
    if not ref.contiguous and overlaps_itself(ref, shape, itemsize):
        raise RequestError(ValueError, "must not have overlapping elements, got strides "
                           f"{as_tuple(ref.strides, ndim)} for shape {as_tuple(shape, ndim)}", "out")
    return 0


cdef shape_error(cnp.ndarray array, int ndim, const Py_ssize_t *shape, str wanted, argument):
    """The RequestError for an array that does not have this shape."""
    found = as_tuple(<Py_ssize_t *>cnp.PyArray_DIMS(array), cnp.PyArray_NDIM(array))
    return RequestError(ValueError, f"{wanted} shape {as_tuple(shape, ndim)}, got {found}", argument)


cdef int extents(const ArrayRef *ref, const Py_ssize_t *shape, Py_ssize_t itemsize, size_t *low,
                 size_t *high) noexcept:
    """Set the address of the first byte and that after the last byte. Return 0 if there are no bytes."""
    cdef Py_ssize_t span
    cdef int k
    low[0] = high[0] = <size_t>ref.data
    if ref.contiguous:
        for k in range(ref.ndim):
            itemsize *= shape[k]
        high[0] += itemsize
        return itemsize > 0
    high[0] += itemsize
    for k in range(ref.ndim):
        if shape[k] == 0:
            return 0
        span = (shape[k] - 1) * ref.strides[k]
        if span < 0:
            low[0] += span
        else:
            high[0] += span
    return itemsize > 0


cdef bint share_bytes(const ArrayRef *a, const Py_ssize_t *a_shape, const ArrayRef *b, const Py_ssize_t *b_shape,
                      Py_ssize_t itemsize) except -1:
    """Whether the two share a byte."""
    cdef size_t a_low, a_high, b_low, b_high
    if not extents(a, a_shape, itemsize, &a_low, &a_high) or not extents(b, b_shape, itemsize, &b_low, &b_high):
        return False
    if a_high <= b_low or b_high <= a_low:
        return False
    return shares_memory(bytes_at(a, a_shape, itemsize), bytes_at(b, b_shape, itemsize))


cdef bint overlaps_itself(const ArrayRef *ref, const Py_ssize_t *shape, Py_ssize_t itemsize) except -1:
    """Whether two elements share a byte."""
    cdef Py_ssize_t covered, step
    cdef int i, k
    for k in range(ref.ndim):
        if shape[k] == 0:
            return False
    for k in range(ref.ndim):
        covered, step = itemsize, abs(ref.strides[k])
        for i in range(ref.ndim):
            if abs(ref.strides[i]) < step or abs(ref.strides[i]) == step and i < k:
                covered += abs(ref.strides[i]) * (shape[i] - 1)
        if shape[k] > 1 and step < covered:
            break
    else:
        return False  # each step is longer than all that the shorter steps cover
    # If two overlapping elements differ in their index on axis k, then moving both along k, until the smaller index is
    # 0, keeps the overlap. So it is enough to compare index 0 with all others, axis by axis.
    view = bytes_at(ref, shape, itemsize)
    for k in range(ref.ndim):
        index = (slice(None),) * k
        if shares_memory(view[(*index, slice(0, 1))], view[(*index, slice(1, None))]):
            return True
    return False


cdef bytes_at(const ArrayRef *ref, const Py_ssize_t *shape, Py_ssize_t itemsize):
    """The elements as an array of plain bytes."""
    return array_upon(None, ref.ndim, shape, ref_strides(ref), numpy.dtype((numpy.void, itemsize)), ref.data, 0)


cdef bint shares_memory(a, b) except -1:
    try:
        return numpy.shares_memory(a, b, max_work=100000)
    except numpy.exceptions.TooHardError:
        return True
