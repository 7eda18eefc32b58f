# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Reading and refusing what a caller hands in, before anything is allocated.

The order is the same everywhere: types, ranks, signs, overflow, then `out` or the size limit.
"""

import operator
import sys

import numpy

from tilecore._core.counts import brief
from tilecore._core.inputs import as_array

cimport numpy as cnp
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject

from tilecore._core.memory cimport memory_limit
from tilecore._core.numpy_api cimport (
    PyArray_Check, PyArray_CheckExact, PyArray_EquivTypes, PyArray_IS_C_CONTIGUOUS, PyArray_ISWRITEABLE, PyArray_Type,
    PyArray_View,
)
from tilecore._core.plan cimport MAX_RANK

cnp.import_array()


cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) noexcept
    PyObject *PyTuple_GET_ITEM(object tuple, Py_ssize_t i) noexcept
    Py_ssize_t PyTuple_GET_SIZE(object tuple) noexcept


cdef refuse(kind, name, what, source, reps):
    """The one form of every error: who refuses, why, and what was asked for.

    `source` is the input array, or its shape where that is all there is, or None.
    """
    asked = ""
    if isinstance(source, numpy.ndarray):
        asked = f"input shape {source.shape}, dtype {source.dtype}, "
    elif source is not None:
        asked = f"input shape {source}, "
    return kind(f"{name}: {what}; {asked}repeats {brief(reps)}")


cdef int read_repeats(reps, Py_ssize_t *repeats, str name, source) except -1:
    """Fill `repeats` (room for MAX_RANK) and return how many. `source` as in refuse.

    The usual kinds here; everything else, and every error, in read_integers.
    """
    cdef Py_ssize_t i, n = 1
    cdef PyObject *item
    cdef long long value = 0
    cdef int overflow = 0
    cdef bint usual
    if type(reps) is tuple:
        n = PyTuple_GET_SIZE(reps)
        usual = n <= MAX_RANK
        i = 0
        while usual and i < n:
            item = PyTuple_GET_ITEM(reps, i)
            usual = PyLong_CheckExact(<object>item)
            if usual:
                value = PyLong_AsLongLongAndOverflow(<object>item, &overflow)
                usual = not overflow and 0 <= value <= PY_SSIZE_T_MAX
                repeats[i] = <Py_ssize_t>value
            i += 1
    else:
        usual = PyLong_CheckExact(reps)
        if usual:
            value = PyLong_AsLongLongAndOverflow(reps, &overflow)
            usual = not overflow and 0 <= value <= PY_SSIZE_T_MAX
            repeats[0] = <Py_ssize_t>value
    if usual:
        return <int>n
    return read_integers(reps, repeats, "repeats", name, source, reps)


cdef as_integer(value):
    """operator.index, which NumPy's bools do not have, though Python's do."""
    if PyLong_CheckExact(value):
        return value
    return int(value) if type(value) is numpy.bool_ else operator.index(value)


cdef int read_integers(given, Py_ssize_t *values, str what, str name, source, reps) except -1:
    """An integer, or what can be iterated: at most 65 items drawn, __len__ never asked."""
    cdef list integers = []
    cdef Py_ssize_t k, rank
    items = given if type(given) is tuple or type(given) is list else None
    if items is None:
        try:
            integers.append(as_integer(given))
        except TypeError:
            try:
                items = iter(given)
            except TypeError:
                raise refuse(TypeError, name, f"{what} must be an integer or an iterable of integers, "
                             f"got {type(given).__name__}", source, reps) from None
    if items is not None:
        for item in items:
            try:
                integers.append(as_integer(item))
            except TypeError:
                if isinstance(item, (list, tuple)) or getattr(item, "ndim", 0):
                    raise refuse(ValueError, name, f"{what} must be an integer or one-dimensional, "
                                 f"but item {len(integers)} is a {type(item).__name__}", source, reps) from None
                raise refuse(TypeError, name, f"{what} must be integers, but item {len(integers)} is "
                             f"of type {type(item).__name__}", source, reps) from None
            if len(integers) > MAX_RANK:
                raise refuse(ValueError, name, f"more than {MAX_RANK} {what}, NumPy's largest rank", source, reps)
    # Axes are counted in the output, whose rank is the larger of the two.
    rank = len(integers)
    if source is not None:
        rank = max(rank, len(source.shape if isinstance(source, numpy.ndarray) else source))
    for k, value in enumerate(integers, rank - len(integers)):
        if value < 0:
            why = f"{what} must not be negative, got {brief(value)} for axis {k}"
            raise refuse(ValueError, name, why, source, reps)
    for k, value in enumerate(integers):
        if value > PY_SSIZE_T_MAX:
            raise refuse(ValueError, name, f"axis {rank - len(integers) + k} overflows: {brief(value)} is "
                         f"more than {PY_SSIZE_T_MAX}", source, reps)
        values[k] = value
    return <int>len(integers)


cdef int read_threads(threads, str name) except -1:
    """The count of threads asked for, or 0 for the default."""
    if threads is None:
        return 0
    try:
        count = operator.index(threads)
    except TypeError:
        raise TypeError(f"{name}: threads must be an integer of at least 1 or None, got "
                        f"{brief(threads)} of type {type(threads).__name__}") from None
    if count < 1:
        raise ValueError(f"{name}: threads must be at least 1, got {brief(count)}")
    return <int>min(count, 1 << 20)


cdef cnp.ndarray as_plain_array(a, str name):
    """`a` as a plain ndarray, or None where its own type decides what tiling it gives."""
    if type(a) is list or type(a) is tuple:
        return as_array(a, name)
    if issubclass(type(a), numpy.memmap):
        return numpy.asarray(a)
    if hasattr(type(a), "__array_function__") and not PyArray_CheckExact(a):
        return None
    return as_array(a, name)


cdef int extents(cnp.ndarray a, size_t *low, size_t *high) noexcept:
    """The addresses of the first byte of `a` and of the one behind its last; 0 where it has none."""
    cdef size_t at = <size_t>cnp.PyArray_DATA(a)
    cdef Py_ssize_t span
    cdef int k
    low[0] = high[0] = at
    high[0] += cnp.PyArray_ITEMSIZE(a)
    for k in range(cnp.PyArray_NDIM(a)):
        if cnp.PyArray_DIM(a, k) == 0:
            return 0
        span = (cnp.PyArray_DIM(a, k) - 1) * cnp.PyArray_STRIDE(a, k)
        if span < 0:
            low[0] += span
        else:
            high[0] += span
    return low[0] < high[0]


cdef bint shares_bytes(cnp.ndarray a, cnp.ndarray b) except -1:
    cdef size_t a_low, a_high, b_low, b_high
    if not extents(a, &a_low, &a_high) or not extents(b, &b_low, &b_high):
        return False
    if a_high <= b_low or b_high <= a_low:
        return False
    try:
        return numpy.shares_memory(a, b, max_work=100000)
    except numpy.exceptions.TooHardError:
        return True


cdef cnp.ndarray check_out(given, const Py_ssize_t *shape, int ndim, cnp.ndarray array, str name, reps):
    """`given` as a plain array, if it is exactly the result's place.

    It comes after the plan, so nothing here may run code of the caller's, which could change `array`:
    no isinstance, which asks for `__class__`, and no NumPy function with `__array_function__`.
    """
    cdef int k
    cdef bint fits
    cdef cnp.ndarray out
    if PyArray_CheckExact(given):
        out = given
    elif PyArray_Check(given) and not is_masked(given):
        out = PyArray_View(given, NULL, &PyArray_Type)
    else:
        raise refuse(TypeError, name, f"out must be a NumPy array, got {type(given).__name__}", array, reps)
    fits = cnp.PyArray_NDIM(out) == ndim
    for k in range(ndim):
        fits = fits and cnp.PyArray_DIM(out, k) == shape[k]
    if not fits:
        raise refuse(ValueError, name, f"out must have shape {as_tuple(shape, ndim)}, got {(<object>out).shape}",
                     array, reps)
    if out.descr is not array.descr and not PyArray_EquivTypes(out.descr, array.descr):
        raise refuse(TypeError, name, f"out must have dtype {array.dtype}, got {out.dtype}", array, reps)
    if not PyArray_IS_C_CONTIGUOUS(out):
        raise refuse(ValueError, name, f"out must be C-contiguous, got strides {(<object>out).strides} for "
                     f"shape {(<object>out).shape}", array, reps)
    if not PyArray_ISWRITEABLE(out):
        raise refuse(ValueError, name, "out must be writeable, got a read-only array", array, reps)
    if shares_bytes(array, out):
        raise refuse(ValueError, name, "out must not share memory with the input", array, reps)
    return out


cdef int check_size(Py_ssize_t nbytes, str name, source, reps) except -1:
    if nbytes > memory_limit():
        raise refuse(MemoryError, name, f"the result would take {nbytes} bytes, more than the limit of "
                     f"{memory_limit()} bytes (tilecore.set_max_bytes)", source, reps)
    return 0


cdef tuple as_tuple(const Py_ssize_t *values, int n):
    return tuple([values[k] for k in range(n)])


cdef bint is_masked(a):
    """Whether `a` is a masked array; without importing numpy.ma, where nobody else has.

    By its type alone: isinstance would ask `a.__class__` too, which may run code that changes the input.
    """
    ma = sys.modules.get("numpy.ma")
    return ma is not None and issubclass(type(a), ma.MaskedArray)
