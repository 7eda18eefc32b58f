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

from collections.abc import Iterable
from typing import Any, TypeAlias

from tilecore._core.counts import brief
from tilecore._core.refusals import Refusal, worded
from tilecore._dialects.tensors import (
    INT64_MAX,
    INT64_MIN,
    INTEGERS,
    Types,
    as_integer,
    drawn,
    read_repeats,
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


def tile_dims(dims: tuple[Dim, ...], counts: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """Each dimension times its repeat; both are equally long."""
    result = []
    for axis, (dim, repeat) in enumerate(zip(dims, counts, strict=True)):
        try:
            result.append(multiply(dim, repeat))
        except OverflowError:
            raise Refusal(ValueError, f"axis {axis} overflows int64: {dim} * {repeat}") from None
    return tuple(result)


# --- reading -------------------------------------------------------------------------------------


def as_dim(value: Any, argument: str, position: int, intervals: bool = False, low: int = 0) -> Dim:
    """`value` as a dimension, or as a repeat, of which `low` is the smallest that is legal."""

    def refusal(kind: type[Exception], expected: str) -> Refusal:
        return Refusal(kind, f"must be {expected}, but item {position} is {brief(value)}", argument)

    if value is None:
        return None
    if isinstance(value, str):
        if not value:
            raise refusal(ValueError, "named where they are symbols (None is an unknown size)")
        return value
    if intervals and hasattr(type(value), "get_min_length"):  # openvino.Dimension
        least, most = value.get_min_length(), value.get_max_length()
        return canonical(least, None if most < 0 else most)
    if intervals and isinstance(value, tuple):
        if len(value) != 2:
            raise refusal(ValueError, "(low, high) where they are tuples")
        ends = [as_dim(end, argument, position, low=low) for end in value]
        if not isinstance(ends[0], int) or isinstance(ends[1], str):
            raise refusal(TypeError, "(int, int) or (int, None) where they are tuples")
        if ends[1] is not None and bounds(ends[1]) < bounds(ends[0]):
            raise refusal(ValueError, "(low, high) with low <= high where they are tuples")
        return canonical(ends[0], bounds(ends[1])[1])
    number = as_integer(value, argument, position)
    if number > INT64_MAX or number < INT64_MIN:
        raise refusal(ValueError, "within int64")
    if number < low:
        raise refusal(ValueError, f"{low} or more, or None where unknown")
    return number


def as_shape(value: Any, argument: str, *, intervals: bool = False) -> Shape:
    """A shape as the caller typed it, checked; None is an unknown rank.

    >>> as_shape([2, (1, None), "N"], "data_shape", intervals=True)
    (2, (1, None), 'N')

    With `intervals`, OpenVINO's own PartialShape, Shape and Dimension are what they say.
    """
    if value is None:
        return None
    if intervals and hasattr(type(value), "get_dimension"):  # openvino.PartialShape
        if value.rank.is_dynamic:
            return None
        # By index: OpenVINO ends an iteration by a C++ exception, which takes as long as all the rest.
        value = [value[axis] for axis in range(len(value))]
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        items = iter(value)
    except TypeError as reason:  # a 0-d array has the method, and cannot
        if type(reason) is not TypeError:  # the object's own
            raise
        what = "must be a tuple of dimensions, or None if unknown, got a "
        raise Refusal(TypeError, what + type(value).__name__, argument) from None
    return _dims(items, argument, intervals)


def _dims(items: Iterable[Any], argument: str, intervals: bool, low: int = 0) -> tuple[Dim, ...]:
    found = drawn(items, argument)
    return tuple(as_dim(item, argument, k, intervals, low) for k, item in enumerate(found))


def as_repeats_dims(
    repeats: Any,
    repeats_shape: Any,
    allowed: Types = INTEGERS,
    *,
    intervals: bool = False,
    low: int = 0,
) -> tuple[Dim, Shape]:
    """What is known of a repeats tensor: its length, and its entries where there are any.

    The two ways to tell, the entries and the shape of the tensor that holds them, must agree.
    """
    length: Dim = None
    lengths = as_shape(repeats_shape, "repeats_shape", intervals=intervals)
    if lengths is not None:
        if len(lengths) != 1:
            raise Refusal(ValueError, f"must have 1 entry, has {len(lengths)}", "repeats_shape")
        length = lengths[0]
    if repeats is None:
        return length, None
    if intervals and hasattr(type(repeats), "get_dimension"):
        entries = as_shape(repeats, "repeats", intervals=True)
        if entries is None:
            return length, None
    elif isinstance(repeats, (list, tuple)):
        entries = _dims(repeats, "repeats", intervals, low)
    else:
        entries = _dims(read_repeats(repeats, allowed), "repeats", False, low)
    least, most = bounds(length)
    if len(entries) < least or (most is not None and len(entries) > most):
        raise Refusal(
            ValueError, f"has length {len(entries)}, which contradicts repeats_shape", "repeats"
        )
    return len(entries), entries


def check_length(length: Dim, rank: int) -> None:
    """For the dialects that demand one repeat for each axis."""
    if isinstance(length, int) and length != rank:
        raise Refusal(
            ValueError, f"has length {length}, expected the input's rank {rank}", "repeats"
        )


def refused(refusal: Refusal, name: str, **given: Any) -> Exception:
    """The error of an `infer_shape`, with what was given of its arguments."""
    return worded(refusal, name, **{what: v for what, v in given.items() if v is not None})
