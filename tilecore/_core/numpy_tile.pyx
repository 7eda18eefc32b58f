"""Replaces `numpy.tile` with tilecore's `tile`, for code that is not the user's own.

Callers of `numpy.tile` look the name up in the module `numpy` at each call, so one assignment reaches all of
them. The replacement has NumPy's own signature: the first argument is called `A`. A caller may keep the replacement
after it is restored. The replacement then calls NumPy's own `tile`.

No working program breaks: a request that tilecore rejects with a TypeError or ValueError is passed to NumPy's own
`tile`, which returns a result or raises its own error. A result above the size limit is a MemoryError.

Signal handlers may raise between any two instructions of Python code. So this module is compiled, and a signal cannot
interrupt it halfway. `__del__` restores too, because an exception may come between `replace_numpy_tile()` and the
block, or between the block and `__exit__`.
"""

import functools
import sys
import warnings

import numpy

from tilecore._core.arrays import tile as _tile
from tilecore._core.request.errors import RequestError
from tilecore._core.request.subclasses import numpy_tile

cimport cython


# In C variables, because Python clears the module's names at exit. `replaced` is a stack: the `numpy.tile` that each
# replacement in force replaced. Replacements may end in any order: each restores the top of the stack.
cdef list replaced = []
cdef object module = numpy
cdef object is_finalizing = sys.is_finalizing
cdef object replacement


@functools.wraps(numpy_tile)
def tile(A, reps):  # errors show this name
    if not replaced:
        return numpy_tile(A, reps)
    if hasattr(reps, "__next__"):  # an iterator yields its items only once
        reps = tuple(reps)
    try:
        return _tile(A, reps)
    except (TypeError, ValueError) as error:
        if type(error.__context__) is not RequestError:  # raised by the caller's own objects, or by a signal handler
            raise
    return numpy_tile(A, reps)


replacement = tile


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
    request that `tilecore.tile` rejects with a TypeError or ValueError is passed to NumPy's own function, which
    returns a result or raises its own error. A result larger than `get_max_bytes()` is a MemoryError.

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
            self.in_force = False
            previous = replaced.pop()
            if getattr(module, "tile", None) is replacement:
                module.tile = previous

    def __enter__(self):
        if not self.in_force:
            raise RuntimeError("replace_numpy_tile: already restored; create a new one")
        self.entered = True
        return self

    def __exit__(self, *exception):
        self.restore()
