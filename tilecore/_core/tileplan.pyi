from collections.abc import Iterable, Sequence
from types import GenericAlias
from typing import Any, Generic, SupportsIndex, TypeAlias, final, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from typing_extensions import TypeVar

_Integers: TypeAlias = SupportsIndex | Iterable[SupportsIndex]
_Axes: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...] | None
_Scalar = TypeVar("_Scalar", bound=np.generic, default=Any)
_Out = TypeVar("_Out", bound=NDArray[Any])

@final
class TilePlan(Generic[_Scalar]):
    @overload
    def __new__(
        cls, shape: _Integers, reps: _Integers, dtype: type[_Scalar] | np.dtype[_Scalar], *, axis: _Axes = None
    ) -> TilePlan[_Scalar]: ...
    @overload
    def __new__(cls, shape: _Integers, reps: _Integers, dtype: DTypeLike, *, axis: _Axes = None) -> TilePlan[Any]: ...
    @property
    def input_shape(self) -> tuple[int, ...]: ...
    @property
    def output_shape(self) -> tuple[int, ...]: ...
    @property
    def reps(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[_Scalar]: ...
    @property
    def nbytes(self) -> int: ...
    @overload
    def tile(self, a: ArrayLike, out: None = None, *, threads: SupportsIndex | None = None) -> NDArray[_Scalar]: ...
    @overload
    def tile(self, a: ArrayLike, out: _Out, *, threads: SupportsIndex | None = None) -> _Out: ...
    @overload
    def region(
        self, a: ArrayLike, start: _Integers, stop: _Integers, out: None = None, *, threads: SupportsIndex | None = None
    ) -> NDArray[_Scalar]: ...
    @overload
    def region(
        self, a: ArrayLike, start: _Integers, stop: _Integers, out: _Out, *, threads: SupportsIndex | None = None
    ) -> _Out: ...
    @overload
    def batch(
        self, arrays: Sequence[ArrayLike] | ArrayLike, out: None = None, *, threads: SupportsIndex | None = None
    ) -> NDArray[_Scalar]: ...
    @overload
    def batch(
        self, arrays: Sequence[ArrayLike] | ArrayLike, out: _Out, *, threads: SupportsIndex | None = None
    ) -> _Out: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __class_getitem__(cls, item: Any, /) -> GenericAlias: ...
