"""Replaces `numpy.tile` with tilecore's `tile`, for code that is not the user's own.

Callers of `numpy.tile` look the name up in the module `numpy` at each call, so one assignment reaches all of
them. The replacement has NumPy's own signature: the first argument is called `A`. No working program breaks: see
"Notes" below. A caller may still hold the replacement after `numpy.tile` is restored: it then calls NumPy's own `tile`.

Signal handlers may raise between any two instructions of Python code. So this module is compiled, and a signal cannot
interrupt it halfway. `__del__` restores too, because an exception may come between `replace_numpy_tile()` and the
block, or between the block and `__exit__`. ProfileBlock does the same for `profile`.
"""

import copyreg
import functools
import pkgutil
import sys
import warnings
from types import MethodType

import numpy

from tilecore._core.arrays import tile as _tile
from tilecore._core.request.errors import RequestError
from tilecore._core.request.subclasses import numpy_tile

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject

from tilecore._core.numpy_api cimport MAX_RANK, PyArray_Check, PyArray_CheckExact, PyTypeObject
from tilecore._core.plan.plan cimport Plan, plan_array
from tilecore._core.request.arguments cimport is_foreign
from tilecore._core.request.integers cimport as_tuple, read_fast
from tilecore._core.write.results cimport make_result

cnp.import_array()


cdef extern from "Python.h":
    ctypedef object (*vectorcallfunc)(object, PyObject *const *, size_t, PyObject *)
    enum: Py_TPFLAGS_HAVE_VECTORCALL
    Py_ssize_t PyVectorcall_NARGS(size_t n) noexcept
    object PyObject_Vectorcall(object function, PyObject *const *arguments, size_t n, PyObject *names)


# In C variables, because Python clears the module's names at exit.
cdef object module = numpy
cdef object is_finalizing = sys.is_finalizing
cdef Py_ssize_t in_force = 0  # the number of replace_numpy_tile objects that are not restored


def tile(A, reps):  # errors show this name
    return tile_as_numpy(A, reps)


cdef tile_as_numpy(A, reps):
    cdef Plan plan
    cdef Py_ssize_t counts[MAX_RANK]
    if not in_force or is_foreign(A):
        return numpy_tile(A, reps)
    cdef int n = read_fast(reps, 0, counts)
    if n < 0 and not is_foreign(reps):
        try:
            reps = tuple(reps)
        except TypeError:
            reps = (reps,)
        n = read_fast(reps, 0, counts)
    if n < 0:
        return numpy_tile(A, reps)
    if not PyArray_Check(A):
        reps = as_tuple(counts, n)  # reading A may run code that changes a list of repeats
        A = cnp.PyArray_FROM_O(A)
    if not plan_array(&plan, A, n, counts):
        return numpy_tile(A, reps)
    if PyArray_CheckExact(A):
        try:
            return make_result(&plan, A, None, 0)
        except RequestError:  # of memory: `_tile` makes the error
            pass
    return _tile(A, reps)


@cython.final
@cython.auto_pickle(False)
cdef class Replacement:
    """A function that stands in for `numpy.tile`: the same attributes, the same hash, and it compares equal.

    So a library's table of NumPy's functions has the same entry for both. It replaces `numpy.tile` from `begin` to
    `end`. Replacements may end in any order: an ended one that a patcher of `numpy.tile` has restored is recognised.
    """

    cdef vectorcallfunc vectorcall
    cdef object function
    cdef object found  # the `numpy.tile` that it replaced
    cdef bint is_tile
    cdef bint in_force
    cdef dict __dict__

    cdef begin(self):
        self.found = module.tile
        self.in_force = True
        module.tile = self

    cdef end(self):
        self.in_force = False
        present = vars(module).get("tile")  # numpy's __getattr__ imports, which fails as Python ends
        found = skip_ended(present)
        if found is not present:
            module.tile = found
        while isinstance(found, Replacement):  # keep none that has ended
            (<Replacement>found).found = skip_ended((<Replacement>found).found)
            found = (<Replacement>found).found

    def __init__(self, function):
        self.function, self.is_tile, self.vectorcall = function, function is tile, call
        functools.update_wrapper(self, numpy_tile, (*functools.WRAPPER_ASSIGNMENTS, "_implementation"))

    def __call__(self, *args, **kwargs):  # without it, the type is not callable
        return self.function(*args, **kwargs)

    def __eq__(self, other):
        return other is numpy_tile or isinstance(other, Replacement)

    def __hash__(self):
        return hash(numpy_tile)

    def __get__(self, instance, owner):
        return self if instance is None else MethodType(self, instance)  # a method, as functions are

    def __reduce__(self):
        return reduce_tile(self)


