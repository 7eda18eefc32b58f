from collections.abc import Iterable
from typing import Any, Protocol, SupportsIndex, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

_Integers: TypeAlias = SupportsIndex | Iterable[SupportsIndex]
_Axes: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...] | None
_Threads: TypeAlias = SupportsIndex | None
# Without defaults: pyright would fall back on them if a result is assigned to a variable of another dtype.
_Scalar = TypeVar("_Scalar", bound=np.generic)
_Scalar_co = TypeVar("_Scalar_co", bound=np.generic, covariant=True)
_Out = TypeVar("_Out", bound=NDArray[Any])
_Masked: TypeAlias = np.ma.MaskedArray[Any, np.dtype[_Scalar]]

class _HasDtype(Protocol[_Scalar_co]):
    def __array__(self) -> np.ndarray[Any, np.dtype[_Scalar_co]]: ...

@overload
def tile(
    a: _Masked[_Scalar], reps: _Integers, out: None = None, *, axis: _Axes = None, threads: _Threads = None
) -> _Masked[_Scalar]: ...
@overload
def tile(
    a: _HasDtype[_Scalar], reps: _Integers, out: None = None, *, axis: _Axes = None, threads: _Threads = None
) -> NDArray[_Scalar]: ...
@overload
def tile(
    a: ArrayLike, reps: _Integers, out: None = None, *, axis: _Axes = None, threads: _Threads = None
) -> NDArray[Any]: ...
@overload
def tile(a: ArrayLike, reps: _Integers, out: _Out, *, axis: _Axes = None, threads: _Threads = None) -> _Out: ...
@overload
def tile_region(
    a: _HasDtype[_Scalar],
    reps: _Integers | None,
    start: _Integers,
    stop: _Integers,
    out: None = None,
    *,
    axis: _Axes = None,
    threads: _Threads = None,
) -> NDArray[_Scalar]: ...
@overload
def tile_region(
    a: ArrayLike,
    reps: _Integers | None,
    start: _Integers,
    stop: _Integers,
    out: None = None,
    *,
    axis: _Axes = None,
    threads: _Threads = None,
) -> NDArray[Any]: ...
@overload
def tile_region(
    a: ArrayLike,
    reps: _Integers | None,
    start: _Integers,
    stop: _Integers,
    out: _Out,
    *,
    axis: _Axes = None,
    threads: _Threads = None,
) -> _Out: ...
@overload
def tile_view(a: _HasDtype[_Scalar], reps: _Integers, *, axis: _Axes = None) -> NDArray[_Scalar]: ...
@overload
def tile_view(a: ArrayLike, reps: _Integers, *, axis: _Axes = None) -> NDArray[Any]: ...
@overload
def tile_mapped(a: _Masked[_Scalar], reps: _Integers, *, axis: _Axes = None) -> _Masked[_Scalar]: ...
@overload
def tile_mapped(a: _HasDtype[_Scalar], reps: _Integers, *, axis: _Axes = None) -> NDArray[_Scalar]: ...
@overload
def tile_mapped(a: ArrayLike, reps: _Integers, *, axis: _Axes = None) -> NDArray[Any]: ...
def output_shape(shape: _Integers, reps: _Integers, *, axis: _Axes = None) -> tuple[int, ...]: ...
def tile_array(
    array: NDArray[Any], reps: _Integers, out: NDArray[Any] | None = None, threads: _Threads = None
) -> NDArray[Any]: ...
def count_repeats(value: object, numbers: int) -> int: ...
def repeats_of(value: object, numbers: int) -> tuple[int, ...] | None: ...
def planned_shape(shape: _Integers, reps: _Integers, axis: _Axes = None) -> tuple[int, ...]: ...
