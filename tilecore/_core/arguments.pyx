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

import numpy

from tilecore._core.counts import as_index, brief
from tilecore._core.dtypes import same_dtype
from tilecore._core.inputs import UNREADABLE, as_any_array, unreadable
from tilecore._core.refusals import Refusal
from tilecore._core.subclasses import is_masked

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

cdef bint read_one(item, Py_ssize_t *value) noexcept:
    """An int or a NumPy integer that is not negative and fits; nothing is run. False for all else."""
    cdef int overflow = 0
    cdef long long number
    if PyLong_CheckExact(item):
        number = PyLong_AsLongLongAndOverflow(item, &overflow)
    elif not integer_scalar(item, &number):
        return False
    value[0] = <Py_ssize_t>number
    return not overflow and 0 <= number <= PY_SSIZE_T_MAX


cdef bint read_array(cnp.ndarray array, Py_ssize_t *values) noexcept:
    """As read_one, for a one-dimensional array of integers."""
    cdef Py_ssize_t i
    cdef long long number = 0
    if cnp.PyArray_NDIM(array) != 1 or cnp.PyArray_DIM(array, 0) > MAX_RANK or not cnp.PyArray_ISNOTSWAPPED(array):
        return False
    for i in range(cnp.PyArray_DIM(array, 0)):
        if not integer_item(array, i, &number) or not 0 <= number <= PY_SSIZE_T_MAX:
            return False
        values[i] = <Py_ssize_t>number
    return True


cdef int read_repeats(reps, Py_ssize_t *repeats, int input_ndim) except -1:
    """Fill `repeats` (room for MAX_RANK + 1), and return how many; axes are named in the result's rank.

    The usual kinds here; everything else, and every error, in read_integers.
    """
    cdef Py_ssize_t i, n
    cdef tuple items
    if type(reps) is tuple:
        items = reps
    elif type(reps) is list:
        items = tuple(reps)  # another thread may change a list meanwhile
    elif read_one(reps, repeats):
        return 1
    elif PyArray_CheckExact(reps) and read_array(reps, repeats):
        return <int>cnp.PyArray_DIM(reps, 0)
    else:
        return read_integers(reps, repeats, "repeats", input_ndim)
    n = PyTuple_GET_SIZE(items)
    if n <= MAX_RANK:
        i = 0
        while i < n and read_one(<object>PyTuple_GET_ITEM(items, i), &repeats[i]):
            i += 1
        if i == n:
            return <int>n
    return read_integers(items, repeats, "repeats", input_ndim)


cdef tuple integers_of(value, classes):
    """A tuple or list of ints, or an array of a type in `classes`, as a tuple of ints; of any sign.

    None for all else, and for more than MAX_RANK of them. It runs nothing of the caller's.
    """
    cdef Py_ssize_t i, n
    cdef long long numbers[MAX_RANK]
    cdef cnp.ndarray array
    cdef tuple items
    cdef object number
    if type(value) is tuple or type(value) is list:
        items = tuple(value)
        n = PyTuple_GET_SIZE(items)
        if n > MAX_RANK:
            return None
        for i in range(n):
            if not PyLong_CheckExact(<object>PyTuple_GET_ITEM(items, i)):
                return None
        return items
    if not PyArray_CheckExact(value):
        return None
    array = value
    n = cnp.PyArray_DIM(array, 0) if cnp.PyArray_NDIM(array) == 1 else MAX_RANK + 1
    if n > MAX_RANK or not cnp.PyArray_ISNOTSWAPPED(array) or <object>array.descr.typeobj not in classes:
        return None
    for i in range(n):
        if not integer_item(array, i, &numbers[i]):
            return None
        if numbers[i] < 0 and cnp.PyArray_ISUNSIGNED(array):
            return None  # above the range of long long
    items = PyTuple_New(n)
    for i in range(n):
        number = numbers[i]
        Py_INCREF(number)  # PyTuple_SET_ITEM steals it
        PyTuple_SET_ITEM(items, i, number)
    return items


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
    """Of draw_integers, none negative; axes are named in the result's rank. `input_ndim` below 0: which axes
    the integers are for is not known yet."""
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
    """Of draw_integers, of either sign."""
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
    """`a` as a plain ndarray, or None where its own type decides what tiling it gives."""
    if type(a) in KNOWN:
        try:
            return cnp.PyArray_FROM_O(a)
        except UNREADABLE as reason:
            refusal = unreadable(a, reason)
            if refusal is None:
                raise
            raise refusal from reason
    if issubclass(type(a), memmap):
        return numpy.asarray(a)
    if hasattr(type(a), "__array_function__") and not PyArray_CheckExact(a):
        return None
    array = as_any_array(a)
    return array if PyArray_CheckExact(array) else None


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

cdef cnp.ndarray read_out(given, cnp.ndarray array):
    """`given` as a plain array of the dtype of `array`; the rest of its checks are check_out's."""
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
    elif PyArray_Check(given) and not is_masked(given):
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
    cdef int k
    cdef bint fits = cnp.PyArray_NDIM(out) == ndim and cnp.PyArray_ITEMSIZE(out) == itemsize
    for k in range(ndim):
        fits = fits and cnp.PyArray_DIM(out, k) == shape[k]
    if not fits:
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
    cdef Py_ssize_t span, packed = itemsize
    cdef int k
    low[0] = high[0] = <size_t>place.data
    high[0] += itemsize
    for k in range(place.ndim - 1, -1, -1):
        if shape[k] == 0:
            return 0
        span = (shape[k] - 1) * (packed if place.contiguous else place.strides[k])
        packed *= shape[k]
        if span < 0:
            low[0] += span
        else:
            high[0] += span
    return low[0] < high[0]


cdef bint share_bytes(const Place *a, const Py_ssize_t *a_shape, const Place *b, const Py_ssize_t *b_shape,
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
    cdef const Py_ssize_t *strides = NULL if place.contiguous else &place.strides[0]
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
    return tuple([values[k] for k in range(n)])
