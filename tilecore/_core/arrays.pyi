from collections.abc import Iterable
from typing import Any, Protocol, SupportsIndex, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import TypeVar

_Integers: TypeAlias = SupportsIndex | Iterable[SupportsIndex]
_Axes: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...] | None
_Scalar = TypeVar("_Scalar", bound=np.generic, default=Any)
_Scalar_co = TypeVar("_Scalar_co", bound=np.generic, covariant=True, default=Any)
_Out = TypeVar("_Out", bound=NDArray[Any])
_Masked: TypeAlias = np.ma.MaskedArray[Any, np.dtype[_Scalar]]

class _HasDtype(Protocol[_Scalar_co]):
    """An array or a NumPy scalar, whose dtype the result takes over."""

    def __array__(self) -> np.ndarray[Any, np.dtype[_Scalar_co]]: ...

@overload
def tile(
    a: _Masked[_Scalar],
    reps: _Integers,
    out: None = None,
    *,
    axis: _Axes = None,
    threads: SupportsIndex | None = None,
) -> _Masked[_Scalar]:
    """Repeat a whole array along its axes, as `numpy.tile` does.

    >>> import numpy, tilecore
    >>> x = numpy.array([[1, 2, 3],
    ...                  [4, 5, 6]])             # shape (2, 3)
    >>> tilecore.tile(x, (2, 2))                 # shape (4, 6)
    array([[1, 2, 3, 1, 2, 3],
           [4, 5, 6, 4, 5, 6],
           [1, 2, 3, 1, 2, 3],
           [4, 5, 6, 4, 5, 6]])
    >>> tilecore.tile(x, 2).shape                # the shorter of shape and reps gets 1s in front
    (2, 6)
    >>> tilecore.tile([7, 8], (2, 1, 2)).shape
    (2, 1, 4)
    >>> tilecore.tile(x, 3, axis=0).shape        # that axis alone
    (6, 3)

    ``out[i] = a[i mod a.shape]`` on every axis, bit for bit.

    Parameters
    ----------
    a : array_like
        Any shape, any dtype, any strides. A `numpy.ma.MaskedArray` is tiled with its mask; other
        subclasses, and arrays of other libraries with ``__array_function__``, give what
        `numpy.tile` makes of them. `numpy.memmap` counts as a plain array.
    reps : int or iterable of int
        Repeats per axis, 0 or more, at most 64 of them; in an order, so no set.
    out : numpy.ndarray, optional
        Where to write: of exactly the result's shape and dtype, writeable, sharing no memory with
        `a`; of any strides, where no two elements share a byte. Untouched where an error is raised
        before writing starts, which every error but a KeyboardInterrupt is.
    axis : int or tuple of int, optional
        The axes that `reps` are for, one repeat for each; the other axes are not repeated. Negative
        axes count from the end. By default the last repeat is for the last axis, and so on.
    threads : int, optional
        Write a result of 1.5 MiB or more by at most this many threads; default: see
        `get_num_threads`.

    Returns
    -------
    numpy.ndarray
        `out` if given, else a new, writeable, C-contiguous array that never shares memory with
        `a`. ``shape[k] * reps[k]`` long on axis ``k``; dtype as `a` (new strings of no characters have
        room for one, as everywhere in NumPy).

    Raises
    ------
    TypeError
        `reps` that are not integers (1.0 and True are none), an `out` that is no array or of another dtype.
    ValueError
        A negative repeat, more than 64 repeats, sizes that overflow 64 bits, an `out` of another
        shape, read-only, or that overlaps `a` or itself, `threads` below 1. An `axis` that the
        input does not have (`numpy.exceptions.AxisError`), or named twice.
    MemoryError
        A result larger than `get_max_bytes()`. Nothing has been allocated then.

    Notes
    -----
    The memory of a large result is kept when it dies, and used for a later one: see
    `recycled_bytes`. To read a large tiling, or to change little of it, `tile_mapped` is quicker
    by far; `tile_region` makes a part alone.

    Where it differs from `numpy.tile`, always towards safety: a negative repeat is an error also
    on empty input; ``1.0`` is not taken for 1; narrow NumPy integers never wrap
    (``numpy.uint8(100)`` on 3 elements gives 300); reps of rank 2 are an error; the result is
    C-contiguous and fresh whatever the reps; ``(100, 100)`` by ``(200, 0)`` allocates nothing.

    Source: NumPy 2, `numpy.tile`; `axis`: NumPy's issue 8879.
    """

