# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Reading and refusing what a caller hands in, before anything is allocated.

The order is the same everywhere: types, ranks, signs, overflow, then `out` or the size limit.

Reading may run code of the caller's: `__index__`, `__iter__`, `__array__`, the `__eq__` of a dtype's
titles. It may change the input meanwhile, and `out`. So first all of that is read, dtypes compared
included; then, in one go that runs nothing of anybody's, the plan is made and noted where the bytes of
input and `out` lie (`place_note`); what is written later goes by these notes, whatever becomes of the
arrays. A check that might run such code belongs into the first part: a comparison of objects,
isinstance (which asks `__class__`), a NumPy function that looks for `__array_function__`.
"""

import operator
import sys

import numpy

from tilecore._core import subclasses
from tilecore._core.counts import as_index, brief
from tilecore._core.dtypes import same_dtype
from tilecore._core.inputs import UNREADABLE, as_any_array, unreadable
from tilecore._core.refusals import Refusal

cimport numpy as cnp
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

from tilecore._core.memory cimport memory_limit
from tilecore._core.numpy_api cimport (
    PyArray_Check, PyArray_CheckExact, PyArray_ISWRITEABLE, PyArray_Type, PyArray_View, array_upon, integer_item,
    integer_scalar,
)
from tilecore._core.plan cimport MAX_RANK, PY_SSIZE_T_MAX, Place, place_note

cnp.import_array()


cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) noexcept
    PyObject *PyTuple_GET_ITEM(object tuple, Py_ssize_t i) noexcept
    Py_ssize_t PyTuple_GET_SIZE(object tuple) noexcept


# ---------------------------------------------------------------- integers

cdef bint read_one(item, Py_ssize_t least, Py_ssize_t *value) noexcept:
    """An int or a NumPy integer that is not below `least` and fits; nothing is run. False for all else."""
    cdef int overflow = 0
    cdef long long number
    if PyLong_CheckExact(item):
        number = PyLong_AsLongLongAndOverflow(item, &overflow)
    elif not integer_scalar(item, &number):
        return False
    value[0] = <Py_ssize_t>number
    return not overflow and least <= number <= PY_SSIZE_T_MAX


cdef int read_usual(given, Py_ssize_t least, Py_ssize_t *values) except -2:
    """The usual kinds of integers: one, a tuple, a list, an array; how many. -1 for everything else."""
    cdef Py_ssize_t i, n
    cdef long long number = 0
    cdef tuple items
    if type(given) is tuple:
        items = given
    elif type(given) is list:
        items = tuple(given)  # another thread may change a list meanwhile
    elif not PyArray_CheckExact(given):
        return 1 if read_one(given, least, values) else -1
    else:
        if cnp.PyArray_NDIM(given) != 1 or not cnp.PyArray_ISNOTSWAPPED(given):
            return -1
        n = cnp.PyArray_DIM(given, 0)
        if n > MAX_RANK:
            return -1
        for i in range(n):
            if not integer_item(given, i, &number) or not least <= number <= PY_SSIZE_T_MAX:
                return -1
            values[i] = <Py_ssize_t>number
        return <int>n
    n = PyTuple_GET_SIZE(items)
    if n > MAX_RANK:
        return -1
    for i in range(n):
        if not read_one(<object>PyTuple_GET_ITEM(items, i), least, &values[i]):
            return -1
    return <int>n


cdef int known_integers(value, unsigned long numbers) noexcept:
    """How many: of a tuple of ints, or of an array of a type whose number's bit is set; -1 for all else.

    No more than MAX_RANK, of any sign and, in a tuple, of any size. It runs nothing of the caller's.
    """
    cdef Py_ssize_t i, n
    cdef long long number = 0
    if type(value) is tuple:
        n = PyTuple_GET_SIZE(value)
        for i in range(min(n, MAX_RANK)):
            if not PyLong_CheckExact(<object>PyTuple_GET_ITEM(value, i)):
                return -1
    elif PyArray_CheckExact(value) and cnp.PyArray_NDIM(value) == 1 and cnp.PyArray_ISNOTSWAPPED(value):
        n = cnp.PyArray_TYPE(value)
        if n >= 32 or not numbers >> n & 1:
            return -1
        n = cnp.PyArray_DIM(value, 0)
        for i in range(min(n, MAX_RANK)):
            if not integer_item(value, i, &number):
                return -1
    else:
        return -1
    return <int>n if n <= MAX_RANK else -1


cdef tuple integers_of(value, unsigned long numbers):
    """As a tuple of ints; a list of them too. None for all else."""
    cdef Py_ssize_t values[MAX_RANK]
    cdef Py_ssize_t i
    cdef long long number = 0
    cdef int n
    if type(value) is list:
        value = tuple(value)
    n = known_integers(value, numbers)
    if n < 0:
        return None
    if type(value) is tuple:
        return <tuple>value
    for i in range(n):
        integer_item(value, i, &number)
        values[i] = <Py_ssize_t>number
    return as_tuple(values, n)


cdef as_integer(value):
    """operator.index, which NumPy's bools do not have, though Python's do."""
    if PyLong_CheckExact(value):
        return value
    return int(value) if type(value) is numpy.bool_ else operator.index(value)


cdef int raise_own(reason) except -1:
    """An error of a class of the caller's own is raised by an object, not by Python for want of a method."""
    if type(reason) is not TypeError:
        raise reason
    return 0


