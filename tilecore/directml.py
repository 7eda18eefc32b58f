"""DirectML DML_TILE_OPERATOR_DESC, feature levels 1_0 and above
(https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_tile_operator_desc).

`output[i] = input[i mod input.shape]`, where every axis has its own repeat of 1 or more, and every
size and the number of elements fit in 32 bits. The feature level says which ranks and data types.
"""

import re
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from tilecore._core.arrays import tile as tile_array
from tilecore._dialects.dims import Dim, Shape, as_repeats_dims, as_shape, tile_dims
from tilecore._dialects.tensors import (
    INTEGERS,
    as_repeats,
    as_tensor,
    error,
    renamed,
    scalar_classes,
    shown,
)

__all__ = ["infer_shape", "supported_types", "tile"]

_UINT_MAX = 2**32 - 1

_ONLY_4, _1_TO_8 = frozenset({4}), frozenset(range(1, 9))
_FLOATS = ("float32", "float16")
_TO_32 = (*_FLOATS, "int32", "int16", "int8", "uint32", "uint16", "uint8")
_TO_64 = (*_FLOATS, "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8")

# Ranks, and data types in the specification's order, from each feature level on until the next.
_SINCE = {
    (1, 0): (_ONLY_4, _FLOATS),
    (2, 1): (_ONLY_4, _TO_32),
    (3, 1): (_1_TO_8, _TO_32),
    (4, 1): (_1_TO_8, _TO_64),
}


class _Level(NamedTuple):
    name: str
    ranks: frozenset[int]
    types: tuple[str, ...]
    classes: frozenset[type]


def tile(
    input: ArrayLike,
    repeats: ArrayLike,
    out: NDArray[Any] | None = None,
    *,
    feature_level: str = "4_1",
    threads: int | None = None,
) -> NDArray[Any]:
    """Tile the input as DirectML does.

    >>> import numpy as np
    >>> from tilecore import directml
    >>> image = np.array([[[[1, 2, 3], [4, 5, 6]]]], np.float32)
    >>> directml.tile(image, [1, 1, 3, 3])[0, 0, :3]            # (1, 1, 2, 3) -> (1, 1, 6, 9)
    array([[1., 2., 3., 1., 2., 3., 1., 2., 3.],
           [4., 5., 6., 4., 5., 6., 4., 5., 6.],
           [1., 2., 3., 1., 2., 3., 1., 2., 3.]], dtype=float32)

    Parameters
    ----------
    input : tensor of rank 1 to 8 (4 before level 3_1), with no empty axis
        One of `supported_types(feature_level)`, in either byte order.
    repeats : 1-D tensor of any integer type, or list or tuple of ints, shape (rank,)
        How often each axis is repeated, from 1 to 2**32 - 1.
    out : array of the result's shape and the input's dtype, optional
        Where to write.
    feature_level : str
        As in the names DML_FEATURE_LEVEL_4_1: "1_0" or above.
    threads : int, optional
        How many threads may write.

    Returns
    -------
    array of shape `input.shape * repeats` and the input's dtype

    Raises
    ------
    TypeError
        A data type that the level does not support, or repeats that are not integers.
    ValueError
        A rank that the level does not support; an empty axis; repeats that are not 1-D, not one for
        each axis, or out of range; sizes or a number of elements above 2**32 - 1.
    MemoryError
        A result above `tilecore.get_max_bytes()`.

    Source: DML_TILE_OPERATOR_DESC, Members and Tensor support.
    """
    try:
        level = _LEVELS[feature_level]
    except (KeyError, TypeError):  # a level newer than the table, or none at all
        level = _level_of(feature_level)
    tensor = input if type(input) is ndarray else as_tensor(level.name, input)
    counts = _counts(level, tensor, repeats)
    try:
        return tile_array(tensor, counts, out, threads=threads)
    except (TypeError, ValueError, MemoryError) as reason:
        raise renamed(reason, level.name) from None


def supported_types(feature_level: str = "4_1") -> tuple[str, ...]:
    """The data types that a feature level supports, as the specification's tables write them.

    >>> supported_types("2_0")
    ('FLOAT32', 'FLOAT16')

    They are the names of `DML_TENSOR_DATA_TYPE` without that prefix, in the tables' order.
    """
    return _names(_level_of(feature_level))


