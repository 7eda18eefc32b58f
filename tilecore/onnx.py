"""ONNX Tile, versions 1, 6 and 13 (https://onnx.ai/onnx/operators/onnx__Tile.html).

`output[i] = input[i mod input.shape]`, where every axis has its own repeat: `repeats` is a 1-D
int64 tensor with one entry for each axis of the input, and nothing is broadcast. Tile-1 repeats
the one axis that it is told.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, SupportsIndex, TypeAlias

from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from tilecore._core.arrays import tile as tile_array
from tilecore._dialects.dims import Dim, Shape, as_repeats_dims, as_shape, tile_dims
from tilecore._dialects.tensors import (
    INT64,
    as_integer,
    as_repeats,
    as_tensor,
    element_type,
    error,
    renamed,
    scalar_classes,
    shown,
)

__all__ = [
    "for_opset",
    "infer_shape",
    "infer_shape_1",
    "supported_types",
    "tile",
    "tile_1",
    "tile_6",
    "tile_13",
]


class _Version(NamedTuple):
    name: str
    types: Mapping[str, str]  # NumPy's name -> the specification's, in the specification's order
    classes: frozenset[type]  # those of `types` that NumPy itself has


def _version(name: str, types: Mapping[str, str]) -> _Version:
    return _Version(name, types, scalar_classes(types))


_INTEGERS = {f"{u}int{n}": f"tensor({u}int{n})" for u in ("u", "") for n in (8, 16, 32, 64)}
_BFLOAT16 = {"bfloat16": "tensor(bfloat16)"}
_FLOATS = {"float16": "tensor(float16)", "float32": "tensor(float)", "float64": "tensor(double)"}
_OTHERS = {"str": "tensor(string)", "bool": "tensor(bool)"} | {
    name: f"tensor({name})" for name in ("complex64", "complex128")
}
_TILE_1 = _version("ONNX Tile-1", _FLOATS)
_TILE_6 = _version("ONNX Tile-6", _INTEGERS | _FLOATS | _OTHERS)
_TILE_13 = _version("ONNX Tile-13", _INTEGERS | _BFLOAT16 | _FLOATS | _OTHERS)


def tile_13(
    input: ArrayLike,
    repeats: ArrayLike,
    out: NDArray[Any] | None = None,
    *,
    threads: int | None = None,
) -> NDArray[Any]:
    """Tile the input as ONNX Tile-13 does.

    >>> import numpy as np
    >>> from tilecore import onnx
    >>> onnx.tile_13(np.array([[1, 2], [3, 4]]), [1, 2])        # (2, 2) -> (2, 4)
    array([[1, 2, 1, 2],
           [3, 4, 3, 4]])
    >>> onnx.tile_13(np.ones((2, 3)), [2])                      # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: ONNX Tile-13: repeats has length 1, expected the input's rank 2; input shape ...

    Parameters
    ----------
    input : tensor of any shape
        One of `supported_types(13)`, in either byte order. An object array of nothing but `str`, a
        `U` array and a StringDType array are tensor(string).
    repeats : 1-D int64 tensor, or list or tuple of ints, shape (rank,)
        How often each axis is repeated; 0 gives an empty axis.
    out : array of the result's shape and the input's dtype, optional
        Where to write.
    threads : int, optional
        How many threads may write.

    Returns
    -------
    array of shape `input.shape * repeats` and the input's dtype

    Raises
    ------
    TypeError
        An element type that is none of this version's, or repeats that are not int64.
    ValueError
        Repeats that are not 1-D, not one for each axis, negative, or too large for int64.
    MemoryError
        A result above `tilecore.get_max_bytes()`.

    Source: ONNX Tile-13, in opsets 13 to 28.
    """
    return _tile(_TILE_13, input, repeats, out, threads)


def tile_6(
    input: ArrayLike,
    repeats: ArrayLike,
    out: NDArray[Any] | None = None,
    *,
    threads: int | None = None,
) -> NDArray[Any]:
    """Tile the input as ONNX Tile-6 does: `tile_13` without bfloat16.

    >>> import numpy as np
    >>> tile_6(np.array(["a", "b"]), [2])                       # (2,) -> (4,)
    array(['a', 'b', 'a', 'b'], dtype='<U1')

    Parameters, Returns, Raises: as `tile_13`, with `supported_types(6)`.

    Source: ONNX Tile-6, in opsets 6 to 12.
    """
    return _tile(_TILE_6, input, repeats, out, threads)


def tile_1(
    input: ArrayLike,
    tiles: ArrayLike,
    axis: ArrayLike,
    out: NDArray[Any] | None = None,
    *,
    threads: int | None = None,
) -> NDArray[Any]:
    """Repeat one axis of the input, as ONNX Tile-1 does.

    >>> import numpy as np
    >>> tile_1(np.ones((2, 3), np.float32), 3, axis=1).shape
    (2, 9)

    Parameters
    ----------
    input : tensor of rank 1 or more
        One of `supported_types(1)`.
    tiles, axis : tensors of one element
        How often to repeat, and which axis; a negative axis counts from the end. Models hold them
        as int64 and as floats, since the document says both: any integer type is taken, and any
        float that is a whole number.
    out, threads
        As in `tile_13`.

    Returns
    -------
    array of the input's shape, with `input.shape[axis] * tiles` on the axis

    Raises
    ------
    TypeError
        An element type that is not supported; tiles or an axis that is no whole number.
    ValueError
        Tiles or an axis of more than one element, an axis out of range, negative tiles, overflow.
    MemoryError
        A result above `tilecore.get_max_bytes()`.

    Source: ONNX Tile-1, in opsets 1 to 5.
    """
    tensor = input if type(input) is ndarray else as_tensor(_TILE_1.name, input)
    if tensor.dtype.type not in _TILE_1.classes:
        _check_rare_type(_TILE_1, tensor)
    count = tiles if type(tiles) is int else _whole_number("tiles", tiles, tensor.shape)
    position = axis if type(axis) is int else _whole_number("axis", axis, tensor.shape)
    rank = tensor.ndim
    if not -rank <= position < rank:
        raise _no_such_axis(position, tensor.shape, tensor.dtype)
    repeats = [1] * rank
    repeats[position] = count
    try:
        return tile_array(tensor, tuple(repeats), out, threads=threads)
    except (TypeError, ValueError, MemoryError) as reason:
        raise renamed(reason, _TILE_1.name) from None


tile = tile_13


def for_opset(opset: SupportsIndex) -> Callable[..., NDArray[Any]]:
    """The Tile that a model of this opset means.

    >>> for_opset(11) is tile_6, for_opset(28) is tile
    (True, True)

    Raises
    ------
    TypeError, ValueError
        An opset that is no int, or below 1. Opsets newer than any known one mean the newest Tile.
    """
    return _for_opset(opset)[1]


def supported_types(opset: SupportsIndex = 13) -> tuple[str, ...]:
    """The element types that Tile takes in this opset, in the specification's words and order.

    >>> supported_types(opset=5)
    ('tensor(float16)', 'tensor(float)', 'tensor(double)')
    """
    return tuple(_for_opset(opset)[0].types.values())


def infer_shape(
    input_shape: Sequence[Dim] | None,
    repeats: Sequence[Dim] | NDArray[Any] | None = None,
    *,
    repeats_shape: Sequence[Dim] | None = None,
    opset: SupportsIndex = 13,
) -> Shape:
    """The output shape of Tile-6 and Tile-13, as far as it is known before there is data.

    >>> infer_shape((4, 5, 6), [1, 2, 3])
    (4, 10, 18)
    >>> infer_shape(("N", 3, 0), [1, None, None])
    ('N', None, 0)

    Parameters
    ----------
    input_shape : tuple of dimensions, or None
        A dimension is an int, None where it is unknown, or a str, a symbol. None is a shape of
        unknown rank.
    repeats : sequence of dimensions or int64 array, shape (rank,), or None
        What is known of the repeats.
    repeats_shape : tuple of one dimension, or None
        What is known of the shape of the repeats tensor, where its entries are not.
    opset : int
        6 or more; `infer_shape_1` is for those before.

    Returns
    -------
    tuple of dimensions, or None where the input's rank is unknown

    Raises
    ------
    TypeError, ValueError
        As `tile_13` would raise on every input of this shape; but as in ONNX, each axis is looked
        at by itself, and not how many elements or bytes there would be in all.

    Source: ONNX Tile-6 and Tile-13, shape inference.
    """
    version = _with_repeats(opset)
    shape = as_shape(version.name, input_shape)
    length, entries = as_repeats_dims(version.name, shape, repeats, repeats_shape, classes=INT64)
    if shape is None:
        return None
    if isinstance(length, int) and length != len(shape):
        what = f"repeats has length {length}, expected the input's rank {len(shape)}"
        raise error(ValueError, version.name, what, shape, None, repeats=repeats)
    return tile_dims(version.name, shape, entries or (None,) * len(shape), repeats=repeats)


def infer_shape_1(
    input_shape: Sequence[Dim] | None,
    tiles: ArrayLike | None = None,
    axis: ArrayLike | None = None,
) -> Shape:
    """The output shape of Tile-1, as far as it is known before there is data.

    >>> infer_shape_1(("N", 3), tiles=2, axis=1)
    ('N', 6)
    >>> infer_shape_1(("N", 3), tiles=2)
    (None, None)

    Parameters
    ----------
    input_shape : tuple of dimensions, or None
        As in `infer_shape`.
    tiles, axis : tensors of one element, or None
        As in `tile_1`; None where unknown.

    Returns
    -------
    tuple of dimensions, or None where the input's rank is unknown

    Raises
    ------
    TypeError, ValueError
        As `tile_1` would raise on every input of this shape.

    Source: ONNX Tile-1, which has no shape inference of its own.
    """
    shape = as_shape(_TILE_1.name, input_shape)
    count = None if tiles is None else _whole_number("tiles", tiles, shape)
    position = None if axis is None else _whole_number("axis", axis, shape)
    if count is not None and not 0 <= count < 2**63:
        what = "negative tiles" if count < 0 else "tiles overflows int64"
        raise error(ValueError, _TILE_1.name, what, shape, None, tiles=tiles)
    if shape is None:
        return None
    rank = len(shape)
    if position is None and rank < 2:
        position = 0  # no choice
    if position is not None and not -rank <= position < rank:
        raise _no_such_axis(position, shape, None)
    # With the axis unknown, every axis has tiles or 1: known only where both are the same.
    repeats: list[Dim] = [1 if position is not None or count == 1 else None] * rank
    if position is not None:
        repeats[position] = count
    return tile_dims(_TILE_1.name, shape, tuple(repeats), tiles=tiles, axis=axis)


# --- what the versions share ---------------------------------------------------------------------

_Tile: TypeAlias = Callable[..., NDArray[Any]]

_SINCE: dict[int, tuple[_Version, _Tile]] = {
    1: (_TILE_1, tile_1),
    6: (_TILE_6, tile_6),
    13: (_TILE_13, tile_13),
}


def _for_opset(opset: SupportsIndex) -> tuple[_Version, _Tile]:
    try:
        number = as_integer(opset)
    except (TypeError, ValueError) as reason:
        if type(reason) not in (TypeError, ValueError):  # the object's own
            raise
        raise TypeError(f"ONNX Tile: opset is {reason}") from None
    if number < 1:
        raise ValueError(f"ONNX Tile: opset {shown(number)}, expected 1 or more")
    return _SINCE[max(since for since in _SINCE if since <= number)]


def _with_repeats(opset: SupportsIndex) -> _Version:
    version = _for_opset(opset)[0]
    if version is _TILE_1:
        what = f"opset {opset} means Tile-1, which takes tiles and axis: expected opset 6 or more"
        raise ValueError(f"ONNX Tile: {what}, or tile_1 and infer_shape_1")
    return version


def legal_repeats(
    input: NDArray[Any], repeats: ArrayLike, opset: SupportsIndex = 13
) -> tuple[str, tuple[int, ...]]:
    """The version's name, and the repeats that it allows for the input, where another does the tiling.

    >>> import numpy as np
    >>> legal_repeats(np.ones((2, 3)), [2, 2], opset=12)
    ('ONNX Tile-6', (2, 2))
    """
    version = _with_repeats(opset)
    return version.name, _counts(version, input, repeats)


def _tile(
    version: _Version,
    input: ArrayLike,
    repeats: ArrayLike,
    out: NDArray[Any] | None,
    threads: int | None,
) -> NDArray[Any]:
    tensor = input if type(input) is ndarray else as_tensor(version.name, input)
    counts = _counts(version, tensor, repeats)
    try:
        return tile_array(tensor, counts, out, threads=threads)
    except (TypeError, ValueError, MemoryError) as reason:
        raise renamed(reason, version.name) from None


def _counts(version: _Version, tensor: NDArray[Any], repeats: ArrayLike) -> tuple[int, ...]:
    if tensor.dtype.type not in version.classes:
        _check_rare_type(version, tensor)
    return as_repeats(version.name, repeats, tensor, INT64, tensor.ndim)


def _check_rare_type(version: _Version, tensor: NDArray[Any]) -> None:
    if (found := element_type(tensor)) not in version.types:
        what = f"element type {found}, expected {', '.join(version.types.values())}"
        if found == "object":
            what += " (an object array counts as strings where every item is a str)"
        what += "; tilecore.tile takes every dtype"
        raise error(TypeError, version.name, what, tensor.shape, tensor.dtype)


def _whole_number(name: str, value: Any, shape: object) -> int:
    """`tiles` or `axis`, an integer or a float that is one, in a tensor of one element."""

    def refuse(kind: type[Exception], what: str) -> Exception:
        return error(kind, _TILE_1.name, f"{name} {what}", shape, None, **{name: value})

    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    if type(value) is int:  # of any size: what no int64 holds is out of range, not of another type
        return value
    tensor = as_tensor(_TILE_1.name, value, name)
    if tensor.dtype.kind not in "iuf":
        raise refuse(TypeError, f"has dtype {tensor.dtype}, expected an integer or a float type")
    if tensor.size != 1:
        raise refuse(ValueError, f"has {tensor.size} elements, expected 1")
    number: Any = tensor.reshape(())[()]
    if not number.is_integer():
        raise refuse(TypeError, f"is {number}, expected a whole number")
    return int(number)


def _no_such_axis(axis: int, shape: Sequence[Any], dtype: object) -> ValueError:
    rank = len(shape)
    expected = f"expected {-rank} to {rank - 1}" if rank else "and a 0-D input has no axis"
    return error(ValueError, _TILE_1.name, f"axis {shown(axis)}, {expected}", shape, dtype)
