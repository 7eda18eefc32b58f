# cython: binding=False
"""Reads integers for the public functions: repeats, bounds, axes, shapes, the number of threads, bytes.

Ints, NumPy's integers, and tuples, lists and arrays of them are read without running the caller's code. Other kinds
and error messages may run it (`__index__`, `__iter__`): arguments.pyx explains the consequences.
"""

import os
import re
import sys
from operator import index

import numpy

from tilecore._core.request.errors import RequestError, pass_on, short_repr, type_name

cimport numpy as cnp
from cpython.long cimport PyLong_CheckExact
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM

from tilecore._core.config cimport TILECORE_MAX_THREADS
from tilecore._core.numpy_api cimport (
    MAX_RANK, PY_SSIZE_T_MAX, PY_SSIZE_T_MIN, PyArray_CheckExact, integer_scalar, short_int,
)

cnp.import_array()


LARGEST_RANK = MAX_RANK  # for Python modules

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) noexcept


cdef bint read_one(item, Py_ssize_t least, Py_ssize_t *value) noexcept:
    """Read an int or a NumPy integer from `least` to PY_SSIZE_T_MAX; return False for anything else."""
    cdef int overflow
    cdef long long number
    if short_int(item, &number):
        pass
    elif PyLong_CheckExact(item):
        number = PyLong_AsLongLongAndOverflow(item, &overflow)
        if overflow:
            return False
    elif not integer_scalar(item, &number):
        return False
    value[0] = <Py_ssize_t>number
    return least <= number <= PY_SSIZE_T_MAX


cdef int read_fast(given, Py_ssize_t least, Py_ssize_t *values) except -2:
    """Read an integer, or a tuple, list or array of integers; return how many. Return -1 for anything else."""
    cdef Py_ssize_t i, n
    cdef bint direct
    cdef tuple items
    if type(given) is tuple:
        items = given
    elif type(given) is list:
        items = tuple(given)  # another thread may change the list
    elif not PyArray_CheckExact(given):
        return 1 if read_one(given, least, values) else -1
    elif cnp.PyArray_NDIM(given) != 1 or not cnp.PyArray_ISINTEGER(given) or cnp.PyArray_DIM(given, 0) > MAX_RANK:
        return -1
    else:
        direct = cnp.PyArray_TYPE(given) == cnp.NPY_INTP and cnp.PyArray_ISBEHAVED_RO(given)  # most arrays of repeats
        n = cnp.PyArray_DIM(given, 0)
        for i in range(n):
            if direct:
                values[i] = (<Py_ssize_t *>cnp.PyArray_GETPTR1(given, i))[0]
            elif not read_one(cnp.PyArray_GETITEM(given, cnp.PyArray_GETPTR1(given, i)), least, &values[i]):
                return -1
            if values[i] < least:
                return -1
        return <int>n
    n = PyTuple_GET_SIZE(items)
    if n > MAX_RANK:
        return -1
    for i in range(n):
        if not read_one(<object>PyTuple_GET_ITEM(items, i), least, &values[i]):
            return -1
    return <int>n


cdef read_index(value):
    """`operator.index`, but a bool of Python or NumPy is a TypeError."""
    if isinstance(value, (bool, numpy.bool_)):
        raise TypeError("a bool is not an integer")
    # Compiled: no signal handler can raise here, unless `__index__` is Python code.
    return index(value)


def read_count(name, n, expected="an integer"):
    """`n` as an int of any size. A TypeError begins with `name`, and hides Python's own, which adds nothing."""
    try:
        return read_index(n)
    except TypeError as reason:
        pass_on(reason)
        raise TypeError(f"{name}: expected {expected}, got {short_repr(n)} of type {type_name(n)}") from None


cdef object BYTES = re.compile(r"\s*(\d{1,99})\s*(?:([KMGT])(i?))?(B?)\s*", re.IGNORECASE | re.ASCII)


def read_bytes(name, n):
    """Bytes, from an integer or a text: '4GB' is decimal, '4G' and '4GiB' are binary. Errors begin with `name`."""
    if isinstance(n, str):
        match = BYTES.fullmatch(n)
        if not match:
            raise ValueError(f"{name}: expected a number of bytes such as 1048576, 256M or 4G, got {short_repr(n)}")
        unit = 1000 if match[4] and not match[3] else 1024
        nbytes = int(match[1]) * unit ** " KMGT".index((match[2] or " ").upper())
        return min(nbytes, sys.maxsize)  # a limit above all addresses limits nothing
    n = read_count(name, n, "an integer, a text such as '4G', or None")
    if not 0 <= n <= sys.maxsize:
        raise ValueError(f"{name}: expected 0 to {sys.maxsize} bytes, got {short_repr(n)}")
    return n


def bytes_from_environment(name, default):
    """The value of the environment variable `name`, or the default if it is not set, or empty."""
    text = os.environ.get(name)
    return read_bytes(f"environment variable {name}", text) if text else default


def read_item(item, argument, position, hint=""):
    """An item of a list of integers, as an int. A bool is an error: a list of bools is a bool tensor."""
    try:
        return read_index(item)
    except TypeError as reason:
        pass_on(reason)
        kind = type_name(item)
        if isinstance(item, (list, tuple)) or getattr(item, "ndim", False):
            raise RequestError(ValueError, f"must be one-dimensional, but item {position} is of type {kind}{hint}",
                               argument) from None
        hint = hint or float_hint(item, argument)
        raise RequestError(TypeError, f"must be integers, but item {position} is of type {kind}{hint}",
                           argument) from None


