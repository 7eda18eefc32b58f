"""Arithmetic on dimensions that are not yet known: shape inference for every dialect.

A dimension is what is known of a size before there is data:

    6          exactly 6
    None       anything
    "N"        anything, but the same wherever "N" stands
    (2, 5)     2 to 5; (2, None) is 2 or more

and a shape is a tuple of them, or None where not even the rank is known. Tiling multiplies a
dimension by a repeat, which may be as little known as the dimension. Everything follows from the
product of two ranges, [a, b] * [c, d] = [a*c, b*d], and from one fact that ranges cannot tell: what
is multiplied by exactly 1 stays what it is, so a symbol survives.

An answer is canonical: (k, k) is k, and (0, None), which says nothing, is None.
"""

from collections.abc import Callable, Iterable, Set
from itertools import islice
from typing import TypeAlias

from tilecore._core.inputs import kind_of
from tilecore._dialects.tensors import (
    INT64_MAX,
    INT64_MIN,
    INTEGERS,
    MAX_RANK,
    as_integer,
    error,
    read_repeats,
    shown,
)

Dim: TypeAlias = int | str | tuple[int, int | None] | None
Shape: TypeAlias = tuple[Dim, ...] | None


def canonical(low: int, high: int | None) -> Dim:
    """The plainest way to write the range.

    >>> canonical(3, 3), canonical(0, None), canonical(2, None)
    (3, None, (2, None))
    """
    if low == high:
        return low
    return None if (low, high) == (0, None) else (low, high)


def bounds(dim: Dim) -> tuple[int, int | None]:
    if isinstance(dim, tuple):
        return dim
    return (dim, dim) if isinstance(dim, int) else (0, None)


def multiply(dim: Dim, repeat: Dim) -> Dim:
    """The dimension `dim`, tiled `repeat` times.

    >>> multiply("N", 1), multiply(None, 0), multiply((1, 5), 3), multiply("N", 2)
    ('N', 0, (3, 15), None)

    Two known numbers whose product is past int64 raise `OverflowError`. A range past it is open,
    for the sizes that do fit may be the ones that come.
    """
    if repeat == 1:
        return dim
    if dim == 1:
        return repeat
    (low, high), (least, most) = bounds(dim), bounds(repeat)
    if high == 0 or most == 0:
        return 0
    low *= least
    high = None if high is None or most is None else high * most
    if low > INT64_MAX:
        if isinstance(dim, int) and isinstance(repeat, int):
            raise OverflowError
        return None
    return canonical(low, None if high is None or high > INT64_MAX else high)


def tile_dims(
    dialect: str, dims: tuple[Dim, ...], counts: tuple[Dim, ...], **typed: object
) -> tuple[Dim, ...]:
    """Each dimension times its repeat; both are equally long. `typed` is for the error's text."""
    result = []
    for axis, (dim, repeat) in enumerate(zip(dims, counts, strict=True)):
        try:
            result.append(multiply(dim, repeat))
        except OverflowError:
            what = f"axis {axis}: {dim} * {repeat} overflows int64"
            raise error(ValueError, dialect, what, dims, None, **typed) from None
    return tuple(result)


# --- reading -------------------------------------------------------------------------------------


def as_dim(value: object, intervals: bool = False, low: int = 0) -> Dim:
    """`value` as a dimension, or as a repeat, of which `low` is the smallest that is legal."""
    if value is None:
        return None
    if isinstance(value, str):
        if not value:
            raise ValueError("an empty symbol: expected a name, or None for an unknown size")
        return value
    if intervals and isinstance(value, tuple):
        if len(value) != 2:
            raise ValueError(f"{value}: expected (low, high)")
        least, most = as_dim(value[0], low=low), as_dim(value[1], low=low)
        if not isinstance(least, int) or isinstance(most, str):
            raise TypeError(f"{value}: expected (int, int) or (int, None)")
        if most is not None and bounds(most) < bounds(least):
            raise ValueError(f"{value}: expected low <= high")
        return canonical(least, bounds(most)[1])
    number = as_integer(value)
    if number > INT64_MAX or number < INT64_MIN:
        raise ValueError("an int that overflows int64")
    if number < low:
        raise ValueError(f"{number}: expected {low} or more, or None where it is unknown")
    return number


def _read(
    items: Iterable[object],
    refuse: Callable[[type[Exception], str], Exception],
    intervals: bool,
    low: int = 0,
) -> tuple[Dim, ...]:
    drawn = list(islice(items, MAX_RANK + 1))
    if len(drawn) > MAX_RANK:
        raise refuse(ValueError, f"more than {MAX_RANK} entries")
    dims = []
    for axis, item in enumerate(drawn):
        try:
            dims.append(as_dim(item, intervals, low))
        except (TypeError, ValueError) as reason:
            if type(reason) not in (TypeError, ValueError):  # the item's own
                raise
            raise refuse(kind_of(reason), f"axis {axis}: {reason}") from None
    return tuple(dims)


def as_shape(
    dialect: str, value: object, *, name: str = "input shape", intervals: bool = False
) -> Shape:
    """A shape as the caller typed it, checked; None is an unknown rank."""

    def refuse(kind: type[Exception], what: str) -> Exception:
        return kind(f"{dialect}: {name}, {what}; {name} {shown(value)}")

    if value is None:
        return None
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        items = iter(value)  # type: ignore[call-overload]
    except TypeError:  # a 0-d array has the method, and cannot
        what = f"a {type(value).__name__}, expected a tuple of dimensions, or None if unknown"
        raise refuse(TypeError, what) from None
    return _read(items, refuse, intervals)


def as_repeats_dims(
    dialect: str,
    shape: Shape,
    repeats: object,
    repeats_shape: object,
    *,
    classes: Set[type] = INTEGERS,
    intervals: bool = False,
    low: int = 0,
) -> tuple[Dim, Shape]:
    """What is known of a repeats tensor: its length, and its entries where there are any.

    The two ways to tell, the entries and the shape of the tensor that holds them, must agree.
    """

    def refuse(kind: type[Exception], what: str) -> Exception:
        typed = {"repeats": repeats, "repeats_shape": repeats_shape}
        return error(kind, dialect, f"repeats, {what}", shape, None, **typed)

    length: Dim = None
    lengths = as_shape(dialect, repeats_shape, name="repeats_shape", intervals=intervals)
    if lengths is not None:
        if len(lengths) != 1:
            raise refuse(ValueError, f"rank {len(lengths)}, expected 1")
        length = lengths[0]
    if repeats is None:
        return length, None
    if isinstance(repeats, (list, tuple)):
        entries = _read(repeats, refuse, intervals, low)
    else:
        entries = _read(read_repeats(dialect, repeats, shape, None, classes), refuse, False, low)
    least, most = bounds(length)
    if len(entries) < least or (most is not None and len(entries) > most):
        raise refuse(ValueError, f"length {len(entries)}, which contradicts repeats_shape")
    return len(entries), entries