cdef call(own, PyObject *const *arguments, size_t n, PyObject *names):
    """Call a Replacement by Python's vectorcall protocol: `names` are those of keywords, or NULL."""
    if (<Replacement>own).is_tile and names == NULL and PyVectorcall_NARGS(n) == 2:
        return tile_as_numpy(<object>arguments[0], <object>arguments[1])
    return PyObject_Vectorcall((<Replacement>own).function, arguments, n, names)


cdef Replacement example = Replacement(tile)
# Python then calls by `vectorcall`, without a tuple of the arguments; Cython cannot express this.
cdef PyTypeObject *kind = <PyTypeObject *>Replacement
kind.tp_vectorcall_offset = <char *>&example.vectorcall - <char *><PyObject *>example
kind.tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL


cdef reduce_tile(function):
    """A copy, and what a pickle gives, is the `numpy.tile` of that moment and process. The process may lack tilecore.

    A function is pickled by its name. While the name means another function, `pickle` would refuse it.
    """
    return "tile" if getattr(module, "tile", None) is function else (pkgutil.resolve_name, ("numpy:tile",))


def reduce_numpy_function(function):
    return reduce_tile(function) if function is numpy_tile else function.__reduce__()


copyreg.pickle(type(numpy_tile), reduce_numpy_function)


cdef skip_ended(function):
    """The function, or what was `numpy.tile` before all replacements that have ended."""
    while isinstance(function, Replacement) and not (<Replacement>function).in_force:
        function = (<Replacement>function).found
    return function


@cython.final
@cython.auto_pickle(False)
cdef class ProfileBlock:
    """From `__enter__` to `leave`, `profile` is in the list `active`, and `function` replaces `numpy.tile`."""

    cdef object profile, function
    cdef list active
    cdef Replacement replacement  # None until `__enter__`

    def __init__(self, profile, list active, function):
        self.profile, self.active, self.function = profile, active, function

    def __enter__(self):
        if self.replacement is not None:
            raise RuntimeError("profile: already used; create a new one")
        table = self.profile.start()
        self.replacement = Replacement(self.function)
        self.replacement.begin()
        self.active.append(self.profile)
        return table

    def leave(self):
        """End the block. Return whether the profile was active: in a forked child it is not."""
        if self.replacement is not None:
            self.replacement.end()
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

    Replace `numpy.tile` with `tilecore.tile`, for code that is not your own.

    >>> import numpy, tilecore
    >>> with tilecore.replace_numpy_tile():
    ...     numpy.tile(numpy.arange(3), (2, 2)).shape      # from (3,), written by tilecore
    (2, 6)

    Without a ``with`` block, keep the returned object, and restore `numpy.tile` yourself:

    >>> replaced = tilecore.replace_numpy_tile()
    >>> replaced.restore()

    It applies to the whole process: to every module and thread that calls ``numpy.tile`` or ``np.tile``.
    Several replacements may be in force at once, nested or overlapping. When the last is restored, `numpy.tile` is
    what it was before the first. An exception in the ``with`` block also restores it, and so does the garbage
    collection of the object.

    Arrays of other libraries, and subclasses that override ``__array_function__``, still get NumPy's function.

    Raises
    ------
    RuntimeError
        If a restored replacement is entered again.

    Notes
    -----
    It does not affect:

    - names bound earlier: ``from numpy import tile``, a default argument, a table of functions. Replace before the
      module that binds them is imported, or start the program by ``tilecore run``;
    - compiled code that holds NumPy's function;
    - `numpy.ma`, `numpy.matlib`, ``torch.tile``, ``jax.numpy.tile``: they do not call `numpy.tile`.

    Results are those of `tilecore.tile`. A request that it would reject is passed to NumPy's own function. A result
    larger than `get_max_bytes()` is a MemoryError.

    Source: NumPy 2, `numpy.tile`.
    """

    cdef Replacement replacement  # None if restored
    cdef bint entered

    def __init__(self, *unknown, **more):
        global in_force
        if unknown or more:  # Cython would name __init__
            raise TypeError("replace_numpy_tile: expected no arguments")
        if self.replacement is None:
            replacement = Replacement(tile)
            replacement.begin()
            self.replacement = replacement
            in_force += 1

    def __del__(self):
        cdef bint forgotten = self.replacement is not None and not self.entered
        self.restore()
        if forgotten and not is_finalizing():
            warnings.warn("replace_numpy_tile: the returned object was garbage-collected, so numpy.tile is restored; "
                          "keep the object for as long as the replacement should last", RuntimeWarning, stacklevel=1)

    def restore(self):
        """Restore `numpy.tile`; calling it again does nothing. A function that other code has put there since stays."""
        global in_force
        if self.replacement is not None:
            self.replacement.end()
            self.replacement = None
            in_force -= 1

    def __enter__(self):
        if self.replacement is None:
            raise RuntimeError("replace_numpy_tile: already restored; create a new one")
        self.entered = True
        return self

    def __exit__(self, *exception):
        self.restore()
