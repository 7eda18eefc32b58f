"""Puts tilecore's `tile` in the place of `numpy.tile`, for code that is not the user's own.

`numpy.tile` stays the object that it is: Python calls it by a pointer (request/numpy_own.pyx), and this module replaces
the pointer. So all callers are served, also those that bound the name before. No working program breaks: see "Notes".

    the object's pointer -> NumPy's function, or `serve`: tilecore or NumPy's, or `measure`: a profile, which calls both

Signal handlers may raise between any two instructions of Python code. So this module is compiled, and a signal cannot
interrupt it halfway. `__del__` restores too, because an exception may come between `replace_numpy_tile()` and the
block, or between the block and `__exit__`. ProfileBlock does the same for `profile`.
"""

import sys
import warnings

import numpy

from tilecore._core.arrays import tile
from tilecore._core.request.numpy_own import numpy_tile

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from tilecore._core.numpy_api cimport MAX_RANK, PyArray_Check, PyArray_CheckExact, PyArray_IS_C_CONTIGUOUS
from tilecore._core.plain cimport try_fast
from tilecore._core.plan.plan cimport Plan, plan_array
from tilecore._core.request.arguments cimport is_foreign
from tilecore._core.request.integers cimport as_tuple, read_fast
from tilecore._core.request.numpy_own cimport is_served_by, numpys, pointer, tilecore_atomic_replace, vectorcallfunc

cnp.import_array()


cdef extern from "Python.h":
    Py_ssize_t PyVectorcall_NARGS(size_t n) noexcept
    object PyObject_Vectorcall(object function, PyObject *const *arguments, size_t n, PyObject *names)


# In C variables, because Python clears the module's names at exit.
cdef object is_finalizing = sys.is_finalizing
cdef object tile_any = tile, tile_by_numpy = numpy_tile
cdef object memmap = numpy.memmap, ndarrays_own = numpy.ndarray.__array_function__


cdef object serve(object own, PyObject *const *arguments, size_t n, PyObject *names):
    """Called in the place of NumPy's function, by Python's vectorcall protocol: `names` are those of keywords, or NULL.

    NumPy's function gets what may not be tilecore's, with the arguments as they came.
    """
    cdef Plan plan
    cdef Py_ssize_t counts[MAX_RANK]
    cdef tuple words = () if names == NULL else <tuple>names
    cdef Py_ssize_t positional = PyVectorcall_NARGS(n), named = len(words), which = 1  # which argument is `reps`
    cdef int count
    if named == 2:
        which = words[1] == "reps"
    if (positional + named != 2 or named and words[which - positional] != "reps"
            or named == 2 and words[1 - which] != "A" or not is_served_by(serve)):  # compiled code may keep the pointer
        return numpys(own, arguments, n, names)
    A = <object>arguments[1 - which]
    count = read_fast(<object>arguments[which], 0, counts)
    if count < 0 or not PyArray_CheckExact(A) and belongs_to_numpy(A):
        return numpys(own, arguments, n, names)
    if not PyArray_Check(A):
        A = cnp.PyArray_FROM_O(A)  # may run code that changes a list of repeats
    if keeps_order(A, count, counts):
        return tile_by_numpy(A, as_tuple(counts, count))
    if PyArray_CheckExact(A) and (result := try_fast(A, count, counts, 0)) is not None:
        return result
    # What is wrong with a plan, NumPy's function tells; what is wrong with the memory, tilecore's.
    return (tile_any if plan_array(&plan, A, count, counts) else tile_by_numpy)(A, as_tuple(counts, count))


cdef bint keeps_order(cnp.ndarray array, int n, const Py_ssize_t *counts) noexcept:
    """Whether the result of NumPy's function is not C-contiguous: nothing is repeated, nor the array."""
    cdef int k
    for k in range(n):
        if counts[k] != 1:
            return False
    return not PyArray_IS_C_CONTIGUOUS(array)


cdef bint belongs_to_numpy(A) except -1:
    """Whether it is another library's array, or of a subclass that overrides NumPy's functions, or a memmap."""
    return is_foreign(A) or isinstance(A, memmap) or PyArray_Check(A) and type(A).__array_function__ is not ndarrays_own


