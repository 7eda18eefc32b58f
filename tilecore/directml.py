"""DirectML DML_TILE_OPERATOR_DESC, feature levels 1_0 and above
(https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_tile_operator_desc).

`output[i] = input[i mod input.shape]`. Every axis has a repeat of 1 or more. Every size and the number of elements fit
in 32 bits: a tensor "may not exceed (2^32 - 1) elements" (DML_BUFFER_TENSOR_DESC, TotalTensorSizeInBytes). The feature
level decides the ranks and data types. Tests check this against tables written from the documentation, and never ran
DirectML itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import intern
from typing import overload

from numpy.typing import ArrayLike, NDArray

import tilecore  # noqa: F401 - first: another thread may be importing the package
from tilecore._core.request.errors import RequestError, format_error, short_repr, type_name
from tilecore._dialects import dims
from tilecore._dialects.dialect import Array, Dialect, Option, Out, Repeats, T, Threads
from tilecore._dialects.dims import Shape, ShapeLike
from tilecore._dialects.tensors import make_types
from tilecore._dialects.version import Version

__all__ = ["infer_shape", "supported_types", "tile"]
__dir__ = __all__.copy

_UINT_MAX = 2**32 - 1
_ONLY_4, _1_TO_8 = range(4, 5), range(1, 9)
_FLOATS = make_types("float32 float16", str.upper)
_TO_32 = make_types("float32 float16 int32 int16 int8 uint32 uint16 uint8", str.upper)
_TO_64 = make_types("float32 float16 int64 int32 int16 int8 uint64 uint32 uint16 uint8", str.upper)

# From each of these feature levels on: the ranks, and the data types in the specification's order.
_SINCE = {"1_0": (_ONLY_4, _FLOATS), "2_1": (_ONLY_4, _TO_32), "3_1": (_1_TO_8, _TO_32), "4_1": (_1_TO_8, _TO_64)}

_NAMED = "1_0 2_0 2_1 3_0 3_1 4_0 4_1 5_0 5_1 5_2 6_0 6_1 6_2 6_3 6_4"  # the levels that Microsoft has named


@overload
def tile(
    input: NDArray[T], repeats: Repeats, out: None = None, *, feature_level: str = "4_1", threads: Threads = None
) -> NDArray[T]: ...
@overload
def tile(
    input: ArrayLike, repeats: Repeats, out: None = None, *, feature_level: str = "4_1", threads: Threads = None
) -> Array: ...
@overload
def tile(
    input: ArrayLike, repeats: Repeats, out: Out, *, feature_level: str = "4_1", threads: Threads = None
) -> Out: ...
def tile(
    input: ArrayLike, repeats: Repeats, out: Array | None = None, *, feature_level: str = "4_1", threads: Threads = None
) -> Array:
    """Tile the input as DirectML does.

    >>> import numpy as np
    >>> import tilecore
    >>> image = np.array([[[[1, 2, 3], [4, 5, 6]]]], np.float32)
    >>> tilecore.directml.tile(image, [1, 1, 3, 3])[0, 0, :3]   # (1, 1, 2, 3) -> (1, 1, 6, 9)
    array([[1., 2., 3., 1., 2., 3., 1., 2., 3.],
           [4., 5., 6., 4., 5., 6., 4., 5., 6.],
           [1., 2., 3., 1., 2., 3., 1., 2., 3.]], dtype=float32)

    Parameters
    ----------
    input : tensor of rank 1 to 8 (4 before level 3_1), with no empty axis
        One of `supported_types(feature_level)`, in either byte order.
    repeats : 1-D tensor of any integer type, or list or tuple of ints, shape (rank,)
        Repeats of each axis, 1 to 2**32 - 1.
    out, threads
        As in `tilecore.tile`.
    feature_level : str
        "1_0" to "6_4", as in the name DML_FEATURE_LEVEL_4_1.

    Returns
    -------
    array of shape `input.shape * repeats` and the input's dtype

    Raises
    ------
    TypeError
        A data type that the level does not support; repeats that are not integers.
    ValueError
        A rank that the level does not support; an empty axis; repeats that are not 1-D, not one for each
        axis, or out of range; sizes or a number of elements above 2**32 - 1.
    MemoryError
        A result above `tilecore.get_max_bytes()`.

    Source: DML_TILE_OPERATOR_DESC, Members and Tensor support; DML_BUFFER_TENSOR_DESC.
    """
    known = _VERSIONS.get(feature_level) if type(feature_level) is str else None
    return (known or _find_version(feature_level)).tile(input, repeats, out, threads)


def supported_types(feature_level: str = "4_1") -> tuple[str, ...]:
    """The data types of a feature level, named and ordered as in the specification.

    >>> supported_types("2_0")
    ('FLOAT32', 'FLOAT16')
    """
    return tuple(_find_version(feature_level).types.names.values())


def infer_shape(sizes: ShapeLike, repeats: ShapeLike | Array, *, feature_level: str = "4_1") -> Shape:
    """The output sizes, as far as they are known without data; None for an unknown rank.

    >>> infer_shape((1, 1, 2, 3), [1, 1, 3, 3])
    (1, 1, 6, 9)
    >>> infer_shape(("N", 3, None), [1, 2, 2])
    ('N', 6, None)

    Parameters
    ----------
    sizes : tuple of dimensions, or None
        A dimension is an int, a str (a symbol), or None if unknown. None for the whole shape means an unknown rank.
    repeats : sequence of dimensions, 1-D integer array, or None
        The repeats, as far as they are known.
    feature_level : str
        As in `tile`.

    Raises
    ------
    TypeError, ValueError
        If `tile` raises it for every input of these sizes.

    Source: as `tile`.
    """
    version = _find_version(feature_level)
    try:
        known = dims.match_repeats(dims.as_shape(sizes, "sizes"), *dims.as_repeats_dims(repeats, None, low=1))
        if known is None:
            return None
        # No size is 0, so unknown ones are at least 1.
        _check(version, *(tuple(dim if isinstance(dim, int) else 1 for dim in part) for part in known))
        return dims.tile_dims(*known)
    except RequestError as error:
        names = {"input": "sizes"}
        raise format_error(error, version.name, None, names, sizes=sizes, repeats=repeats) from error.__cause__


def _find_version(feature_level: str = "4_1") -> Version:
    if not isinstance(feature_level, str):
        kind = type_name(feature_level)
        raise TypeError(f"DirectML Tile: feature_level is of type {kind}, expected a str such as '4_1'")
    if feature_level not in _VERSIONS:
        raise ValueError(f"DirectML Tile: feature_level {short_repr(feature_level)}, expected a level such as {_NAMED}")
    return _VERSIONS[feature_level]


DIALECT = Dialect(
    "DirectML",
    _find_version,
    ("repeats of 1 or more", [1, 3]),
    {"feature_level": Option(str, "N_M", "the feature level of DirectML, such as 4_1")},
)


def _check(version: Version, shape: Sequence[int], repeats: tuple[int, ...]) -> tuple[int, ...]:
    """Raise an error for sizes that the level does not allow; else return the repeats."""
    least, largest = version.ranks[0], version.ranks[-1]
    if len(shape) not in version.ranks:
        expected = f"{least} to {largest}" if least < largest else least
        raise RequestError(ValueError, f"has rank {len(shape)}, expected {expected}", "input")
    elements = 1
    for axis, (size, repeat) in enumerate(zip(shape, repeats, strict=True)):
        if not 0 < repeat <= _UINT_MAX:
            raise RequestError(ValueError, f"must be 1 to {_UINT_MAX}, got {short_repr(repeat)}", "repeats", axis)
        if size == 0:
            raise RequestError(ValueError, "must not have an empty axis, but has size 0", "input", axis)
        elements *= size * repeat
        if elements > _UINT_MAX:
            raise RequestError(ValueError, f"the output would have more than {_UINT_MAX} elements, up to axis {axis}")
    return repeats


def _make_version(level: str) -> Version:
    ranks, types = _SINCE[max(since for since in _SINCE if since <= level)]
    name = f"DirectML Tile, feature level {level}"
    return Version(name, types, ranks=ranks, min_repeat=1, max_elements=_UINT_MAX, check=_check)


# Every level from 1_0 to 6_4, named or not, because programs make these texts from numbers; each follows the highest
# row of _SINCE that is not above it. The names are interned, so that a literal is found without comparing characters.
_VERSIONS = {level: _make_version(level) for level in (intern(f"{n // 10}_{n % 10}") for n in range(10, 65))}
