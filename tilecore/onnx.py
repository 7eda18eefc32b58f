"""ONNX Tile, versions 1, 6 and 13 (https://onnx.ai/onnx/operators/onnx__Tile.html).

`output[i] = input[i mod input.shape]`. `repeats` is a 1-D int64 tensor with one entry for each axis of
the input; nothing is broadcast. Tile-1 repeats one axis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsIndex, TypeAlias, overload

from numpy.typing import ArrayLike, NDArray

import tilecore  # noqa: F401 - first: another thread may be importing the package
from tilecore._core.arrays import tile_plain
from tilecore._core.request.arguments import read_array
from tilecore._core.request.errors import RequestError, format_error, short_repr
from tilecore._core.request.integers import read_count
from tilecore._dialects import dims
from tilecore._dialects.dialect import Array, Dialect, Option, Out, Repeats, T, Threads
from tilecore._dialects.dims import Dim, Shape, ShapeLike
from tilecore._dialects.tensors import INT64, check_type, make_types
from tilecore._dialects.version import Version

__all__ = ["for_opset", "infer_shape", "infer_shape_1", "supported_types", "tile", "tile_1", "tile_6", "tile_13"]
__dir__ = __all__.copy


def _make_version(name: str, types: str) -> Version:
    words = {"float32": "float", "float64": "double", "str": "string"}
    return Version(name, make_types(types, lambda word: f"tensor({words.get(word, word)})"), INT64)


_INTEGERS, _FLOATS = "uint8 uint16 uint32 uint64 int8 int16 int32 int64", "float16 float32 float64"
_OTHERS = "str bool complex64 complex128"
_TILE_1 = _make_version("ONNX Tile-1", _FLOATS)
_TILE_6 = _make_version("ONNX Tile-6", f"{_INTEGERS} {_FLOATS} {_OTHERS}")
_TILE_13 = _make_version("ONNX Tile-13", f"{_INTEGERS} bfloat16 {_FLOATS} {_OTHERS}")


@overload
def tile(input: NDArray[T], repeats: Repeats, out: None = None, *, threads: Threads = None) -> NDArray[T]: ...
@overload
def tile(input: ArrayLike, repeats: Repeats, out: None = None, *, threads: Threads = None) -> Array: ...
@overload
def tile(input: ArrayLike, repeats: Repeats, out: Out, *, threads: Threads = None) -> Out: ...
def tile(input: ArrayLike, repeats: Repeats, out: Array | None = None, *, threads: Threads = None) -> Array:
    """Tile the input as ONNX Tile-13 does.

    >>> import numpy as np
    >>> import tilecore
    >>> tilecore.onnx.tile(np.array([[1, 2], [3, 4]]), [1, 2])  # (2, 2) -> (2, 4)
    array([[1, 2, 1, 2],
           [3, 4, 3, 4]])
    >>> tilecore.onnx.tile(np.ones((2, 3)), [2])                # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: ONNX Tile-13: repeats has length 1, expected the input's rank 2; input shape ...

    Parameters
    ----------
    input : tensor of any shape
        One of `supported_types(13)`, in either byte order. A tensor(string) is a `U` array, a StringDType array, or
        an object array of only `str`.
    repeats : 1-D int64 tensor, or list or tuple of ints, shape (rank,)
        Repeats of each axis; 0 gives an empty axis.
    out, threads
        As in `tilecore.tile`.

    Returns
    -------
    array of shape `input.shape * repeats` and the input's dtype

    Raises
    ------
    TypeError
        An element type that is not supported; repeats that are not int64.
    ValueError
        Repeats that are not 1-D, not one for each axis, negative, or too large for int64.
    MemoryError
        A result above `tilecore.get_max_bytes()`.

    Source: ONNX Tile-13, in opsets 13 to 28. `for_opset` returns the function for another opset.
    """
    return _TILE_13.tile(input, repeats, out, threads)


@overload
def tile_6(input: NDArray[T], repeats: Repeats, out: None = None, *, threads: Threads = None) -> NDArray[T]: ...
@overload
def tile_6(input: ArrayLike, repeats: Repeats, out: None = None, *, threads: Threads = None) -> Array: ...
@overload
def tile_6(input: ArrayLike, repeats: Repeats, out: Out, *, threads: Threads = None) -> Out: ...
def tile_6(input: ArrayLike, repeats: Repeats, out: Array | None = None, *, threads: Threads = None) -> Array:
    """Tile the input as ONNX Tile-6 does: `tile` without bfloat16.

    >>> import numpy as np
    >>> tile_6(np.array(["a", "b"]), [2])                       # (2,) -> (4,)
    array(['a', 'b', 'a', 'b'], dtype='<U1')

    Parameters, Returns, Raises: as `tile`, with `supported_types(6)`.

    Source: ONNX Tile-6, in opsets 6 to 12.
    """
    return _TILE_6.tile(input, repeats, out, threads)


@overload
def tile_1(
    input: NDArray[T], tiles: ArrayLike, axis: ArrayLike, out: None = None, *, threads: Threads = None
) -> NDArray[T]: ...
@overload
def tile_1(
    input: ArrayLike, tiles: ArrayLike, axis: ArrayLike, out: None = None, *, threads: Threads = None
) -> Array: ...
@overload
def tile_1(input: ArrayLike, tiles: ArrayLike, axis: ArrayLike, out: Out, *, threads: Threads = None) -> Out: ...
def tile_1(
    input: ArrayLike, tiles: ArrayLike, axis: ArrayLike, out: Array | None = None, *, threads: Threads = None
) -> Array:
    """Repeat one axis of the input, as ONNX Tile-1 does.

    >>> import numpy as np
    >>> tile_1(np.ones((2, 3), np.float32), 3, axis=1).shape
    (2, 9)

    Parameters
    ----------
    input : tensor of rank 1 or more
        One of `supported_types(1)`.
    tiles, axis : tensors of one element
        The number of repeats, and the axis; a negative axis counts from the end. Integers, or whole numbers of any
        float type: the specification mentions both, and models use both.
    out, threads
        As in `tile`.

    Returns
    -------
    array of the input's shape, with `input.shape[axis] * tiles` on the axis

    Raises
    ------
    TypeError
        An element type that is not supported; tiles or an axis that is not a whole number.
    ValueError
        Tiles or an axis of more than one element; an axis out of range; negative tiles; overflow.
    MemoryError
        A result above `tilecore.get_max_bytes()`.

    Source: ONNX Tile-1, in opsets 1 to 5.
    """
    tensor = None
    try:
        tensor = read_array(input)
        check_type(tensor, _TILE_1.types)
        count = tiles if type(tiles) is int else _read_whole_number("tiles", tiles)
        position = axis if type(axis) is int else _read_whole_number("axis", axis)
        repeats = [1] * tensor.ndim
        repeats[_check_axis(position, tensor.ndim)] = count
        return tile_plain(tensor, tuple(repeats), out, threads=threads)
    except RequestError as error:
        names = {"repeats": "tiles"}
        raise format_error(error, _TILE_1.name, tensor, names, tiles=tiles, axis=axis) from error.__cause__


tile_13 = tile


def for_opset(opset: SupportsIndex) -> Callable[..., Array]:
    """Return the Tile function of an opset.

    >>> for_opset(11) is tile_6, for_opset(28) is tile
    (True, True)

    Raises
    ------
    TypeError, ValueError
        An opset that is not an int, or below 1. Newer opsets than 28 are no error: they have the newest Tile.
    """
    return _find_version(opset)[1]


def supported_types(opset: SupportsIndex = 13) -> tuple[str, ...]:
    """The element types of this opset's Tile, named and ordered as in its schema.

    >>> supported_types(opset=5)
    ('tensor(float16)', 'tensor(float)', 'tensor(double)')
    """
    return tuple(_find_version(opset)[0].types.names.values())


def infer_shape(
    input_shape: ShapeLike,
    repeats: ShapeLike | Array = None,
    *,
    repeats_shape: ShapeLike = None,
    opset: SupportsIndex = 13,
    products: bool = False,
) -> Shape:
    """The output shape of Tile-6 and Tile-13, as far as it is known without data; None for an unknown rank.

    >>> infer_shape((4, 5, 6), [1, 2, 3])
    (4, 10, 18)
    >>> infer_shape(("N", 3, 0), [1, None, None])
    ('N', None, 0)
    >>> infer_shape(("N", "2*M"), [2, 3], products=True)
    ('2*N', '6*M')

    Parameters
    ----------
    input_shape : tuple of dimensions, onnx.TensorShapeProto, or None
        A dimension is an int, a str (a symbol), or None if unknown. None for the whole shape means an unknown rank.
    repeats : sequence of dimensions, onnx.TensorShapeProto, int64 array, or None
        The repeats, as far as they are known.
    repeats_shape : tuple of one dimension, onnx.TensorShapeProto, or None
        The shape of the repeats tensor. Its one dimension is the rank of the input.
    opset : int
        6 or more; `infer_shape_1` is for older ones.
    products : bool
        Write products of symbols as "2*N" instead of None, as onnxruntime's symbolic shape inference does; this needs
        SymPy.

    Raises
    ------
    TypeError, ValueError
        If `tile` raises it for every input of this shape. As in ONNX, elements and bytes are not counted.
    ImportError
        With `products=True`, if SymPy is not installed.

    Source: ONNX Tile-6 and Tile-13, shape inference.
    """
    version = _require_repeats(opset)
    try:
        dims.check_products(products)
        shape = dims.as_shape(input_shape, "input_shape")
        known = dims.match_repeats(shape, *dims.as_repeats_dims(repeats, repeats_shape, INT64))
        return None if known is None else dims.tile_dims(*known, products)
    except RequestError as error:
        given = {"input_shape": input_shape, "repeats": repeats, "repeats_shape": repeats_shape}
        raise format_error(error, version.name, **given) from error.__cause__


def infer_shape_1(
    input_shape: ShapeLike, tiles: ArrayLike | None = None, axis: ArrayLike | None = None, *, products: bool = False
) -> Shape:
    """The output shape of Tile-1, as far as it is known without data; None for an unknown rank.

    >>> infer_shape_1(("N", 3), tiles=2, axis=1)
    ('N', 6)
    >>> infer_shape_1(("N", 3), tiles=2)
    (None, None)

    Parameters
    ----------
    input_shape, products
        As in `infer_shape`.
    tiles, axis : tensors of one element, or None
        As in `tile_1`; None if unknown.

    Raises
    ------
    TypeError, ValueError
        If `tile_1` raises it for every input of this shape.

    Source: ONNX Tile-1; its schema infers no shape.
    """
    try:
        dims.check_products(products)
        shape = dims.as_shape(input_shape, "input_shape")
        count = None if tiles is None else _read_whole_number("tiles", tiles)
        position = None if axis is None else _read_whole_number("axis", axis)
        if count is not None and not 0 <= count < 2**63:
            raise RequestError(ValueError, f"must be 0 or more, and fit int64, got {short_repr(count)}", "tiles")
        if shape is None:
            return None
        rank = len(shape)
        if position is None and rank < 2:
            position = 0  # the only axis
        # If the axis is unknown, each axis has either `tiles` repeats or 1.
        repeats: list[Dim] = [1 if position is not None or count == 1 else None] * rank
        if position is not None:
            repeats[_check_axis(position, rank)] = count
        return dims.tile_dims(shape, tuple(repeats), products)
    except RequestError as error:
        given = {"input_shape": input_shape, "tiles": tiles, "axis": axis}
        raise format_error(error, _TILE_1.name, **given) from error.__cause__


_Entry: TypeAlias = tuple[Version, Callable[..., Array]]  # a version and its function
_SINCE: dict[int, _Entry] = {1: (_TILE_1, tile_1), 6: (_TILE_6, tile_6), 13: (_TILE_13, tile_13)}


def _find_version(opset: SupportsIndex) -> _Entry:
    number = read_count("ONNX Tile: opset", opset)
    if number < 1:
        raise ValueError(f"ONNX Tile: opset {short_repr(number)}, expected 1 or more")
    return _SINCE[max(since for since in _SINCE if since <= number)]


def _require_repeats(opset: SupportsIndex = 13) -> Version:
    version = _find_version(opset)[0]
    if version is _TILE_1:
        what = "means Tile-1, which takes tiles and axis: use opset 6 or higher, or tile_1 and infer_shape_1"
        raise ValueError(f"ONNX Tile: opset {opset} {what}")
    return version


DIALECT = Dialect(
    "ONNX",
    _require_repeats,
    ("one repeat for each axis", [1, 2]),
    {"opset": Option(int, "N", "the opset of ONNX, 6 or higher")},
)


def _read_whole_number(argument: str, value: Any) -> int:
    """`tiles` or `axis`: an integer, or a float that is one, in a tensor of one element."""
    if isinstance(value, (list, tuple)):
        items = tuple(value)  # a copy, because another thread may change a list meanwhile
        value = items[0] if len(items) == 1 else items
    if type(value) is int:  # of any size: beyond int64 the error is about its range, not its type
        return value
    tensor = read_array(value, argument)
    if tensor.dtype.kind not in "iuf":
        what = f"has dtype {short_repr(tensor.dtype)}, expected an integer or a float type"
        raise RequestError(TypeError, what, argument)
    if tensor.size != 1:
        raise RequestError(ValueError, f"has {tensor.size} elements, expected 1", argument)
    number = tensor.item()
    if tensor.dtype.kind == "f" and not number.is_integer():
        raise RequestError(TypeError, f"must be a whole number, got {number}", argument)
    return int(number)


def _check_axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        expected = f"expected {-rank} to {rank - 1}" if rank else "and a 0-D input has no axis"
        raise RequestError(ValueError, f"is {short_repr(axis)}, {expected}", "axis")
    return axis