cdef object measuring = None  # the function that measures; never freed, because another thread may be about to call it


cdef object measure(object own, PyObject *const *arguments, size_t n, PyObject *names):
    return PyObject_Vectorcall(measuring, arguments, n, names)


@cython.final
cdef class InForce:
    """A function in NumPy's place, from `begin` to `end`. They may end in any order: the latest one is called."""

    cdef vectorcallfunc function

    cdef begin(self, vectorcallfunc function):
        self.function = function
        with cython.critical_section(in_force):
            in_force.append(self)
            if not call_latest():
                in_force.remove(self)
                why = "another copy of tilecore has" if pointer != NULL else "it is not called by a pointer of NumPy's"
                raise RuntimeError(f"numpy.tile cannot be replaced: {why}")

    cdef end(self):
        with cython.critical_section(in_force):
            if self in in_force:
                in_force.remove(self)
            call_latest()


cdef list in_force = []  # the latest one last
cdef vectorcallfunc present = numpys


cdef bint call_latest() noexcept:
    """Return whether it is called. Only what this copy of tilecore has put there is replaced."""
    global present
    cdef Py_ssize_t n = len(in_force)
    cdef vectorcallfunc latest = (<InForce>in_force[n - 1]).function if n else numpys
    if pointer == NULL or not tilecore_atomic_replace(pointer, present, latest):
        return False
    present = latest
    return True


@cython.final
@cython.auto_pickle(False)
cdef class ProfileBlock:
    """From `__enter__` to `leave`, `profile` is in the list `active`, and `function` measures."""

    cdef object profile, function
    cdef list active
    cdef InForce block  # None until `__enter__`

    def __init__(self, profile, list active, function):
        self.profile, self.active, self.function = profile, active, function

    def __enter__(self):
        global measuring
        if self.block is not None:
            raise RuntimeError("profile: already used; create a new one")
        table = self.profile.start()
        if measuring is not self.function:
            Py_INCREF(self.function)
            measuring = self.function
        self.block = InForce()
        self.block.begin(measure)
        self.active.append(self.profile)
        return table

    def leave(self):
        """End the block. Return whether the profile was active: in a forked child it is not."""
        if self.block is not None:
            self.block.end()
        active = self.profile in self.active
        if active:
            self.active.remove(self.profile)
        return active

    def __exit__(self, *exception):
        if self.leave():
            self.profile.report(sys.stderr)

    def __del__(self):
        self.leave()


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
        If a restored replacement is entered again, or if Python does not call `numpy.tile` by a pointer.

    Notes
    -----
    NumPy's own function still gets what `tilecore.tile` would reject, other libraries' arrays, memmaps, and calls that
    repeat nothing and so keep the order of the memory. A result larger than `get_max_bytes()` is a MemoryError.

    `numpy.ma`, `numpy.matlib`, ``torch.tile`` and ``jax.numpy.tile`` do not call `numpy.tile`.

    Source: NumPy 2, `numpy.tile`.
    """

    cdef InForce replacement  # None if restored
    cdef bint entered

    def __init__(self, *unknown, **more):
        if unknown or more:  # Cython would name __init__
            raise TypeError("replace_numpy_tile: expected no arguments")
        if self.replacement is None:
            replacement = InForce()
            replacement.begin(serve)
            self.replacement = replacement

    def __del__(self):
        cdef bint forgotten = self.replacement is not None and not self.entered
        self.restore()
        if forgotten and not is_finalizing():
            warnings.warn("replace_numpy_tile: the returned object was garbage-collected, so numpy.tile is restored; "
                          "keep the object for as long as the replacement should last", RuntimeWarning, stacklevel=1)

    def restore(self):
        """Restore `numpy.tile`; calling it again does nothing. A function that other code has put there since stays."""
        if self.replacement is not None:
            self.replacement.end()
            self.replacement = None

    def __enter__(self):
        if self.replacement is None:
            raise RuntimeError("replace_numpy_tile: already restored; create a new one")
        self.entered = True
        return self

    def __exit__(self, *exception):
        self.restore()
