"""What is no plain array: subclasses of ndarray, masked arrays, arrays of other libraries.

Each gives what `numpy.tile` makes of it. A masked array's data and mask are tiled by tilecore; what
arrays.pyx cannot tile as an ndarray is NumPy's, and goes to the `numpy.tile` that stood there when tilecore
was imported: a program may put tilecore's in its place.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

numpy_tile = np.tile
_masked: Any = None  # numpy.ma.MaskedArray, when found


def is_masked(a: object) -> bool:
    """Whether `a` is a masked array.

    By its type alone: isinstance would ask `a.__class__` too, which may run code that changes the input.
    numpy.ma is not imported for it: until its class is made, there is no masked array.
    """
    global _masked
    if _masked is None:
        _masked = getattr(sys.modules.get("numpy.ma.core"), "MaskedArray", None)
    return _masked is not None and issubclass(type(a), _masked)


def tile_masked(a: Any, counts: tuple[int, ...], tile_plain: Callable[..., Any]) -> Any:
    """What `numpy.tile(a, counts)` gives for a masked array; `tile_plain` tiles a plain one by these counts."""
    if type(a) is _masked and a._baseclass is np.ndarray:
        return _tile_masked(a, tile_plain)
    return numpy_tile(a, counts)


def _tile_masked(a: Any, tile_plain: Callable[..., Any]) -> Any:
    """As MaskedArray's own methods make their results: the data, its attributes, the mask.

    Not by MaskedArray(...), which makes an explicit fill value of the default one.
    """
    result = tile_plain(np.ndarray.view(a, np.ndarray)).view(type(a))
    result._update_from(a)
    if result._fill_value is not None:
        result._fill_value = result._fill_value.copy()  # to set one later changes it in place
    mask = a._mask
    if mask is not sys.modules["numpy.ma.core"].nomask:
        result._mask = tile_plain(mask)
    return result