cdef list draw_integers(given, str what):
    """An integer, or what can be iterated: at most 65 items drawn, __len__ never asked."""
    cdef list integers = []
    items = None
    if type(given) is tuple or type(given) is list:
        items = tuple(given)
    elif PyArray_CheckExact(given) and cnp.PyArray_NDIM(given) == 1 and cnp.PyArray_ISINTEGER(given):
        items = given[:MAX_RANK + 1].tolist()
    else:
        try:
            integers.append(as_integer(given))
        except TypeError as reason:
            raise_own(reason)
            try:
                items = iter(given)
            except TypeError as reason:
                raise_own(reason)
                raise Refusal(TypeError, "must be an integer or an iterable of integers, "
                              f"got {type(given).__name__}", what) from None
    if items is not None:
        for item in items:
            try:
                integers.append(as_integer(item))
            except TypeError as reason:
                raise_own(reason)
                if isinstance(item, (list, tuple)) or getattr(item, "ndim", 0):
                    raise Refusal(ValueError, f"must be an integer or one-dimensional, but item {len(integers)} "
                                  f"is a {type(item).__name__}", what) from None
                raise Refusal(TypeError, f"must be integers, but item {len(integers)} is of type "
                              f"{type(item).__name__}", what) from None
            if len(integers) > MAX_RANK:
                raise Refusal(ValueError, f"must have at most {MAX_RANK} entries, NumPy's largest rank", what)
    return integers


cdef int read_integers(given, Py_ssize_t *values, str what, int input_ndim) except -1:
    """Fill `values` (room for MAX_RANK + 1) with integers, none negative, and return how many.

    Axes are named in the result's rank. `input_ndim` below 0: which axes the integers are for is not known yet.
    """
    cdef int n = read_usual(given, 0, values)
    if n >= 0:
        return n
    cdef list integers = draw_integers(given, what)
    cdef Py_ssize_t k, rank
    # Axes are counted in the output, whose rank is the larger of the two.
    rank = max(len(integers), input_ndim)
    for k, value in enumerate(integers, rank - len(integers)):
        if value < 0:
            raise Refusal(ValueError, f"must not be negative, got {brief(value)}", what, k if input_ndim >= 0 else None)
    for k, value in enumerate(integers):
        if value > PY_SSIZE_T_MAX:
            if input_ndim < 0:
                raise Refusal(ValueError, f"overflows: {brief(value)} is more than {PY_SSIZE_T_MAX}", what)
            raise Refusal(ValueError, f"axis {rank - len(integers) + k} overflows: {brief(value)} is "
                          f"more than {PY_SSIZE_T_MAX}")
        values[k] = value
    return <int>len(integers)


cdef int read_signed(given, Py_ssize_t *values, str what) except -1:
    """As read_integers, of either sign."""
    cdef int n = read_usual(given, -PY_SSIZE_T_MAX - 1, values)
    if n >= 0:
        return n
    cdef list integers = draw_integers(given, what)
    for k, value in enumerate(integers):
        if not -PY_SSIZE_T_MAX - 1 <= value <= PY_SSIZE_T_MAX:
            raise Refusal(ValueError, f"does not fit 64 bits, got {brief(value)}", what, k)
        values[k] = value
    return <int>len(integers)


cdef list read_axes(axis, int ndim):
    """The axes as NumPy's own functions take them: one, or what can be iterated; each once."""
    cdef list axes = []
    try:
        items = (as_index(axis),)
    except TypeError as reason:
        raise_own(reason)
        try:
            items = iter(axis)
        except TypeError as reason:
            raise_own(reason)
            raise Refusal(TypeError, f"must be an integer or a tuple of integers, got {brief(axis)}", "axis") from None
    for item in items:
        try:
            number = as_index(item)
        except TypeError as reason:
            raise_own(reason)
            raise Refusal(TypeError, f"must be integers, but item {len(axes)} is of type {type(item).__name__}",
                          "axis") from None
        if not -ndim <= number < ndim:
            raise Refusal(numpy.exceptions.AxisError, f"axis {brief(number)} is out of bounds for array of dimension "
                          f"{ndim}")
        number %= ndim
        if number in axes:
            raise Refusal(ValueError, f"repeated axis {number}")
        axes.append(number)
    return axes


