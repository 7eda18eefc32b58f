"""Puts tilecore's `tile` in the place of `numpy.tile`, for code that is not the user's own: see numpy_own.pyx.

Two errors are new: see "Notes". Signal handlers may raise between any two instructions of Python code. So this module
is compiled, and a signal cannot interrupt it halfway. `__del__` restores too, because an exception may come between
`replace_numpy_tile()` and the block, or between the block and `__exit__`.
"""

import sys
import warnings

import numpy

from tilecore._core.arrays import tile
from tilecore._core.numpy_own import numpy_tile

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject
from libc.stdlib cimport free, malloc

from tilecore._core.arrays cimport tile_or_none
from tilecore._core.config cimport tilecore_multiply
from tilecore._core.numpy_api cimport (
    MAX_RANK, Py_TYPE, PyArray_Check, PyArray_CheckExact, PyArray_IS_C_CONTIGUOUS, PyTypeObject,
)
from tilecore._core.plan.plan cimport fits_64_bits
from tilecore._core.request.integers cimport as_tuple, read_fast
from tilecore._core.numpy_own cimport in_force, install, numpy_vectorcall, points_to, uninstall
from tilecore._core.resources cimport memory

cnp.import_array()


cdef extern from "Python.h":
    Py_ssize_t PyVectorcall_NARGS(size_t n) noexcept
    PyObject *_PyType_Lookup(PyTypeObject *type, object name) noexcept  # borrowed


# These are C variables, because Python clears the module's names at exit.
cdef object is_finalizing = sys.is_finalizing
cdef object tilecore_tile = tile, tile_by_numpy = numpy_tile
# NumPy's function for arrays that were converted: it asks no `__array_function__`.
cdef object tile_without_dispatch = getattr(getattr(numpy_tile, "__self__", None), "_implementation", None)
cdef object memmap = numpy.memmap, ndarrays = numpy.ndarray.__array_function__, protocol = "__array_function__"


cdef object serve_numpy_tile(object own, PyObject *const *arguments, size_t n, PyObject *names):
    """Python calls this in the place of NumPy's function, by vectorcall: `names` are those of keywords, or NULL.

    What may not be tilecore's goes on to NumPy's function, with the arguments as they came. No plan lies on the stack
    while the caller's code runs: it may call `numpy.tile`, level upon level, until Python raises a RecursionError.
    """
    cdef Py_ssize_t counts[MAX_RANK]
    cdef Py_ssize_t positional = PyVectorcall_NARGS(n)
    cdef bint converted, kept
    cdef int count, reps_at = 1 if names == NULL else find_reps(positional, <tuple>names)  # A is the other
    if (positional != 2 if names == NULL else reps_at < 0) or not points_to(serve_numpy_tile):  # callers may keep it
        return numpy_vectorcall(own, arguments, n, names)
    A = <object>arguments[1 - reps_at]
    count = read_fast(<object>arguments[reps_at], 0, counts)
    if count < 0 or not PyArray_CheckExact(A) and overrides(A):
        return numpy_vectorcall(own, arguments, n, names)
    converted = not PyArray_Check(A)
    if converted:
        if repeats_nothing(count, counts):  # then NumPy's result may share the memory of a buffer
            return numpy_vectorcall(own, arguments, n, names)
        A = cnp.PyArray_FROM_O(A)  # may run code that changes a list of repeats
    kept = not PyArray_CheckExact(A) if converted else keeps_kind(A, count, counts)
    if not kept and PyArray_CheckExact(A) and (result := tile_or_none(A, count, counts, 0)) is not None:
        return result
    outcome = predict_numpy(A, count, counts)
    if outcome == RAISES or kept and outcome == FITS:
        return (tile_without_dispatch if converted else tile_by_numpy)(A, as_tuple(counts, count))
    return tilecore_tile(A, as_tuple(counts, count))  # a subclass, or an error of sizes or memory


cdef int find_reps(Py_ssize_t positional, tuple names) except -2:
    """The index of the repeats among the arguments; -1 if these are not A and reps."""
    cdef Py_ssize_t named = len(names)
    cdef int reps_at = named != 2 or names[1] == "reps"
    if positional + named != 2 or named and names[reps_at - positional] != "reps" or (
            named == 2 and names[1 - reps_at] != "A"):
        return -1
    return reps_at


cdef inline bint overrides(A) noexcept:
    """Whether the type of `A` has an `__array_function__` other than ndarray's. Runs no code of a metaclass."""
    cdef PyObject *found = _PyType_Lookup(Py_TYPE(A), protocol)
    return found != NULL and found != <PyObject *>ndarrays


cdef enum Outcome:
    FITS, RAISES, CRASHES


