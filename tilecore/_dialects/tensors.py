"""What the dialects share: plain tensors in, 1-D integer repeats in.

A specification speaks of tensors, element types and repeats tensors; a Python caller brings arrays,
lists and NumPy integers. Here the one becomes the other. What is legal stays in each dialect, and
all arithmetic on sizes stays in the core. What cannot be read is a `Refusal`, which the dialect's
public function words.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from tilecore._core.arrays import repeats_of
from tilecore._core.counts import as_index
from tilecore._core.inputs import as_array
from tilecore._core.refusals import Refusal
from tilecore._core.subclasses import is_masked

# For the types of the dialects' functions: a result has the dtype of its input, or is `out`.
Scalar = TypeVar("Scalar", bound=np.generic)
Out = TypeVar("Out", bound=NDArray[Any])

MAX_RANK = 64
"""NumPy's largest rank. A longer repeats is refused unread, however long it is."""

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

# A C integer type is a class of its own even where two have one width (long and long long), and
# byte order is no part of the class. StringDType's class is `str`.
_CODES = "?bBhHiIlLqQefdFD"
_NAMES: dict[type, str] = {np.dtype(code).type: np.dtype(code).name for code in _CODES} | {
    np.str_: "str",
    str: "str",
}


class Types(NamedTuple):
    """Element types that a tensor may have."""

    names: Mapping[str, str]  # NumPy's -> the specification's, in the specification's order
    # Of those that NumPy itself has, for quick tests: the classes of scalars; a bit for each type's number.
    classes: frozenset[type]
    numbers: int


def types(names: Mapping[str, str] | Iterable[str]) -> Types:
    """
    >>> list(types({"float32": "tensor(float)"}).classes), list(types(["int64"]).names)
    ([<class 'numpy.float32'>], ['int64'])
    """
    names = names if isinstance(names, Mapping) else {name: name for name in names}
    classes = frozenset(cls for cls, name in _NAMES.items() if name in names)
    return Types(
        names,
        classes,
        sum(1 << np.dtype(code).num for code in _CODES if np.dtype(code).type in classes),
    )


INT64 = types(["int64"])
# Those of less than 8 bits are from ml_dtypes, which need not be installed.
INTEGERS = types([f"{sign}int{bits}" for sign in ("", "u") for bits in (2, 4, 8, 16, 32, 64)])


def element_type(tensor: NDArray[Any]) -> str:
    """NumPy's name for the items of `tensor`, byte order and string length aside.

    >>> element_type(np.zeros((2, 3), ">f4")), element_type(np.array(["a", "bc"], object))
    ('float32', 'str')
    """
    if tensor.dtype.type is np.object_:
        # A tensor of strings is usually an object array in Python; nothing but `str` may be in it.
        return "str" if all(isinstance(item, str) for item in tensor.flat) else "object"
    return _NAMES.get(tensor.dtype.type) or tensor.dtype.name


def check_type(tensor: NDArray[Any], allowed: Types) -> None:
    """Refuse a tensor of another type; `tensor.dtype.type in allowed.classes` is the quick test."""
    if (found := element_type(tensor)) not in allowed.names:
        what = f"is of type {found}, expected {', '.join(allowed.names.values())}"
        if found == "object" and "str" in allowed.names:
            what += " (an object array counts as strings where every item is a str)"
        raise Refusal(TypeError, what + "; tilecore.tile takes every dtype", "input")


def as_tensor(value: ArrayLike, argument: str = "input") -> NDArray[Any]:
    """`value` as a plain `numpy.ndarray`, without a copy where it is an array."""
    if type(value) is ndarray:
        return value
    if is_masked(value):
        what = f"is a masked array of shape {np.shape(value)}, and a tensor has no mask: expected "
        raise Refusal(TypeError, what + "a plain array (tilecore.tile keeps masks)", argument)
    return as_array(value, argument)


# ---------------------------------------------------------------- repeats


def as_repeats(
    value: object, allowed: Types = INTEGERS, count: int | None = None
) -> tuple[int, ...]:
    """A 1-D repeats tensor, or a list or tuple of ints in its stead, as a tuple of ints.

    >>> as_repeats(np.array([2, 3]), INT64, count=2)
    (2, 3)

    `allowed` are the element types that an array may have, and `count` is the length it must have,
    where the dialect demands one. Signs and sizes are not looked at.
    """
    repeats = repeats_of(value, allowed.numbers)
    if repeats is None:
        repeats = read_repeats(value, allowed)
    if count is not None and len(repeats) != count:
        what = f"has length {len(repeats)}, expected the input's rank {count}"
        raise Refusal(ValueError, what, "repeats")
    return repeats


def read_repeats(value: object, allowed: Types = INTEGERS) -> tuple[int, ...]:
    """`as_repeats` for every kind of `value`, and for every error."""
    if isinstance(value, (list, tuple)):
        return tuple(
            as_integer(item, "repeats", k) for k, item in enumerate(drawn(value, "repeats"))
        )
    if not any(hasattr(value, kind) for kind in ("__array__", "__index__", "__dlpack__")):
        what = f"must be a 1-D tensor or a list of ints, got a {type(value).__name__}"
        raise Refusal(TypeError, what, "repeats")
    array = as_tensor(value, "repeats")  # type: ignore[arg-type]
    if array.dtype.name not in allowed.names:
        what = f"has dtype {array.dtype}, expected {', '.join(allowed.names)}"
        raise Refusal(TypeError, what, "repeats")
    if array.ndim != 1:
        instead = "" if array.ndim else f", as in [{array}]"
        raise Refusal(ValueError, f"has rank {array.ndim}, expected 1{instead}", "repeats")
    if array.size > MAX_RANK:
        raise too_many("repeats")
    return tuple(array.tolist())


def drawn(items: Iterable[Any], argument: str) -> list[Any]:
    """The items of what may be endless, if they are no more than an array has axes."""
    found = list(islice(items, MAX_RANK + 1))
    if len(found) > MAX_RANK:
        raise too_many(argument)
    return found


def too_many(argument: str) -> Refusal:
    return Refusal(ValueError, f"has more than {MAX_RANK} entries, NumPy's largest rank", argument)


def as_integer(item: object, argument: str, position: int) -> int:
    """An int or a NumPy integer as an int; a bool is none: a list of bools is a bool tensor."""
    kind = type(item).__name__
    if isinstance(item, (list, tuple)) or (isinstance(item, ndarray) and item.ndim > 0):
        raise Refusal(
            ValueError, f"must be one-dimensional, but item {position} is a {kind}", argument
        )
    try:
        if not isinstance(item, bool):
            return as_index(item)  # type: ignore[arg-type]
    except TypeError as reason:
        if type(reason) is not TypeError:  # the item's own
            raise
    raise Refusal(TypeError, f"must be integers, but item {position} is of type {kind}", argument)
