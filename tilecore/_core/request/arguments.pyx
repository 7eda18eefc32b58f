"""Reads and checks arguments, before anything is allocated.

The order of the checks of repeats is the same everywhere: types, ranks, signs, overflow; then come `out` or the size
limit.

Reading may run the caller's code: `__index__`, `__iter__`, `__array__`, the `__eq__` of a dtype's titles. That code
may change the input and `out`. So all reading comes first. Then the result is allocated, which may collect garbage,
and the number of threads is read. The arrays are inspected last: their shape must still be the plan's, and
`locate_array` records their address and strides just before they are read and written.
"""

import numpy

from tilecore._core.request.inputs import UNREADABLE, as_any_array, input_error, out_error
from tilecore._core.request.errors import RequestError, shape_changed
from tilecore._core.request.subclasses import is_masked

cimport numpy as cnp
from cpython.list cimport PyList_GET_SIZE

from tilecore._core.numpy_api cimport PyArray_Check, PyArray_CheckExact, PyArray_ISWRITEABLE
from tilecore._core.request.integers cimport as_tuple
from tilecore._core.request.overlaps cimport overlaps_itself
from tilecore._core.strided_arrays cimport StridedArray, has_shape, locate_array

cnp.import_array()


# ---------------------------------------------------------------- inputs

# NumPy reads these classes directly: no need to look for a protocol.
KNOWN = frozenset([float, int, bool, complex, str, bytes, list, tuple, *numpy.sctypeDict.values()])


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
    """`a` as a plain array, for functions that accept nothing else."""
    cdef cnp.ndarray array = as_plain_array(a)
    if array is None:
        raise RequestError(TypeError, f"must be a plain array, got {type(a).__name__}", "input")
    return array


cdef int check_rank(cnp.ndarray array, axis, int ndim) except -1:
    """If repeats were read for `axis`, check that the rank is still `ndim`."""
    if axis is not None and cnp.PyArray_NDIM(array) != ndim:
        raise shape_changed()
    return 0


cdef int read_items(list arrays, cnp.dtype dtype, int ndim, const Py_ssize_t *shape) except -1:
    """Replace each item by a plain array, which must have this dtype and shape."""
    cdef cnp.ndarray array
    cdef cnp.dtype actual
    cdef Py_ssize_t i
    for i in range(PyList_GET_SIZE(arrays)):
        if PyArray_CheckExact(arrays[i]):
            array = arrays[i]
        else:
            try:
                array = plain_array(arrays[i])
            except RequestError as error:
                if not isinstance(error, RequestError):  # see format_error
                    raise
                hint = "; of a dataset of (image, label), pass the images alone" if isinstance(arrays[i], tuple) else ""
                raise RequestError(error.kind, error.what + hint, f"arrays[{i}]") from error.__cause__
            arrays[i] = array
        actual = array.descr
        if actual is not dtype and actual != dtype:
            raise RequestError(TypeError, f"must have dtype {dtype}, got {actual}", f"arrays[{i}]")
        if not has_shape(array, ndim, shape):
            raise shape_error(array, ndim, shape, "must have", f"arrays[{i}]")
    return 0


# ---------------------------------------------------------------- out

cdef cnp.ndarray read_target(value, cnp.dtype dtype):
    """Return the `out` of a call, which must have this dtype. Comparing dtypes may run code: the `__eq__` of titles."""
    cdef cnp.ndarray out
    cdef cnp.dtype actual
    if not PyArray_CheckExact(value) and (not PyArray_Check(value) or is_masked(value)):
        raise out_error(value)
    out = value
    actual = out.descr
    if actual is not dtype and actual != dtype:
        raise RequestError(TypeError, f"must have dtype {dtype}, got {actual}", "out")
    return out


cdef int check_out(cnp.ndarray out, const Py_ssize_t *shape, int ndim, Py_ssize_t itemsize,
                   StridedArray *place) except -1:
    """Check that `out` has this shape, is writeable, and has no overlapping elements. Fill `place`."""
    if not has_shape(out, ndim, shape):
        raise shape_error(out, ndim, shape, "must have", "out")
    if not PyArray_ISWRITEABLE(out):
        raise RequestError(ValueError, "must be writeable, got a read-only array", "out")
    locate_array(place, out)
    if not place.contiguous and overlaps_itself(place, shape, itemsize):
        raise RequestError(ValueError, "must not have overlapping elements, got strides "
                           f"{as_tuple(place.strides, ndim)} for shape {as_tuple(shape, ndim)}", "out")
    return 0


cdef shape_error(cnp.ndarray array, int ndim, const Py_ssize_t *shape, str wanted, argument):
    """The RequestError for an array that does not have this shape."""
    actual = as_tuple(<Py_ssize_t *>cnp.PyArray_DIMS(array), cnp.PyArray_NDIM(array))
    return RequestError(ValueError, f"{wanted} shape {as_tuple(shape, ndim)}, got {actual}", argument)