cdef int spread(axis, Py_ssize_t *repeats, int nreps, int ndim) except -1:
    """Put each repeat in the place of its axis, 1 in the others; the new count, which is `ndim`."""
    cdef Py_ssize_t given[MAX_RANK + 1]
    cdef int k
    cdef list axes = read_axes(axis, ndim)
    if len(axes) != nreps:
        raise Refusal(ValueError, f"must have one entry for each of the {len(axes)} axes, got {nreps}", "repeats")
    for k in range(nreps):
        given[k] = repeats[k]
    for k in range(ndim):
        repeats[k] = 1
    for k in range(nreps):
        repeats[<int>axes[k]] = given[k]
    return ndim


cdef int read_threads(threads) except -1:
    """The count of threads asked for, or 0 for the default."""
    if threads is None:
        return 0
    try:
        count = threads if PyLong_CheckExact(threads) else as_index(threads)
    except TypeError as reason:
        raise_own(reason)
        raise Refusal(TypeError, f"must be an integer of at least 1 or None, got {brief(threads)} of type "
                      f"{type(threads).__name__}", "threads") from None
    if count < 1:
        raise Refusal(ValueError, f"must be at least 1, got {brief(count)}", "threads")
    return <int>min(count, 1 << 20)


# ---------------------------------------------------------------- inputs

# Of these classes NumPy knows itself how to read them: nothing is to be asked for.
cdef frozenset KNOWN = frozenset([float, int, bool, complex, str, bytes, list, tuple, *numpy.sctypeDict.values()])
cdef object memmap = numpy.memmap


cdef cnp.ndarray as_plain_array(a):
    """`a`, which is no plain ndarray, as one; None where its own type decides what tiling it gives."""
    if type(a) in KNOWN:
        try:
            return cnp.PyArray_FROM_O(a)
        except UNREADABLE as reason:
            refusal = unreadable(a, reason)
            if refusal is None:
                raise
            raise refusal from reason
    if PyArray_Check(a):
        return numpy.asarray(a) if issubclass(type(a), memmap) else None
    if hasattr(type(a), "__array_function__"):
        return None
    array = as_any_array(a)
    return array if PyArray_CheckExact(array) else None


cdef object masked_type = None  # found once


cdef bint is_masked(kind) except -1:
    """Whether arrays of this class are masked ones; as in subclasses.py, of an object whose class it is."""
    global masked_type
    if masked_type is None:
        if "numpy.ma.core" not in sys.modules:
            return False
        masked_type = subclasses.masked_type()
    return masked_type is not None and issubclass(kind, masked_type)


cdef cnp.ndarray plain_array(a):
    """`a` as a plain array, for what can only be done with one."""
    cdef cnp.ndarray array
    if PyArray_CheckExact(a):
        return a
    array = as_plain_array(a)
    if array is None:
        raise Refusal(TypeError, f"must be a plain array, got {type(a).__name__}", "input")
    return array


# ---------------------------------------------------------------- out

cdef cnp.ndarray read_other_out(given, cnp.ndarray array):
    """As read_out, where there is something to compare."""
    cdef cnp.dtype dtype = array.descr
    cdef cnp.ndarray out = read_target(given, dtype)
    if dtype is not array.descr:
        raise Refusal(ValueError, "or the input was given another dtype while the two were compared", "out")
    return out


cdef cnp.ndarray read_target(given, cnp.dtype dtype):
    """`given` as a plain array of this dtype. Comparing dtypes may run code of the caller's."""
    cdef cnp.ndarray out
    cdef cnp.dtype found
    if PyArray_CheckExact(given):
        out = given
    elif PyArray_Check(given) and not is_masked(type(given)):
        out = PyArray_View(given, NULL, &PyArray_Type)
    else:
        raise Refusal(TypeError, f"must be a NumPy array, got {type(given).__name__}", "out")
    found = out.descr
    if found is not dtype and not same_dtype(found, dtype):
        raise Refusal(TypeError, f"must have dtype {dtype}, got {found}", "out")
    if found is not out.descr:
        raise Refusal(ValueError, "or the input was given another dtype while the two were compared", "out")
    return out


