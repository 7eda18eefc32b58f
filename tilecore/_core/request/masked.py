"""Masked arrays, for arrays.pyx: tilecore tiles their data and mask, as `numpy.tile` would.

If the array or its data is of a subclass, NumPy's own function gets it, whatever stands in the place of `numpy.tile`.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tilecore._core.numpy_own import numpy_tile

_masked: Any = None  # numpy.ma.MaskedArray, when found


def is_masked(a: object) -> bool:
    """Whether `a` is a masked array. This does not import numpy.ma: before its import no masked array exists."""
    global _masked
    if _masked is None:
        _masked = getattr(sys.modules.get("numpy.ma.core"), "MaskedArray", None)
    return _masked is not None and isinstance(a, _masked)


def is_plain_masked(a: Any) -> bool:
    """Whether `a` is a MaskedArray itself, no subclass, of plain data."""
    return is_masked(a) and type(a) is _masked and a._baseclass is np.ndarray


def tile_masked(a: Any, counts: Any, tile_ndarray: Callable[..., Any]) -> Any:
    """The tiling of a masked array, or a region of it: `tile_ndarray` makes that of the data, and that of the mask.

    The result is built as MaskedArray's own methods do. MaskedArray(...) would make the default fill value explicit.
    """
    if not is_plain_masked(a):
        return numpy_tile(a, counts)
    result = tile_ndarray(np.ndarray.view(a, np.ndarray)).view(type(a))
    result._update_from(a)
    if result._fill_value is not None:
        result._fill_value = result._fill_value.copy()  # setting one later changes it in place
    mask = a._mask
    if mask is not sys.modules["numpy.ma.core"].nomask:
        result._mask = tile_ndarray(mask)
    return result
