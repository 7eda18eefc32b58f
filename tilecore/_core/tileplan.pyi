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
    """A tiling planned once, for loops over many arrays of one shape and dtype.

    >>> import numpy, tilecore
    >>> plan = tilecore.TilePlan((2, 3), (2, 2), "float32")      # (2, 3) -> (4, 6)
    >>> plan.output_shape, plan.nbytes
    ((4, 6), 96)
    >>> plan.tile(numpy.ones((2, 3), "float32")).shape
    (4, 6)
    >>> plan.region(numpy.ones((2, 3), "float32"), (1, 1), (3, 6)).shape
    (2, 5)
    >>> plan.batch([numpy.ones((2, 3), "float32"), numpy.zeros((2, 3), "float32")]).shape
    (2, 4, 6)

    Immutable, comparable, hashable, picklable, and safe from many threads at once. It may describe
    a result larger than memory: its regions need not be.

    Parameters
    ----------
    shape : int or iterable of int
        Of the arrays to tile.
    reps : int or iterable of int
        As in `tile`.
    dtype : dtype_like
        Of the arrays to tile.
    axis : int or tuple of int, optional
        As in `tile`.

    Raises
    ------
    TypeError, ValueError
        As `tile`, for the shape and the reps.

    Source: tilecore; the values are those of NumPy 2, `numpy.tile`.
    """

    @overload
    def __new__(
        cls,
        shape: _Integers,
        reps: _Integers,
        dtype: type[_Scalar] | np.dtype[_Scalar],
        *,
        axis: _Axes = None,
    ) -> TilePlan[_Scalar]: ...
    @overload
    def __new__(
        cls, shape: _Integers, reps: _Integers, dtype: DTypeLike, *, axis: _Axes = None
    ) -> TilePlan[Any]: ...
    @property
    def input_shape(self) -> tuple[int, ...]: ...
    @property
    def output_shape(self) -> tuple[int, ...]: ...
    @property
    def reps(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[_Scalar]: ...
    @property
    def nbytes(self) -> int:
        """Bytes of the whole result."""
    @overload
    def tile(
        self, a: ArrayLike, out: None = None, *, threads: SupportsIndex | None = None
    ) -> NDArray[_Scalar]:
        """tile(a, self.reps, out, threads=threads), for an `a` of the plan's shape and dtype."""
    @overload
    def tile(self, a: ArrayLike, out: _Out, *, threads: SupportsIndex | None = None) -> _Out: ...
    @overload
    def region(
        self,
        a: ArrayLike,
        start: _Integers,
        stop: _Integers,
        out: None = None,
        *,
        threads: SupportsIndex | None = None,
    ) -> NDArray[_Scalar]:
        """tile_region(a, self.reps, start, stop, out, threads=threads), for such an `a`."""
    @overload
    def region(
        self,
        a: ArrayLike,
        start: _Integers,
        stop: _Integers,
        out: _Out,
        *,
        threads: SupportsIndex | None = None,
    ) -> _Out: ...
    @overload
    def batch(
        self,
        arrays: Sequence[ArrayLike] | ArrayLike,
        out: None = None,
        *,
        threads: SupportsIndex | None = None,
    ) -> NDArray[_Scalar]:
        """The tilings of many arrays, in one array.

        >>> import numpy, tilecore
        >>> plan = tilecore.TilePlan((28, 28, 1), (1, 1, 3), "uint8")       # gray to RGB
        >>> images = [numpy.full((28, 28, 1), k, "uint8") for k in range(64)]
        >>> plan.batch(images).shape
        (64, 28, 28, 3)
        >>> plan.batch(numpy.zeros((5, 28, 28, 1), "uint8")).shape
        (5, 28, 28, 3)

        ``result[i] = plan.tile(arrays[i])``, in one call, most of it without the GIL: the ``collate_fn``
        of a data loader. All is checked before anything is written.

        Parameters
        ----------
        arrays : list or tuple of array_like, or array_like
            Arrays of the plan's shape and dtype, of any strides; or one array of shape ``(n, *shape)``.
            Other iterables are refused, for they may have no end: ``list(...)`` reads them.
        out : numpy.ndarray, optional
            Where to write; of shape ``(n, *output_shape)``, otherwise as in `tile`.
        threads : int, optional
            As in `tile`; what counts is the size of the whole result.

        Returns
        -------
        numpy.ndarray
            `out` if given, else a new C-contiguous array of shape ``(n, *output_shape)``.

        Raises
        ------
        TypeError, ValueError, MemoryError
            As `tile`, for the whole result; an array of another shape or dtype is named by its index.

        Source: tilecore; the values are those of NumPy 2, `numpy.tile`.
        """
    @overload
    def batch(
        self,
        arrays: Sequence[ArrayLike] | ArrayLike,
        out: _Out,
        *,
        threads: SupportsIndex | None = None,
    ) -> _Out: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __class_getitem__(cls, item: Any, /) -> GenericAlias: ...
