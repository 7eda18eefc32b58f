"""Replaces `numpy.tile` with tilecore's `tile`, for code that is not the user's own.

Callers of `numpy.tile` look the name up in the module `numpy` at each call, so one assignment reaches all of
them. The replacement has NumPy's own signature: the first argument is called `A`. A caller may keep the replacement
after it is restored. The replacement then calls NumPy's own `tile`.

No working program breaks: arguments are read once, as NumPy reads them, and what tilecore would refuse is passed to
NumPy's own `tile`, which returns a result or raises its own error. A result above the size limit is a MemoryError.

Signal handlers may raise between any two instructions of Python code. So this module is compiled, and a signal cannot
interrupt it halfway. `__del__` restores too, because an exception may come between `replace_numpy_tile()` and the
block, or between the block and `__exit__`.
"""

import functools
import sys
import warnings

import numpy

from tilecore._core.arrays import tile as _tile
from tilecore._core.request.subclasses import numpy_tile

cimport cython
cimport numpy as cnp

from tilecore._core.numpy_api cimport MAX_RANK, PyArray_Check
from tilecore._core.plan.plan cimport SIZES_OK, Sizes, sizes_init
from tilecore._core.request.arguments cimport KNOWN
from tilecore._core.request.integers cimport as_tuple, read_fast

cnp.import_array()


# In C variables, because Python clears the module's names at exit. `replaced` is a stack: the `numpy.tile` that each
# replacement in force replaced. Replacements may end in any order: each restores the top of the stack.
cdef list replaced = []
cdef object module = numpy
cdef object is_finalizing = sys.is_finalizing
cdef object replacement


@functools.wraps(numpy_tile)
def tile(A, reps):  # errors show this name
    cdef Sizes sizes
    cdef Py_ssize_t counts[MAX_RANK]
    if not replaced or dispatches(A):
        return numpy_tile(A, reps)
    cdef int n = read_fast(reps, 0, counts)
    if n < 0 and not dispatches(reps):
        try:
            reps = tuple(reps)
        except TypeError:
            reps = (reps,)
        n = read_fast(reps, 0, counts)
    if n >= 0:
        if not PyArray_Check(A):
            reps = as_tuple(counts, n)  # its code may change a list of repeats
            A = cnp.PyArray_FROM_O(A)
        if sizes_init(&sizes, cnp.PyArray_NDIM(A), <Py_ssize_t *>cnp.PyArray_DIMS(A), n, counts,
                      cnp.PyArray_ITEMSIZE(A)) == SIZES_OK:
            return _tile(A, reps)
    return numpy_tile(A, reps)


replacement = tile


cdef bint dispatches(argument) except -1:
    """Whether it is an array of another library, which decides what a function of NumPy does."""
    return not PyArray_Check(argument) and type(argument) not in KNOWN and hasattr(type(argument), "__array_function__")


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

    Arrays of other libraries, and subclasses with ``__array_function__``, still get `numpy.tile` itself.

    Raises
    ------
    RuntimeError
        If a restored replacement is entered again.

    Notes
    -----
    It does not affect:

    - names bound earlier: ``from numpy import tile``, a default argument, a table of functions;
    - compiled code that holds NumPy's function;
    - `numpy.ma`, `numpy.matlib`, ``torch.tile``, ``jax.numpy.tile``: they do not call `numpy.tile`.

    Import first, then replace: a library that stores NumPy's functions when it is imported, as astropy does,
    would store the replacement.

    Results are those of `tilecore.tile`, so a few differ from `numpy.tile`: they are C-contiguous, for instance. A
    request that `tilecore.tile` would reject is passed to NumPy's own function, which returns a result or raises its
    own error. Arguments are read once. A result larger than `get_max_bytes()` is a MemoryError.

    Source: NumPy 2, `numpy.tile`.
    """

    cdef bint in_force, entered

    def __init__(self):
        if not self.in_force:
            replaced.append(module.tile)
            module.tile = replacement
            self.in_force = True

    def __del__(self):
        cdef bint forgotten = self.in_force and not self.entered
        self.restore()
        if forgotten and not is_finalizing():
            warnings.warn("replace_numpy_tile: the returned object was garbage-collected, so numpy.tile is restored; "
                          "keep the object for as long as the replacement should last", RuntimeWarning, stacklevel=1)

    def restore(self):
        """Restore `numpy.tile`; calling it again does nothing.

        >>> import numpy, tilecore
        >>> before = numpy.tile
        >>> replaced = tilecore.replace_numpy_tile()
        >>> numpy.tile is before
        False
        >>> replaced.restore()
        >>> numpy.tile is before
        True

        If other code has replaced `numpy.tile` in the meantime, its function stays.
        """
        if self.in_force:
            if getattr(module, "tile", None) is replacement:
                module.tile = replaced[len(replaced) - 1]
            replaced.pop()  # may fail without memory; then the next call does the rest
            self.in_force = False

    def __enter__(self):
        if not self.in_force:
            raise RuntimeError("replace_numpy_tile: already restored; create a new one")
        self.entered = True
        return self

    def __exit__(self, *exception):
        self.restore()
