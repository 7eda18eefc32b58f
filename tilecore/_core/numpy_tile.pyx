"""Replaces `numpy.tile` with tilecore's `tile`, for code that is not the user's own.

Callers of `numpy.tile` look the name up in the module `numpy` at each call, so one assignment reaches all of
them. The function put there has NumPy's own signature: the first argument is called `A`. A caller may keep
this function for longer than the replacement is in force. It then calls NumPy's own `tile`.

Signal handlers may raise between any two instructions of Python code. So this module is compiled, and a signal cannot
interrupt it halfway. `__del__` restores too, because an exception may come between `replace_numpy_tile()` and the
block, or between the block and `__exit__`.
"""

import functools
import os
import sys
import threading
import warnings

import numpy

from tilecore._core.arrays import tile as _tile
from tilecore._core.request.subclasses import numpy_tile

cimport cython


# In C variables, because the module's names are gone at exit. A replacement is a list of the function that it replaced,
# and is empty after it is restored.
cdef list held = []     # the replacements in force, oldest first
cdef object module = numpy
cdef object is_finalizing = sys.is_finalizing
cdef object in_its_place
cdef object lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


@functools.wraps(numpy_tile)
def tile(A, reps):  # errors show this name
    return _tile(A, reps) if held else numpy_tile(A, reps)


in_its_place = tile


cdef list put():
    cdef list found = [None]
    with lock:
        before = module.tile
        held.append(found)  # may fail, and then nothing has changed
        found[0] = before
        module.tile = in_its_place
    return found


cdef bint take_away(list found) except -1:
    """Restore the function that was replaced; False if that has been done already."""
    cdef list later
    cdef Py_ssize_t place
    with lock:
        if not found:
            return False
        place = 0
        while held[place] is not found:
            place += 1
        del held[place]
        if place < len(held):
            # The next replacement will restore what this one replaced, unless other code came in between.
            later = held[place]
            if later[0] is in_its_place:
                later[0] = found[0]
        elif getattr(module, "tile", None) is in_its_place:
            module.tile = found[0]
        found.clear()
    return True


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

    Results and error messages are those of `tilecore.tile`, with its differences from `numpy.tile`.

    Source: NumPy 2, `numpy.tile`.
    """

    cdef list found
    cdef bint entered

    def __init__(self):
        if self.found is None:
            self.found = put()

    def __del__(self):
        if take_away(self.found) and not self.entered and not is_finalizing():
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
        take_away(self.found)

    def __enter__(self):
        if not self.found:
            raise RuntimeError("replace_numpy_tile: already restored; create a new one")
        self.entered = True
        return self

    def __exit__(self, *exception):
        take_away(self.found)