cdef int check_out(cnp.ndarray out, const Py_ssize_t *shape, int ndim, Py_ssize_t itemsize,
                   const Place *source, const Py_ssize_t *source_shape, Place *place) except -1:
    """Note the place of `out` if it is exactly the result's, and apart from the source, which may be NULL.

    It runs nothing of the caller's.
    """
    if not has_shape(out, ndim, shape) or cnp.PyArray_ITEMSIZE(out) != itemsize:
        raise Refusal(ValueError, f"must have shape {as_tuple(shape, ndim)}, got {(<object>out).shape}", "out")
    if not PyArray_ISWRITEABLE(out):
        raise Refusal(ValueError, "must be writeable, got a read-only array", "out")
    place_note(place, out)
    if not place.contiguous and overlaps_itself(place, shape, itemsize):
        raise Refusal(ValueError, "must not have two elements that share a byte, got strides "
                      f"{as_tuple(place.strides, ndim)} for shape {as_tuple(shape, ndim)}", "out")
    if source != NULL and share_bytes(source, source_shape, place, shape, itemsize):
        raise Refusal(ValueError, "must not share memory with the input", "out")
    return 0


cdef int extents(const Place *place, const Py_ssize_t *shape, Py_ssize_t itemsize, size_t *low, size_t *high) noexcept:
    """The addresses of the first byte and of the one behind the last; 0 where there is none."""
    cdef Py_ssize_t span
    cdef int k
    low[0] = high[0] = <size_t>place.data
    if place.contiguous:
        for k in range(place.ndim):
            itemsize *= shape[k]
        high[0] += itemsize
        return itemsize > 0
    high[0] += itemsize
    for k in range(place.ndim):
        if shape[k] == 0:
            return 0
        span = (shape[k] - 1) * place.strides[k]
        if span < 0:
            low[0] += span
        else:
            high[0] += span
    return itemsize > 0


cdef inline bint share_bytes(const Place *a, const Py_ssize_t *a_shape, const Place *b, const Py_ssize_t *b_shape,
                             Py_ssize_t itemsize) except -1:
    cdef size_t a_low, a_high, b_low, b_high
    if not extents(a, a_shape, itemsize, &a_low, &a_high) or not extents(b, b_shape, itemsize, &b_low, &b_high):
        return False
    if a_high <= b_low or b_high <= a_low:
        return False
    return shares_memory(bytes_at(a, a_shape, itemsize), bytes_at(b, b_shape, itemsize))


cdef bint overlaps_itself(const Place *place, const Py_ssize_t *shape, Py_ssize_t itemsize) except -1:
    """Whether two elements share a byte; an array of fewer than two elements has no such."""
    cdef Py_ssize_t covered = itemsize, step
    cdef int order[MAX_RANK]
    cdef int i, k, n = 0
    for k in range(place.ndim):
        if shape[k] == 0:
            return False
        if shape[k] > 1:  # in the order of their steps
            i = n
            order[i] = k
            while i > 0 and abs(place.strides[order[i - 1]]) > abs(place.strides[order[i]]):
                order[i - 1], order[i] = order[i], order[i - 1]
                i -= 1
            n += 1
    for i in range(n):
        step = abs(place.strides[order[i]])
        if step < covered:
            break
        covered = step * (shape[order[i]] - 1) + covered
    else:
        return False  # each step goes past all that the shorter ones cover
    # Of two elements that overlap, let the index on axis k differ; they overlap as much with the first's
    # index there made 0. So it is enough to compare index 0 with all others, axis by axis.
    view = bytes_at(place, shape, itemsize)
    for i in range(n):
        k = order[i]
        index = (slice(None),) * k
        if shares_memory(view[(*index, slice(0, 1))], view[(*index, slice(1, None))]):
            return True
    return False


cdef bytes_at(const Place *place, const Py_ssize_t *shape, Py_ssize_t itemsize):
    """The place as an array of items without a meaning."""
    cdef const Py_ssize_t *strides = NULL if place.contiguous else place.strides
    return array_upon(None, place.ndim, shape, strides, numpy.dtype((numpy.void, itemsize)), place.data, 0)


cdef bint shares_memory(a, b) except -1:
    try:
        return numpy.shares_memory(a, b, max_work=100000)
    except numpy.exceptions.TooHardError:
        return True


# ---------------------------------------------------------------- what several modules need

cdef int check_size(Py_ssize_t nbytes) except -1:
    if nbytes > memory_limit():
        raise Refusal(MemoryError, f"the result would take {nbytes} bytes, more than the limit of "
                      f"{memory_limit()} bytes (tilecore.set_max_bytes)")
    return 0


cdef tuple as_tuple(const Py_ssize_t *values, int n):
    cdef tuple items = PyTuple_New(n)
    cdef object number
    cdef int k
    for k in range(n):
        number = values[k]
        Py_INCREF(number)  # PyTuple_SET_ITEM steals it
        PyTuple_SET_ITEM(items, k, number)
    return items
