"""Reads and checks arrays and `out` for the public functions, before anything is allocated.

Plain arrays are checked in this order: (1) threads; (2) repeats: type, rank, sign; (3) `out`: type, dtype; (4)
overflow; (5) a new result: the size limit; a given `out`: its shape and memory. Dialects check the element type and
repeats before all of these, regions their bounds after the first.

Reading may run the caller's code: `__index__`, `__iter__`, `__array__`, the `__eq__` of a dtype's titles. That code may
change the input and `out`. So all reading comes first. Then the result is allocated, which may collect garbage, and the
number of threads is read. The arrays are inspected last: their shape must still be the plan's, and `locate_array`
records their address and strides just before they are read and written.
"""

import numpy

from tilecore._core.request.callers_code import run
from tilecore._core.request.errors import RequestError, module_name, pass_on, shape_changed, short_repr, type_name
from tilecore._core.request.masked import is_masked

cimport numpy as cnp
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject

from tilecore._core.numpy_api cimport PyArray_Check, PyArray_CheckExact, PyArray_ISWRITEABLE, descr_of
from tilecore._core.request.integers cimport as_tuple
from tilecore._core.request.overlaps cimport overlaps_itself
from tilecore._core.strided_arrays cimport StridedArray, has_shape, locate_array

cnp.import_array()


# NumPy reads these classes without asking for a protocol.
cdef frozenset READ_DIRECTLY = frozenset(
    [float, int, bool, complex, str, bytes, list, tuple, *numpy.sctypeDict.values()])
cdef tuple UNREADABLE = (TypeError, ValueError, MemoryError, RuntimeError, BufferError)


cdef cnp.ndarray read_plain(a, argument="input"):
    """`a` as a plain array, for functions that accept nothing else."""
    cdef cnp.ndarray array = read_plain_or_none(a, argument)
    if array is None:
        why = "" if PyArray_Check(a) or is_foreign(a) else (
            ", which reads as a subclass, for instance a masked array; tilecore.tile and tile_region take x[:]")
        raise RequestError(TypeError, f"must be a plain array, got {type_name(a)}{why}", argument)
    return array


cdef cnp.ndarray read_plain_or_none(a, argument="input"):
    """`a` as a plain array, an ndarray or a memmap; None if its own type decides how it is tiled."""
    if PyArray_Check(a):
        return a if PyArray_CheckExact(a) or isinstance(a, numpy.memmap) else None
    if is_foreign(a):
        return None
    array = read_array(a, argument, True)  # by keyword it would be a call through Python
    return array if PyArray_CheckExact(array) else None


cdef bint is_foreign(value) except -1:
    """Whether it is another library's array: then that library decides what NumPy's function does."""
    return (not PyArray_Check(value) and type(value) not in READ_DIRECTLY
            and hasattr(type(value), "__array_function__"))


cpdef read_array(value, argument="input", bint subok=False):
    """`value`, of any kind, as a plain array; with `subok`, as a subclass if it provides one.

    The result shares the memory of `value` if that is an array. A masked array is an error, because its mask would be
    lost. NumPy would treat an object that has only DLPack's `__dlpack__` as a single Python object, so such objects go
    to `numpy.from_dlpack`.

    >>> read_array([[1, 2, 3]])
    array([[1, 2, 3]])
    >>> read_array([[1, 2], [3]])                               # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tilecore._core.request.errors.RequestError: (<class 'ValueError'>, 'of type list cannot be read as an array: ...
    """
    if PyArray_CheckExact(value):
        return value
    try:
        if isinstance(value, (list, tuple)) or type(value) in READ_DIRECTLY:
            array = cnp.PyArray_FROM_O(value)  # a subclass of ndarray, if a subclass of list provides one
            if PyArray_CheckExact(array):
                return array
        elif hasattr(type(value), "__dlpack__") and not numpy_takes(value):
            return numpy.from_dlpack(value)
        else:
            array = run(numpy.asanyarray, value)
    except UNREADABLE as reason:
        # The error for a list quotes all that NumPy says.
        raise input_error(value, reason, argument) from (None if type(value) in READ_DIRECTLY else reason)
    if subok and not isinstance(array, numpy.memmap):
        return array
    if is_masked(array):
        subject = "is" if array is value else f"of type {type_name(value)} gives"
        what = f"{subject} a masked array of shape {array.shape}, expected a plain array (tilecore.tile keeps masks)"
        raise RequestError(TypeError, what, argument)
    return numpy.asarray(array)


