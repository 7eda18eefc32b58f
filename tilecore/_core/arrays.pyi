from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Protocol, SupportsIndex, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

_Int: TypeAlias = SupportsIndex | None

class _Index(SupportsIndex, Hashable, Protocol):
    """An integer. No array is hashable, and for mypy each supports `__index__`."""

# Not Iterable: arrays of any dtype are.
_Ints: TypeAlias = _Index | Sequence[SupportsIndex] | Iterator[SupportsIndex] | NDArray[np.integer[Any]]
_Reps: TypeAlias = _Ints | None
_Axes: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...] | None
# Without defaults: pyright would fall back on them if a result is assigned to a variable of another dtype.
_T = TypeVar("_T", bound=np.generic)
_T_co = TypeVar("_T_co", bound=np.generic, covariant=True)
_Out = TypeVar("_Out", bound=NDArray[Any])
_Ma: TypeAlias = np.ma.MaskedArray[Any, np.dtype[_T]]

class _Array(Protocol[_T_co]):
    def __array__(self) -> np.ndarray[Any, np.dtype[_T_co]]: ...

@overload
def tile(a: _Ma[_T], reps: _Ints, out: None = None, *, axis: _Axes = None, threads: _Int = None) -> _Ma[_T]: ...
@overload
def tile(a: _Array[_T], reps: _Ints, out: None = None, *, axis: _Axes = None, threads: _Int = None) -> NDArray[_T]: ...
@overload
def tile(a: ArrayLike, reps: _Ints, out: None = None, *, axis: _Axes = None, threads: _Int = None) -> NDArray[Any]: ...
@overload
def tile(a: ArrayLike, reps: _Ints, out: _Out, *, axis: _Axes = None, threads: _Int = None) -> _Out: ...
@overload
def tile_region(
    a: _Ma[_T], reps: _Reps, start: _Ints, stop: _Ints, out: None = None, *, axis: _Axes = None, threads: _Int = None
) -> _Ma[_T]: ...
@overload
def tile_region(
    a: _Array[_T], reps: _Reps, start: _Ints, stop: _Ints, out: None = None, *, axis: _Axes = None, threads: _Int = None
) -> NDArray[_T]: ...
@overload
def tile_region(
    a: ArrayLike, reps: _Reps, start: _Ints, stop: _Ints, out: None = None, *, axis: _Axes = None, threads: _Int = None
) -> NDArray[Any]: ...
@overload
def tile_region(
    a: ArrayLike, reps: _Reps, start: _Ints, stop: _Ints, out: _Out, *, axis: _Axes = None, threads: _Int = None
) -> _Out: ...
@overload
def tile_view(a: _Array[_T], reps: _Ints, *, axis: _Axes = None) -> NDArray[_T]: ...
@overload
def tile_view(a: ArrayLike, reps: _Ints, *, axis: _Axes = None) -> NDArray[Any]: ...
@overload
def tile_mapped(a: _Ma[_T], reps: _Ints, *, axis: _Axes = None) -> _Ma[_T]: ...
@overload
def tile_mapped(a: _Array[_T], reps: _Ints, *, axis: _Axes = None) -> NDArray[_T]: ...
@overload
def tile_mapped(a: ArrayLike, reps: _Ints, *, axis: _Axes = None) -> NDArray[Any]: ...
def tile_array(
    array: NDArray[Any], reps: object, out: object = None, axis: object = None, threads: object = None
) -> NDArray[Any]: ...
