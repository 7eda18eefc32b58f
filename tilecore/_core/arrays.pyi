from collections.abc import Iterable
from typing import Any, SupportsIndex, TypeAlias

from numpy.typing import ArrayLike, NDArray

_Integers: TypeAlias = SupportsIndex | Iterable[SupportsIndex]
_Axes: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...] | None

def tile(
    a: ArrayLike,
    reps: _Integers,
    out: NDArray[Any] | None = None,
    *,
    axis: _Axes = None,
    threads: SupportsIndex | None = None,
) -> NDArray[Any]: ...
def tile_region(
    a: ArrayLike,
    reps: _Integers,
    start: _Integers,
    stop: _Integers,
    out: NDArray[Any] | None = None,
    *,
    axis: _Axes = None,
    threads: SupportsIndex | None = None,
) -> NDArray[Any]: ...
def tile_view(a: ArrayLike, reps: _Integers, *, axis: _Axes = None) -> NDArray[Any]: ...
def tile_mapped(a: ArrayLike, reps: _Integers, *, axis: _Axes = None) -> NDArray[Any]: ...
def output_shape(shape: _Integers, reps: _Integers, *, axis: _Axes = None) -> tuple[int, ...]: ...
def tiled(
    array: NDArray[Any],
    reps: _Integers,
    out: NDArray[Any] | None = None,
    threads: SupportsIndex | None = None,
) -> NDArray[Any]: ...
def planned_shape(shape: _Integers, reps: _Integers, axis: _Axes = None) -> tuple[int, ...]: ...
