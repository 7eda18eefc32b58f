"""Reads arrays, lists and NumPy integers as the tensors and 1-D integer repeats of a specification, for the dialects.

Each dialect decides what is legal; the core does all arithmetic on sizes. Input that cannot be read raises a
`RequestError`, from which the dialect's public function makes the user's error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilecore._core.request.arguments import read_array
from tilecore._core.request.errors import RequestError, short_repr, type_name
from tilecore._core.request.integers import LARGEST_RANK, check_length, draw_integers

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

# Each C integer type is a class of its own, even if two have the same width (long and long long). Both byte orders
# have one class. StringDType's class is `str`.
_CODES = "?bBhHiIlLqQefdFD"
_NAMES: dict[type, str] = {np.dtype(code).type: np.dtype(code).name for code in _CODES} | {np.str_: "str", str: "str"}


class Types(NamedTuple):
    """Element types that a tensor may have."""

    names: Mapping[str, str]  # NumPy's -> the specification's, in the specification's order
    type_mask: int  # a bit for each type number: see bit_of_type


def make_types(names: str, rename: Callable[[str], str] = str) -> Types:
    """Types from NumPy's names; `rename` makes the specification's names.

    >>> make_types("float32 bool").type_mask == 1 << np.dtype("float32").num | 1
    True
    """
    renamed = {name: rename(name) for name in names.split()}
    numbers = {np.dtype(code).num for code in (*_CODES, "U") if _NAMES[np.dtype(code).type] in renamed}
    return Types(renamed, sum(1 << number for number in numbers))


EVERY_TYPE = Types({}, 2**64 - 1)
INT64 = make_types("int64")
# Types of less than 8 bits are from ml_dtypes, which need not be installed.
INTEGERS = make_types("int2 int4 int8 int16 int32 int64 uint2 uint4 uint8 uint16 uint32 uint64")


def name_element_type(tensor: NDArray[Any]) -> str:
    """NumPy's name for the items of `tensor`, without byte order and string length.

    >>> name_element_type(np.zeros((2, 3), ">f4")), name_element_type(np.array(["a", "bc"], object))
    ('float32', 'str')
    """
    if tensor.dtype.type is np.object_ or hasattr(tensor.dtype, "na_object"):  # items may be missing
        return "str" if all(isinstance(item, str) for item in tensor.reshape(-1)) else "object"
    return _NAMES.get(tensor.dtype.type) or tensor.dtype.name


def check_type(tensor: NDArray[Any], allowed: Types) -> None:
    """Raise an error if the element type of `tensor` is not allowed."""
    if allowed is not EVERY_TYPE and (actual := name_element_type(tensor)) not in allowed.names:
        what = f"is of type {actual}, expected {', '.join(allowed.names.values())}"
        if actual == "object" and "str" in allowed.names:
            what += " (an object array counts as strings if every item is a str)"
        raise RequestError(TypeError, what + "; tilecore.tile takes every dtype", "input")


def as_repeats(value: Any, allowed: Types = INTEGERS, count: int | None = None) -> tuple[int, ...]:
    """A 1-D repeats tensor, or a list or tuple of ints, as a tuple of ints of any sign and size.

    >>> as_repeats(np.array([2, 3]), INT64, count=2)
    (2, 3)

    `allowed` holds the element types that an array may have; `count` is the length that the dialect demands, if any.
    """
    if isinstance(value, (list, tuple)):
        repeats = tuple(draw_integers(value, "repeats"))
    else:
        repeats = tuple(read_repeats_tensor(value, allowed).tolist())
    if count is not None:
        check_count(len(repeats), count)
    return repeats


def check_count(length: int, rank: int) -> None:
    if length != rank:
        raise RequestError(ValueError, f"has length {length}, expected the input's rank {rank}", "repeats")


def read_repeats_tensor(value: Any, allowed: Types) -> NDArray[Any]:
    if not any(hasattr(value, kind) for kind in ("__array__", "__index__", "__dlpack__")):
        what = f"must be a 1-D tensor or a list of ints, got {type_name(value)}"
        raise RequestError(TypeError, what, "repeats")
    array = read_array(value, "repeats")
    if array.dtype.name not in allowed.names:
        what = f"has dtype {short_repr(array.dtype)}, expected {', '.join(allowed.names)}"
        raise RequestError(TypeError, what, "repeats")
    if array.ndim != 1:
        example = "" if array.ndim else f", as in [{int(array)}]"
        raise RequestError(ValueError, f"has rank {array.ndim}, expected 1{example}", "repeats")
    check_length(array.size, "repeats")
    return array


def draw_items(items: Iterable[Any], argument: str) -> list[Any]:
    """The items as a list; an error for more than LARGEST_RANK, so `items` may be endless."""
    drawn = list(islice(items, LARGEST_RANK + 1))
    check_length(len(drawn), argument)
    return drawn