cdef bint numpy_takes(value) except -1:
    for name in ("__array__", "__array_interface__", "__array_struct__"):
        if hasattr(value, name):  # `any` would make the caller's StopIteration a RuntimeError
            return True
    try:
        memoryview(value).release()
    except TypeError as reason:
        pass_on(reason)
        return False
    return True


cdef input_error(value, reason, argument):
    """The RequestError for a `value` that raised `reason`, one of UNREADABLE, when it was read."""
    pass_on(reason)
    use = "; use tilecore.integrations.torch.tile"
    advice = str(reason)
    if "requires grad" in advice:  # PyTorch's own advice, detach().numpy(), loses the gradient
        advice = f"it requires grad{use}, or pass its detach()"
    elif "unsupported ScalarType" in advice:
        advice += use
    elif "device type tensor" in advice:  # PyTorch's own advice is cpu(), also for tensors without memory
        advice = advice.partition(". ")[0] + use
    text = f"of type {type_name(value)} cannot be read as an array: {advice}"
    # PyTorch's RuntimeError and DLPack's BufferError mean that the input is of the wrong kind.
    for kind in (ValueError, MemoryError):
        if isinstance(reason, kind):
            return RequestError(kind, text, argument)
    return RequestError(TypeError, text, argument)


cdef int check_dtype(cnp.ndarray array, cnp.dtype dtype, str argument) except -1:
    if descr_of(array) != <PyObject *>dtype and array.descr != dtype:
        raise RequestError(TypeError, f"must have dtype {short_repr(dtype)}, got {short_repr(array.descr)}", argument)
    return 0


cdef int check_rank_unchanged(cnp.ndarray array, axis, int ndim) except -1:
    """If repeats were read for `axis`, check that the rank is still `ndim`."""
    if axis is not None and cnp.PyArray_NDIM(array) != ndim:
        raise shape_changed()
    return 0


cdef int read_items(list arrays, cnp.dtype dtype, int ndim, const Py_ssize_t *shape) except -1:
    """Replace each item by a plain array, which must have this dtype and shape."""
    cdef cnp.ndarray array
    cdef Py_ssize_t i
    for i in range(PyList_GET_SIZE(arrays)):
        if not PyArray_CheckExact(arrays[i]):
            arrays[i] = read_plain(arrays[i], f"arrays[{i}]")
        array = arrays[i]
        if descr_of(array) != <PyObject *>dtype:
            check_dtype(array, dtype, f"arrays[{i}]")
        if not has_shape(array, ndim, shape):
            raise shape_error(array, ndim, shape, f"arrays[{i}]")
    return 0


cdef cnp.ndarray read_generic_out(value, cnp.dtype dtype):
    """`read_out` for an `out` of any kind."""
    if not PyArray_CheckExact(value) and (not PyArray_Check(value) or is_masked(value)):
        text = f"must be a NumPy array, got {type_name(value)}"
        if any(module_name(kind) == "torch" for kind in type(value).__mro__):
            text += "; pass out.numpy()"
        raise RequestError(TypeError, text, "out")
    check_dtype(value, dtype, "out")
    return value


cdef int check_out(cnp.ndarray out, const Py_ssize_t *shape, int ndim, Py_ssize_t itemsize,
                   StridedArray *place) except -1:
    """Check that `out` has this shape, is writeable, and has no overlapping elements. Fill `place`."""
    if not has_shape(out, ndim, shape):
        raise shape_error(out, ndim, shape, "out")
    if not PyArray_ISWRITEABLE(out):
        raise RequestError(ValueError, "must be writeable, got a read-only array", "out")
    locate_array(place, out)
    if not place.contiguous and overlaps_itself(place, shape, itemsize):
        raise RequestError(ValueError, "must not have overlapping elements, got strides "
                           f"{as_tuple(place.strides, ndim)} for shape {as_tuple(shape, ndim)}", "out")
    return 0


cdef shape_error(cnp.ndarray array, int ndim, const Py_ssize_t *shape, str argument):
    actual = as_tuple(<Py_ssize_t *>cnp.PyArray_DIMS(array), cnp.PyArray_NDIM(array))
    return RequestError(ValueError, f"must have shape {as_tuple(shape, ndim)}, got {actual}", argument)
