from collections.abc import Iterable
from typing import Any, SupportsIndex, TypeAlias, final

from numpy import dtype
from numpy.typing import ArrayLike, DTypeLike, NDArray

_Integers: TypeAlias = SupportsIndex | Iterable[SupportsIndex]

@final
class TilePlan:
    def __new__(
        cls,
        shape: _Integers,
        reps: _Integers,
        dtype: DTypeLike,
        *,
        axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    ) -> TilePlan: ...
    @property
    def input_shape(self) -> tuple[int, ...]: ...
    @property
    def output_shape(self) -> tuple[int, ...]: ...
    @property
    def reps(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> dtype[Any]: ...
    @property
    def nbytes(self) -> int: ...
    def __call__(
        self,
        a: ArrayLike,
        out: NDArray[Any] | None = None,
        *,
        threads: SupportsIndex | None = None,
    ) -> NDArray[Any]: ...
    def region(
        self,
        a: ArrayLike,
        start: _Integers,
        stop: _Integers,
        out: NDArray[Any] | None = None,
        *,
        threads: SupportsIndex | None = None,
    ) -> NDArray[Any]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
