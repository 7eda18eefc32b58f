"""tilecore's `tile` in the place of `numpy.tile`, for code that is not one's own.

Who calls `numpy.tile` looks the name up in the module `numpy` at each call, so one assignment reaches all of
them. What is put there is a function of NumPy's own signature, for its first argument is called `A` there. It
asks whether it is still wanted: whoever has kept it beyond that gets what `numpy.tile` was.
"""

import functools
import threading
from typing import Any, Self

import numpy as np

from tilecore._core.arrays import tile as _tile
from tilecore._core.subclasses import numpy_tile

_lock = threading.RLock()
_held: list["replace_numpy_tile"] = []  # those not restored yet, in the order of their making


@functools.wraps(numpy_tile)
def _in_its_place(A: Any, reps: Any) -> Any:
    return _tile(A, reps) if _held else numpy_tile(A, reps)


class replace_numpy_tile:
    """Put `tile` in the place of `numpy.tile`, for code that is not your own.

    >>> import numpy, tilecore
    >>> with tilecore.replace_numpy_tile():
    ...     numpy.tile(numpy.arange(3), (2, 2)).shape      # from (3,), written by tilecore
    (2, 6)

    or from here on, for the rest of the program or until you say otherwise:

    >>> replaced = tilecore.replace_numpy_tile()
    >>> replaced.restore()

    It holds for the whole process: every module and every thread that calls ``numpy.tile`` or
    ``np.tile``. Several may be in force at once, nested or overlapping in any order; when the last
    is restored, `numpy.tile` is what it was before the first. An exception within the ``with``
    block restores too.

    Arrays of other libraries, and subclasses with ``__array_function__``, are still asked: they are
    handed `numpy.tile` itself, whatever stands in its place.

    Raises
    ------
    RuntimeError
        Where one that has been restored is entered again.

    Notes
    -----
    What it does not reach:

    - names bound before: ``from numpy import tile``, a default argument, a table of functions;
    - compiled code that does not look the name up in `numpy`;
    - `numpy.ma`, `numpy.matlib` and other libraries' functions of that name (``torch.tile``,
      ``jax.numpy.tile``), which do not call `numpy.tile`.

    Import first, replace then: a library that is imported meanwhile, and notes which of NumPy's
    functions it has versions of (astropy is one), notes the function that stands there then.

    The results are those of `tile`, with its differences from `numpy.tile`; errors are in its words.

    Source: tilecore; NumPy 2, `numpy.tile`.
    """

    def __init__(self) -> None:
        with _lock:
            self._found: Any = np.tile
            _held.append(self)
            setattr(np, "tile", _in_its_place)  # noqa: B010  (assigned to, it is no function to mypy)

    def restore(self) -> None:
        """Set `numpy.tile` back to what it was; again is no error.

        >>> import numpy, tilecore
        >>> before = numpy.tile
        >>> replaced = tilecore.replace_numpy_tile()
        >>> numpy.tile is before
        False
        >>> replaced.restore()
        >>> numpy.tile is before
        True

        Where somebody else has put a function of their own over it meanwhile, that one stays.

        Source: tilecore.
        """
        with _lock:
            if self not in _held:
                return
            place = _held.index(self)
            del _held[place]
            if place < len(_held):
                # Restored later, it sets back both; else somebody came between.
                later = _held[place]
                if later._found is _in_its_place:
                    later._found = self._found
            elif np.tile is _in_its_place:
                setattr(np, "tile", self._found)  # noqa: B010

    def __enter__(self) -> Self:
        if self not in _held:
            raise RuntimeError("replace_numpy_tile: it has been restored; make a new one")
        return self

    def __exit__(self, *exception: object) -> None:
        self.restore()