def infer_shape(
    sizes: Sequence[Dim] | None,
    repeats: Sequence[Dim] | NDArray[Any] | None,
    *,
    feature_level: str = "4_1",
) -> Shape:
    """The output sizes, as far as they are known before there is data.

    >>> infer_shape((1, 1, 2, 3), [1, 1, 3, 3])
    (1, 1, 6, 9)
    >>> infer_shape(("N", 3, None), [1, 2, 2])
    ('N', 6, None)

    Parameters
    ----------
    sizes : tuple of dimensions, or None
        A dimension is an int, None where it is unknown, or a str, a symbol. None is a shape of
        unknown rank.
    repeats : sequence of dimensions or 1-D integer array, shape (rank,), or None
        What is known of the repeats.
    feature_level : str
        As in `tile`.

    Returns
    -------
    tuple of dimensions, or None where the rank is unknown

    Raises
    ------
    TypeError, ValueError
        As `tile` would raise on every input of these sizes.

    Source: DML_TILE_OPERATOR_DESC, Members and Tensor support.
    """
    level = _level_of(feature_level)
    shape = as_shape(level.name, sizes)
    length, entries = as_repeats_dims(level.name, shape, repeats, None, low=1)
    if shape is None:
        if entries is not None:  # which no sizes can mend
            problem = _problem(level, (1,) * len(entries), _at_least_1(entries))
            if problem is not None:
                raise error(ValueError, level.name, problem, None, None, repeats=repeats)
        return None
    if isinstance(length, int) and length != len(shape):
        what = f"repeats has length {length}, expected the input's rank {len(shape)}"
        raise error(ValueError, level.name, what, shape, None, repeats=repeats)
    counts = (None,) * len(shape) if entries is None else entries
    # Nothing may be 0, so 1 is the least that an unknown can be.
    problem = _problem(level, _at_least_1(shape), _at_least_1(counts))
    if problem is not None:
        raise error(ValueError, level.name, problem, shape, None, repeats=repeats)
    return tile_dims(level.name, shape, counts, repeats=repeats)


# --- what they share -----------------------------------------------------------------------------


def legal_repeats(
    input: NDArray[Any], repeats: ArrayLike, feature_level: str = "4_1"
) -> tuple[str, tuple[int, ...]]:
    """The level's name, and the repeats that it allows for the input, where another does the tiling.

    >>> import numpy as np
    >>> legal_repeats(np.ones((2, 3), np.int8), [2, 2], "5_0")
    ('DirectML Tile, feature level 5_0', (2, 2))
    """
    level = _level_of(feature_level)
    return level.name, _counts(level, input, repeats)


def _counts(level: _Level, tensor: NDArray[Any], repeats: ArrayLike) -> tuple[int, ...]:
    name, ranks, _, classes = level
    if tensor.dtype.type not in classes:
        expected = f"expected {', '.join(_names(level))}; tilecore.tile takes every dtype"
        what = f"data type {tensor.dtype}, {expected}"
        raise error(TypeError, name, what, tensor.shape, tensor.dtype, repeats=repeats)
    counts = as_repeats(name, repeats, tensor, INTEGERS, tensor.ndim)
    # Negative repeats whose product is positive go on: the core refuses them.
    if tensor.ndim not in ranks or not 0 < tensor.size * prod(counts) <= _UINT_MAX:
        problem = _problem(level, tensor.shape, counts) or "repeats out of range"
        raise error(ValueError, name, problem, tensor.shape, tensor.dtype, repeats=repeats)
    return counts


def _level_of(feature_level: str) -> _Level:
    if not isinstance(feature_level, str):
        kind = type(feature_level).__name__
        raise TypeError(
            f"DirectML Tile: feature_level is a {kind}, expected a str such as '4_1'"
        ) from None
    match = re.fullmatch(r"([1-9][0-9]{0,3})_(0|[1-9][0-9]{0,3})", feature_level)
    if match is None:
        what = f"feature_level {shown(feature_level)}, expected 'N_M' from '1_0' on"
        raise ValueError(f"DirectML Tile: {what}") from None
    number = (int(match[1]), int(match[2]))
    ranks, types = _SINCE[max(since for since in _SINCE if since <= number)]
    name = f"DirectML Tile, feature level {feature_level}"
    return _Level(name, ranks, types, scalar_classes(types))


# The levels that exist so far, made once; any other is read when it is asked for.
_LEVELS = {
    text: _level_of(text)
    for text in "1_0 2_0 2_1 3_0 3_1 4_0 4_1 5_0 5_1 5_2 6_0 6_1 6_2 6_3 6_4".split()
}


def _names(level: _Level) -> tuple[str, ...]:
    return tuple(name.upper() for name in level.types)


def _at_least_1(dims: Sequence[Dim]) -> list[int]:
    return [dim if isinstance(dim, int) else 1 for dim in dims]


def _problem(level: _Level, shape: Sequence[int], repeats: Sequence[int]) -> str | None:
    """What the level does not allow about these sizes, if anything."""
    if len(shape) not in level.ranks:
        least, largest = min(level.ranks), max(level.ranks)
        expected = f"{least} to {largest}" if least < largest else least
        return f"rank {len(shape)}, expected {expected}"
    elements = 1
    for axis, size in enumerate(shape):
        repeat = repeats[axis]
        if not 0 < repeat <= _UINT_MAX:
            return f"repeat of axis {axis}: {shown(repeat)}, expected 1 to {_UINT_MAX}"
        if size == 0:
            return f"axis {axis} has size 0, expected 1 or more"
        elements *= size * repeat
        if elements > _UINT_MAX:
            return f"more than {_UINT_MAX} elements in the output up to axis {axis}"
    return None
