"""OpenVINO Tile-1, the one version in every opset (docs.openvino.ai, operation specifications,
movement, Tile-1).

`output[i] = data[i mod data.shape]`, where the shorter of the data's shape and `repeats` gets 1s in
front, and a negative repeat counts as 0.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias, overload

from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from tilecore._core.arrays import tiled
from tilecore._core.refusals import Refusal, worded
from tilecore._dialects.dims import (
    Dim,
    Shape,
    as_repeats_dims,
    as_shape,
    bounds,
    canonical,
    refused,
    tile_dims,
)
from tilecore._dialects.row import Dialect, Rule
from tilecore._dialects.tensors import INT64_MIN, Out, Scalar, as_repeats, as_tensor

__all__ = ["infer_shape", "tile", "tile_1"]

_Shape: TypeAlias = Sequence[Dim] | Any | None  # openvino.PartialShape has no types here


def __dir__() -> list[str]:
    return __all__


_NAME = "OpenVINO Tile-1"
_NAMES = {"input": "data", "input shape": "data shape"}


@overload
def tile_1(
    data: NDArray[Scalar],
    repeats: ArrayLike,
    out: None = None,
    *,
    threads: int | None = None,
) -> NDArray[Scalar]: ...
@overload
def tile_1(
    data: ArrayLike,
    repeats: ArrayLike,
    out: None = None,
    *,
    threads: int | None = None,
) -> NDArray[Any]: ...
@overload
def tile_1(
    data: ArrayLike,
    repeats: ArrayLike,
    out: Out,
    *,
    threads: int | None = None,
) -> Out: ...
def tile_1(
    data: ArrayLike,
    repeats: ArrayLike,
    out: NDArray[Any] | None = None,
    *,
    threads: int | None = None,
) -> NDArray[Any]:
    """Tile the data as OpenVINO Tile-1 does.

    >>> import numpy as np
    >>> from tilecore import openvino
    >>> openvino.tile_1(np.array([[1, 2, 3]]), [2, 1, 2])       # (1, 3) -> (2, 1, 6)
    array([[[1, 2, 3, 1, 2, 3]],
    <BLANKLINE>
           [[1, 2, 3, 1, 2, 3]]])
    >>> openvino.tile_1(np.ones((2, 3)), [-1]).shape
    (2, 0)

    Parameters
    ----------
    data : tensor of any shape and type
    repeats : 1-D tensor of any integer type, or list or tuple of ints, of any length
        Those of 4 and 2 bits (of ml_dtypes) too.
        How often each axis is repeated, the last entry for the last axis.
    out : array of the result's shape and the data's dtype, optional
        Where to write.
    threads : int, optional
        How many threads may write.

    Returns
    -------
    array of rank `max(data.ndim, len(repeats))` and the data's dtype

    Raises
    ------
    TypeError
        Repeats that are not integers; bool counts as none.
    ValueError
        Repeats that are not 1-D, or too large for int64: a uint64 is never read as negative.
    MemoryError
        A result above `tilecore.get_max_bytes()`.

    Source: OpenVINO Tile-1. That negative repeats count as 0 is in its tests, not in its text.
    """
    tensor = None
    try:
        tensor = data if type(data) is ndarray else as_tensor(data)
        return tiled(tensor, _counts(tensor, repeats), out, threads)
    except Refusal as refusal:
        raise worded(refusal, _NAME, tensor, _NAMES, repeats=repeats) from refusal.__cause__


tile = tile_1


def _counts(tensor: NDArray[Any], repeats: ArrayLike) -> tuple[int, ...]:
    counts = as_repeats(repeats)
    if counts and min(counts) < 0:
        if min(counts) < INT64_MIN:
            item = counts.index(min(counts))
            raise Refusal(ValueError, f"must fit int64, but item {item} overflows", "repeats")
        counts = tuple(max(count, 0) for count in counts)
    return counts


DIALECT = Dialect("OpenVINO", partial(Rule, _NAME, _counts, _NAMES))


def infer_shape(
    data_shape: _Shape,
    repeats: _Shape | NDArray[Any] = None,
    *,
    repeats_shape: _Shape = None,
) -> Shape:
    """The output shape of Tile-1, as far as it is known before there is data.

    >>> infer_shape((4, 2, 3), [2, 2])
    (4, 4, 6)
    >>> infer_shape(((1, 5), (2, None), "N"), [3, 2, 1])
    ((3, 15), (4, None), 'N')

    Parameters
    ----------
    data_shape : tuple of dimensions, or None
        A dimension is an int, None where it is unknown, a str, a symbol, or (low, high), with None
        for an open end. None is a shape of unknown rank. OpenVINO's own PartialShape, Shape and
        Dimension are taken as they are, here and below.
    repeats : sequence of dimensions or 1-D integer array, or None
        What is known of the repeats.
    repeats_shape : tuple of one dimension, or None
        What is known of the shape of the repeats tensor, where its entries are not.

    Returns
    -------
    tuple of dimensions, or None where the rank of the data or the length of repeats is unknown

    Raises
    ------
    TypeError, ValueError
        As `tile_1` would raise on all data of this shape; but each axis is looked at by itself, and
        not how many elements or bytes there would be in all. A range whose every size overflows
        gives None instead, as in OpenVINO.

    Source: OpenVINO Tile-1, shape inference (tile_shape_inference.hpp).
    """
    try:
        shape = as_shape(data_shape, "data_shape", intervals=True)
        length, entries = as_repeats_dims(repeats, repeats_shape, intervals=True, low=INT64_MIN)
        if shape is None or not isinstance(length, int):
            return None
        rank = max(len(shape), length)
        # Entries of which nothing is known leave the whole shape open, padding included, as upstream.
        counts: tuple[Dim, ...] = (None,) * rank
        if entries is not None:
            counts = (1,) * (rank - length) + tuple(_clamped(entry) for entry in entries)
        return tile_dims((1,) * (rank - len(shape)) + shape, counts)
    except Refusal as refusal:
        given = {"data_shape": data_shape, "repeats": repeats, "repeats_shape": repeats_shape}
        raise refused(refusal, _NAME, **given) from refusal.__cause__


def _clamped(repeat: Dim) -> Dim:
    if repeat is None or isinstance(repeat, str):
        return repeat
    low, high = bounds(repeat)
    return canonical(max(low, 0), None if high is None else max(high, 0))