cdef Outcome predict_numpy(cnp.ndarray array, int n, const Py_ssize_t *counts) noexcept:
    """What NumPy's function does with these sizes, if they do not fit 64 bits.

    Each repeat of an axis makes an array of repeated rows. NumPy crashes if the count of rows overflows, unless the
    overflow is negative, or the array is too large.
    """
    cdef Py_ssize_t rows = 1, left = cnp.PyArray_SIZE(array), itemsize = cnp.PyArray_ITEMSIZE(array), size, count
    cdef int k, ndim = cnp.PyArray_NDIM(array), rank = max(n, ndim)
    cdef bint overflows
    if fits_64_bits(array, n, counts):
        return FITS
    if itemsize == 0:  # it may repeat nothing 2^62 times
        return CRASHES
    if not PyArray_IS_C_CONTIGUOUS(array) and is_refused(left * itemsize):  # it is copied first
        return RAISES
    for k in range(rank if left else 0):  # an empty array is reshaped
        count = counts[k - (rank - n)] if k >= rank - n else 1
        if count != 1:
            overflows = tilecore_multiply(rows, count, &size)
            rows = <Py_ssize_t>(<size_t>rows * <size_t>count)  # as in NumPy
            if (rows < 0 or tilecore_multiply(rows, left, &size) or tilecore_multiply(size, itemsize, &size)
                    or is_refused(size)):
                return RAISES
            if overflows or size > memory.max_bytes:
                return CRASHES
        if k >= rank - ndim:
            rows *= cnp.PyArray_DIM(array, k - (rank - ndim))
            left //= cnp.PyArray_DIM(array, k - (rank - ndim))
    return RAISES


cdef bint is_refused(Py_ssize_t nbytes) noexcept:
    """Whether NumPy gets no memory for an array of this size."""
    cdef void *data = malloc(max(nbytes, 1))
    free(data)
    return data == NULL


cdef bint keeps_kind(cnp.ndarray array, int n, const Py_ssize_t *counts) except -1:
    """Whether NumPy's result is a memmap, or keeps the array's memory order because nothing is repeated."""
    if not PyArray_CheckExact(array) and isinstance(array, memmap):
        return True
    return repeats_nothing(n, counts) and not PyArray_IS_C_CONTIGUOUS(array)


cdef inline bint repeats_nothing(int n, const Py_ssize_t *counts) noexcept:
    cdef int k
    for k in range(n):
        if counts[k] != 1:
            return False
    return True


@cython.final
@cython.auto_pickle(False)
cdef class replace_numpy_tile:
    """replace_numpy_tile()\n--\n

    Put `tilecore.tile` in the place of `numpy.tile`, for code that is not your own.

    >>> import numpy, tilecore
    >>> with tilecore.replace_numpy_tile():
    ...     numpy.tile(numpy.arange(3), (2, 2)).shape      # from (3,), written by tilecore
    (2, 6)

    Without a ``with`` block, keep the returned object, and restore `numpy.tile` yourself:

    >>> replaced = tilecore.replace_numpy_tile()
    >>> replaced.restore()

    It applies to the whole process: to all modules and threads, and to names bound earlier, as by ``from numpy import
    tile``. `numpy.tile` stays the same object. Several replacements may be in force at once, nested or overlapping.
    When the last is restored, `numpy.tile` is NumPy's again. An exception in the ``with`` block also restores it, and
    so does the garbage collection of the object.

    Raises
    ------
    RuntimeError
        If a restored replacement is entered again, if Python does not call `numpy.tile` by a pointer, or if NumPy's
        module was reloaded.

    Notes
    -----
    NumPy's own function still gets what `tilecore.tile` would reject, other libraries' arrays, memmaps, and calls that
    repeat nothing, which keep the memory order. Two errors are new: a result larger than `get_max_bytes()` is a
    MemoryError, and sizes with which NumPy's function crashes are a ValueError.

    `numpy.ma`, `numpy.matlib`, ``torch.tile`` and ``jax.numpy.tile`` do not call `numpy.tile`.

    Source: NumPy 2, `numpy.tile`.
    """

    cdef object token
    cdef bint entered

    def __init__(self, *unknown, **more):
        if unknown or more:  # Cython would name __init__
            raise TypeError("replace_numpy_tile: expected no arguments")
        if self.token not in in_force:
            self.token = install(serve_numpy_tile)

    def __del__(self):
        if uninstall(self.token) and not self.entered and not is_finalizing():
            warnings.warn("replace_numpy_tile: the returned object was garbage-collected, so numpy.tile is restored; "
                          "keep the object for as long as the replacement should last", RuntimeWarning, stacklevel=1)

    def restore(self):
        """Restore `numpy.tile`; calling it again does nothing. A function that other code has put there since stays."""
        uninstall(self.token)

    def __enter__(self):
        if self.token not in in_force:
            raise RuntimeError("replace_numpy_tile: already restored; create a new one")
        self.entered = True
        return self

    def __exit__(self, *exception):
        uninstall(self.token)


(<PyTypeObject *>replace_numpy_tile).tp_name = "tilecore.replace_numpy_tile"  # as users name it: see tileplan.pyx
