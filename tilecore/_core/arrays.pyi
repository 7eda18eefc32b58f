from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Never, Protocol, SupportsIndex, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

_Int: TypeAlias = SupportsIndex | None

class _Index(SupportsIndex, Hashable, Protocol):
    """An integer. No array is hashable, and for mypy each supports `__index__`."""

# Iterable is left out: arrays of any dtype are iterable.
_Ints: TypeAlias = _Index | Sequence[SupportsIndex] | Iterator[SupportsIndex] | NDArray[np.integer[Any]]
_Reps: TypeAlias = _Ints | None
_Axes: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...] | None
# These have no defaults: pyright would fall back on them if a result is assigned to a variable of another dtype.
_T = TypeVar("_T", bound=np.generic)
_T_co = TypeVar("_T_co", bound=np.generic, covariant=True)
_Out = TypeVar("_Out", bound=NDArray[Any])
_Ma: TypeAlias = np.ma.MaskedArray[Any, np.dtype[_T]]

class _Array(Protocol[_T_co]):
    def __array__(self) -> np.ndarray[Any, np.dtype[_T_co]]: ...

# The rank of what `tile` returns, up to 4. Constraints, because the type has the number of axes and not their lengths.
_S = TypeVar("_S", bound=tuple[Any, ...])
_Of: TypeAlias = np.ndarray[_S, np.dtype[_T]]
_1: TypeAlias = tuple[int]
_2: TypeAlias = tuple[int, int]
_3: TypeAlias = tuple[int, int, int]
_4: TypeAlias = tuple[int, int, int, int]
_From1 = TypeVar("_From1", _1, _2, _3, _4)
_From2 = TypeVar("_From2", _2, _3, _4)
_From3 = TypeVar("_From3", _3, _4)
_Unknown: TypeAlias = tuple[Never, Never, Never, Never]  # else an unknown rank would be each of these
_Plain: TypeAlias = int | tuple[int, ...]  # not all _Ints: mypy blames the first overload that takes the wrong repeats

@overload
def tile(a: _Ma[_T], reps: _Ints, out: None = None, *, axis: _Axes = None, threads: _Int = None) -> _Ma[_T]: ...
@overload
def tile(a: _Of[_Unknown, _T], reps: _Plain, out: None = None, *, threads: _Int = None) -> NDArray[_T]: ...
@overload
def tile(a: _Of[_From1, _T], reps: int | _1, out: None = None, *, threads: _Int = None) -> _Of[_From1, _T]: ...
@overload
def tile(a: _Of[_From2, _T], reps: _2, out: None = None, *, threads: _Int = None) -> _Of[_From2, _T]: ...
@overload
def tile(a: _Of[_From3, _T], reps: _3, out: None = None, *, threads: _Int = None) -> _Of[_From3, _T]: ...
@overload
def tile(a: _T | _Of[_1, _T], reps: _From2, out: None = None, *, threads: _Int = None) -> _Of[_From2, _T]: ...
@overload
def tile(a: _Of[_2, _T], reps: _From3, out: None = None, *, threads: _Int = None) -> _Of[_From3, _T]: ...
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
def tile_plain(
    array: NDArray[Any], reps: object, out: object = None, axis: object = None, threads: object = None
) -> NDArray[Any]: ...