cdef str float_hint(value, argument):
    """A hint for float repeats such as n / len(x); else an empty text."""
    if argument != "repeats" or not isinstance(value, (float, numpy.floating)):
        return ""
    return " (use // for a number of copies, tilecore.tile_region for a length)"


cdef tuple NO_SEQUENCES = (str, bytes, bytearray, set, frozenset)  # text, or without an order


cpdef list draw_integers(given, str argument):
    """A list of the integers in an integer or an iterable. Draws at most 65 items, and never calls __len__."""
    cdef list integers = []
    cdef str hint = "; pass the array's shape" if argument == "shape" and hasattr(type(given), "shape") else ""
    if type(given) is tuple or type(given) is list:
        items = tuple(given)
    elif PyArray_CheckExact(given) and cnp.PyArray_NDIM(given) == 1 and cnp.PyArray_ISINTEGER(given):
        items = given[:MAX_RANK + 1].tolist()
    else:
        try:
            return [read_index(given)]
        except TypeError as no_integer:
            try:
                if isinstance(given, NO_SEQUENCES):
                    raise TypeError("text and sets are not read as sequences")
                items = iter(given)
            except TypeError as reason:
                pass_on(no_integer)
                pass_on(reason)
                raise RequestError(TypeError, "must be an integer or a sequence of integers, "
                                   f"got {type_name(given)}{hint or float_hint(given, argument)}",
                                   argument) from None
    for item in items:
        integers.append(item if PyLong_CheckExact(item) else read_item(item, argument, len(integers), hint))
        check_length(len(integers), argument)
    return integers


cpdef int check_length(long long length, str argument) except -1:  # an unknown dimension may be as large as int64
    if length > MAX_RANK:
        raise RequestError(ValueError, f"must have at most {MAX_RANK} entries, NumPy's largest rank", argument)
    return 0


cdef int read_generic(given, Py_ssize_t least, Py_ssize_t *values, str argument, int rank) except -1:
    """`read_integers` for integers of any kind."""
    cdef list integers = draw_integers(given, argument)
    cdef Py_ssize_t k, first = max(rank - len(integers), 0)
    for k, value in enumerate(integers):
        if value < 0 == least:
            raise RequestError(ValueError, f"must not be negative, got {short_repr(value)}", argument,
                               first + k if rank >= 0 else None)
    for k, value in enumerate(integers):
        if not PY_SSIZE_T_MIN <= value <= PY_SSIZE_T_MAX:
            if argument == "axis":
                raise RequestError(numpy.exceptions.AxisError,
                                   f"axis {short_repr(value)} is out of bounds for every array")
            raise RequestError(ValueError, f"does not fit {8 * sizeof(Py_ssize_t)} bits, got {short_repr(value)}",
                               argument, first + k if rank >= 0 else None)
        values[k] = value
    return <int>len(integers)


cdef int spread_repeats(axis, Py_ssize_t *repeats, int nreps, int ndim) except -1:
    """Move each repeat to the index of its axis, and set all others to 1; return the new count, `ndim`."""
    cdef Py_ssize_t axes[MAX_RANK], placed[MAX_RANK]
    cdef int k, n = read_integers(axis, PY_SSIZE_T_MIN, axes, "axis", -1)
    for k in range(ndim):
        placed[k] = -1
    for k in range(n):
        if not -ndim <= axes[k] < ndim:
            raise RequestError(numpy.exceptions.AxisError,
                               f"axis {axes[k]} is out of bounds for array of dimension {ndim}")
        if axes[k] < 0:
            axes[k] += ndim
        if placed[axes[k]] >= 0:
            raise RequestError(ValueError, f"must not contain axis {axes[k]} twice", "axis")
        placed[axes[k]] = repeats[k] if k < nreps else 1
    if n != nreps:
        raise RequestError(ValueError, f"must have as many entries as axis, {n}, got {nreps}", "repeats")
    for k in range(ndim):
        repeats[k] = placed[k] if placed[k] >= 0 else 1
    return ndim


cdef int read_bounds(Bounds *bounds, start, stop) except -1:
    """Fill `bounds`. They are read before the array's shape, because reading may run code that changes it."""
    bounds.start_ndim = read_integers(start, PY_SSIZE_T_MIN, bounds.start, "start", 0)
    bounds.stop_ndim = read_integers(stop, PY_SSIZE_T_MIN, bounds.stop, "stop", 0)
    return 0


cdef int read_threads(threads) except -1:
    """The maximum number of threads, or 0 for the default."""
    if threads is None:
        return 0
    count = threads
    if not PyLong_CheckExact(threads):
        try:
            count = read_index(threads)
        except TypeError as reason:
            pass_on(reason)
            raise RequestError(TypeError, f"must be an integer of at least 1 or None, got {short_repr(threads)} of "
                               f"type {type_name(threads)}", "threads") from None
    if count < 1:
        raise RequestError(ValueError, f"must be at least 1, got {short_repr(count)}", "threads")
    return <int>min(count, TILECORE_MAX_THREADS)


cdef tuple as_tuple(const Py_ssize_t *values, int n):
    cdef tuple items = PyTuple_New(n)
    cdef object number
    cdef int k
    for k in range(n):
        number = values[k]
        Py_INCREF(number)  # PyTuple_SET_ITEM steals it
        PyTuple_SET_ITEM(items, k, number)
    return items
