"""OpenVINO Tile-1, the one version in every opset (docs.openvino.ai, operation specifications, movement).

`output[i] = data[i mod data.shape]`. The shorter of the data's shape and `repeats` gets 1s in front; a
negative repeat counts as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, overload

from numpy.typing import ArrayLike, NDArray

import tilecore  # noqa: F401 - first: another thread may be importing the package
from tilecore._core.request.errors import RequestError, format_error
from tilecore._dialects import dims
from tilecore._dialects.dialect import Array, Dialect, Out, Repeats, T, Threads
from tilecore._dialects.dims import Dim, Range
from tilecore._dialects.tensors import INT64_MIN
from tilecore._dialects.version import Version

__all__ = ["infer_shape", "tile", "tile_1"]
__dir__ = __all__.copy

ShapeLike: TypeAlias = Sequence[Dim | Range] | Any | None  # `Any` stands for OpenVINO's own shapes


@overload
def tile(data: NDArray[T], repeats: Repeats, out: None = None, *, threads: Threads = None) -> NDArray[T]: ...
@overload
def tile(data: ArrayLike, repeats: Repeats, out: None = None, *, threads: Threads = None) -> Array: ...
@overload
def tile(data: ArrayLike, repeats: Repeats, out: Out, *, threads: Threads = None) -> Out: ...
def tile(data: ArrayLike, repeats: Repeats, out: Array | None = None, *, threads: Threads = None) -> Array:
    """Tile the data as OpenVINO Tile-1 does.

    >>> import numpy as np
    >>> import tilecore
    >>> tilecore.openvino.tile(np.array([[1, 2, 3]]), [2, 1, 2])  # (1, 3) -> (2, 1, 6)
    array([[[1, 2, 3, 1, 2, 3]],
    <BLANKLINE>
           [[1, 2, 3, 1, 2, 3]]])
    >>> tilecore.openvino.tile(np.ones((2, 3)), [-1]).shape
    (2, 0)

    Parameters
    ----------
    data : tensor of any shape and type
    repeats : 1-D tensor of any integer type, or list or tuple of ints, of any length
        Repeats of each axis; the last entry is for the last axis. A tensor may be of ml_dtypes' integers.
    out, threads
        As in `tilecore.tile`.

    Returns
    -------
    array of rank `max(data.ndim, len(repeats))` and the data's dtype

    Raises
    ------
    TypeError
        Repeats that are not integers. Bools do not count as integers.
    ValueError
        Repeats that are not 1-D, or too large for int64.
    MemoryError
        A result above `tilecore.get_max_bytes()`.

    Source: OpenVINO Tile-1. That negative repeats count as 0 is in its tests, not in its text.
    """
    return _TILE_1.tile(data, repeats, out, threads)


tile_1 = tile


def _check(_: Version, shape: Sequence[int], repeats: tuple[int, ...]) -> tuple[int, ...]:
    """The repeats, with 0 for negative ones."""
    if min(repeats, default=0) < INT64_MIN:
        raise RequestError(ValueError, f"must fit int64, but item {repeats.index(min(repeats))} overflows", "repeats")
    return tuple(map(_clamp, repeats))


def _clamp(repeat: Any) -> Any:
    """The repeat, or 0 if it is negative. infer_shape also passes ranges and unknown repeats."""
    if isinstance(repeat, tuple):
        return dims.make_range(*map(_clamp, repeat))
    return max(repeat, 0) if isinstance(repeat, int) else repeat


_NAMES = {"input": "data", "input shape": "data shape"}
_TILE_1 = Version("OpenVINO Tile-1", any_length=True, min_repeat=None, names=_NAMES, check=_check)
DIALECT = Dialect("OpenVINO", lambda: _TILE_1, ("a negative repeat counts as 0", [-1, 2]))


def infer_shape(
    data_shape: ShapeLike, repeats: ShapeLike = None, *, repeats_shape: ShapeLike = None
) -> tuple[Dim | Range, ...] | None:
    """The output shape of Tile-1, as far as it is known without data.

    >>> infer_shape((4, 2, 3), [2, 2])
    (4, 4, 6)
    >>> infer_shape(((1, 5), (2, None), "N"), [3, 2, 1])
    ((3, 15), (4, None), 'N')

    Parameters
    ----------
    data_shape : tuple of dimensions, or None
        A dimension is an int, a str (a symbol), None if unknown, or (low, high); a `high` of None means no limit.
        None as the shape means an unknown rank. OpenVINO's PartialShape, Shape and Dimension are accepted everywhere.
    repeats : sequence of dimensions, 1-D integer array, or None
        The repeats, as far as they are known.
    repeats_shape : tuple of one dimension, or None
        The shape of the repeats tensor.

    Returns
    -------
    tuple of dimensions, or None if the rank of the data or the length of repeats is unknown

    Raises
    ------
    TypeError, ValueError
        If `tile` raises it for all data of this shape. Only each axis is checked, not the number of elements or
        bytes. As in OpenVINO, a dimension is None if even its lower bound overflows.

    Source: OpenVINO Tile-1, shape inference (tile_shape_inference.hpp).
    """
    try:
        shape = dims.as_shape(data_shape, "data_shape", intervals=True)
        length, entries = dims.as_repeats_dims(repeats, repeats_shape, intervals=True, low=INT64_MIN)
        if shape is None or not isinstance(length, int):
            return None
        rank = max(len(shape), length)
        # As in OpenVINO: without values no repeat is known, not even the 1s in front. An empty axis stays empty.
        counts: tuple[Any, ...] = (None,) * rank
        if entries is not None:
            counts = (1,) * (rank - length) + tuple(map(_clamp, entries))
        return dims.tile_dims((1,) * (rank - len(shape)) + shape, counts)
    except RequestError as error:
        given = {"data_shape": data_shape, "repeats": repeats, "repeats_shape": repeats_shape}
        raise format_error(error, _TILE_1.name, **given) from error.__cause__