@overload
def tile(
    a: _HasDtype[_Scalar],
    reps: _Integers,
    out: None = None,
    *,
    axis: _Axes = None,
    threads: SupportsIndex | None = None,
) -> NDArray[_Scalar]: ...
@overload
def tile(
    a: ArrayLike,
    reps: _Integers,
    out: None = None,
    *,
    axis: _Axes = None,
    threads: SupportsIndex | None = None,
) -> NDArray[Any]: ...
@overload
def tile(
    a: ArrayLike,
    reps: _Integers,
    out: _Out,
    *,
    axis: _Axes = None,
    threads: SupportsIndex | None = None,
) -> _Out: ...
@overload
def tile_region(
    a: _HasDtype[_Scalar],
    reps: _Integers | None,
    start: _Integers,
    stop: _Integers,
    out: None = None,
    *,
    axis: _Axes = None,
    threads: SupportsIndex | None = None,
) -> NDArray[_Scalar]:
    """A part of a tiling, without ever making the rest.

    >>> import numpy, tilecore
    >>> x = numpy.arange(6).reshape(2, 3)                       # shape (2, 3)
    >>> tilecore.tile_region(x, (10**8, 10**9), (5, 2), (7, 8))      # [5:7, 2:8] of 6e17 elements
    array([[5, 3, 4, 5, 3, 4],
           [2, 0, 1, 2, 0, 1]])
    >>> tilecore.tile_region(x, None, (-1, -2), (3, 4))         # the plane that x tiles; shape (4, 6)
    array([[4, 5, 3, 4, 5, 3],
           [1, 2, 0, 1, 2, 0],
           [4, 5, 3, 4, 5, 3],
           [1, 2, 0, 1, 2, 0]])

    ``tile(a, reps)[start[0]:stop[0], start[1]:stop[1], ...]``, at a cost in time and memory that
    depends on the region alone. Without reps, the part ``[start, stop)`` of the endless plane
    ``plane[i] = a[i mod a.shape]``: periodic windows, textures, and padding that wraps around, for
    ``start = (-before, ...)`` and ``stop = (a.shape[0] + after, ...)``.

    Parameters
    ----------
    a : array_like
        As in `tile`, but plain arrays only.
    reps : int or iterable of int, or None
        As in `tile`; None: without end, in both directions along every axis of `a`.
    start, stop : tuple of int
        One entry for each axis of the result; ``0 <= start <= stop <= shape``. Without `reps`,
        ``start <= stop``, and either may be negative.
    out : numpy.ndarray, optional
        Where to write; of shape ``stop - start``, otherwise as in `tile`.
    axis : int or tuple of int, optional
        As in `tile`; not without `reps`.
    threads : int, optional
        As in `tile`.

    Returns
    -------
    numpy.ndarray
        `out` if given, else a new C-contiguous array of shape ``stop - start``, dtype as `a`.

    Raises
    ------
    TypeError, ValueError, MemoryError
        As `tile`; a ValueError also for bounds outside the result, and for a part of the plane along
        an axis of `a` that is empty. The size limit counts the region.

    Source: tilecore; the values are those of NumPy 2, `numpy.tile`, and ``numpy.pad(mode="wrap")``.
    """

@overload
def tile_region(
    a: ArrayLike,
    reps: _Integers | None,
    start: _Integers,
    stop: _Integers,
    out: None = None,
    *,
    axis: _Axes = None,
    threads: SupportsIndex | None = None,
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
    threads: SupportsIndex | None = None,
) -> _Out: ...
@overload
def tile_view(a: _HasDtype[_Scalar], reps: _Integers, *, axis: _Axes = None) -> NDArray[_Scalar]:
    """A tiling without a copy, where strides can say it.

    >>> import numpy, tilecore
    >>> x = numpy.array([[1], [2]])                  # shape (2, 1)
    >>> y = tilecore.tile_view(x, (3, 1, 4))         # shape (3, 2, 4), no byte copied
    >>> y.shape, y.strides
    ((3, 2, 4), (0, 8, 0))
    >>> tilecore.tile_view(x, (2, 1))
    Traceback (most recent call last):
    ...
    ValueError: tile_view: axis 0 has 2 elements and is repeated 2 times, which strides cannot say; an axis repeated more than once must have one element; input shape (2, 1), dtype int64, reps (2, 1)

    Every element of a repeat is the same byte of memory: later changes to `a` show in all of them.

    Parameters
    ----------
    a : array_like
        As in `tile`, but plain arrays only.
    reps : int or iterable of int
        As in `tile`. Where the result has elements, an axis repeated more than once must have one.
    axis : int or tuple of int, optional
        As in `tile`.

    Returns
    -------
    numpy.ndarray
        A read-only view of `a`, of `tile`'s shape and dtype.

    Raises
    ------
    TypeError, ValueError
        As `tile`; a ValueError also where strides cannot say it. There is no size limit, for
        nothing is allocated.

    Source: tilecore; the values are those of NumPy 2, `numpy.tile`.
    """

@overload
def tile_view(a: ArrayLike, reps: _Integers, *, axis: _Axes = None) -> NDArray[Any]: ...
@overload
def tile_mapped(a: _Masked[_Scalar], reps: _Integers, *, axis: _Axes = None) -> _Masked[_Scalar]:
    """A tiling whose repeats share memory, each page until it is written to.

    >>> import numpy, tilecore
    >>> x = numpy.arange(2**17, dtype="float64")     # shape (131072,): 1 MiB
    >>> y = tilecore.tile_mapped(x, (1000, 1))       # shape (1000, 131072): 1000 MiB of addresses
    >>> y[1, 5] = -1                                 # copies one page of 4 KiB; nothing else changes
    >>> y[0, 5], y[1, 5], y[2, 5], x[5]
    (np.float64(5.0), np.float64(-1.0), np.float64(5.0), np.float64(5.0))

    The block that repeats is written once, to memory that is then mapped again and again. The
    result may be larger than the physical memory. In milliseconds there is an ordinary, writeable
    array; what is paid later:

    - The first look at each page costs a quarter of a microsecond to one, the first write to it
      about two, and 4 KiB. To write all over the result takes longer than with `tile`, and all
      its memory after all.
    - Resident sizes count a page once for each repeat that was looked at.

    Where the system cannot map so (only Linux can, with memory that is not locked), where the
    repeats do not come out at whole pages, where the process' mappings are used up
    (``vm.max_map_count``), or where copying is as quick, the result is `tile`'s.

    Parameters
    ----------
    a, reps, axis
        As in `tile`.

    Returns
    -------
    numpy.ndarray
        As `tile`: new, writeable, C-contiguous. Its memory is not its own (``flags.owndata`` is
        False), so ``result.resize`` refuses.

    Raises
    ------
    TypeError, ValueError, MemoryError
        As `tile`. The size limit counts the block that is written, or all of the result where it
        is `tile`'s.

    Source: tilecore; the values are those of NumPy 2, `numpy.tile`.
    """

@overload
def tile_mapped(
    a: _HasDtype[_Scalar], reps: _Integers, *, axis: _Axes = None
) -> NDArray[_Scalar]: ...
@overload
def tile_mapped(a: ArrayLike, reps: _Integers, *, axis: _Axes = None) -> NDArray[Any]: ...
def output_shape(shape: _Integers, reps: _Integers, *, axis: _Axes = None) -> tuple[int, ...]:
    """The shape of a tiling; nothing is allocated.

    >>> import tilecore
    >>> tilecore.output_shape((2, 3), (4, 1, 2))
    (4, 2, 6)
    >>> tilecore.output_shape((10**9, 10**9), 1)
    (1000000000, 1000000000)

    Parameters
    ----------
    shape : int or iterable of int
        The input's extents, 0 or more, at most 64.
    reps : int or iterable of int
        Repeats per axis, as in `tile`.
    axis : int or tuple of int, optional
        As in `tile`.

    Returns
    -------
    tuple of int

    Raises
    ------
    TypeError
        Where an extent or a repeat is not an integer.
    ValueError
        Where one is negative, there are more than 64, or the extents or their product overflow 64
        bits.

    Source: NumPy 2, `numpy.tile`.
    """

@overload
def tiled(
    array: NDArray[_Scalar],
    reps: _Integers,
    out: None = None,
    threads: SupportsIndex | None = None,
) -> NDArray[_Scalar]:
    """`tile` of a plain array, with Refusals that nobody has worded."""

@overload
def tiled(
    array: NDArray[Any],
    reps: _Integers,
    out: _Out,
    threads: SupportsIndex | None = None,
) -> _Out: ...
@overload
def tiled(
    array: NDArray[_Scalar],
    reps: _Integers,
    out: NDArray[Any] | None = None,
    threads: SupportsIndex | None = None,
) -> NDArray[Any]: ...
def are_integers(value: object, numbers: int, count: int) -> bool:
    """Whether `value` is `count` ints in a tuple, or in an array of integers; False for much that would do too.

    >>> import numpy
    >>> are_integers(numpy.array([2, -3]), 1 << numpy.dtype("int64").num, count=2), are_integers([2], 0, count=1)
    (True, False)

    `numbers` as in `repeats_of`.
    """

def repeats_of(value: object, numbers: int) -> tuple[int, ...] | None:
    """A tuple or list of at most 64 ints, or an array of integers, as a tuple of ints; None for all else.

    >>> import numpy
    >>> repeats_of(numpy.array([2, -3]), 1 << numpy.dtype("int64").num)
    (2, -3)
    >>> repeats_of([2, 3.0], 0)

    Of any sign. `numbers`: a bit for each of NumPy's integer types that the array may have. What it does
    not know it leaves to those who also word the error.
    """

def planned_shape(shape: _Integers, reps: _Integers, axis: _Axes = None) -> tuple[int, ...]:
    """`output_shape`, with Refusals that nobody has worded."""
