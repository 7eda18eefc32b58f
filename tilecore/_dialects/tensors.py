"""What the dialects share: plain tensors in, 1-D integer repeats in, one wording for errors out.

A specification speaks of tensors, element types and repeats tensors; a Python caller brings arrays,
lists and NumPy integers. Here the one becomes the other. What is legal stays in each dialect, and
all arithmetic on sizes stays in the core: `renamed` puts the dialect's name on the core's errors.
"""

import operator
import reprlib
from collections.abc import Callable, Container, Set
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from tilecore._core.inputs import as_array, kind_of
from tilecore._core.refusals import Refusal, worded

_Error = TypeVar("_Error", bound=Exception)

MAX_RANK = 64
"""NumPy's largest rank. A longer repeats is refused unread, however long it is."""

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

# A C integer type is a class of its own even where two have one width (long and long long), and
# byte order is no part of the class. StringDType's class is `str`.
_TYPE_NAMES: dict[type, str] = {
    np.dtype(code).type: np.dtype(code).name for code in "?bBhHiIlLqQefdFD"
} | {np.str_: "str", str: "str"}


def scalar_classes(names: Container[str]) -> frozenset[type]:
    """The classes of NumPy scalars behind the names, for a quick test of `tensor.dtype.type`."""
    return frozenset(cls for cls, name in _TYPE_NAMES.items() if name in names)


INT64 = scalar_classes({"int64"})
INTEGERS = frozenset(np.dtype(code).type for code in np.typecodes["AllInteger"])


def element_type(tensor: NDArray[Any]) -> str:
    """NumPy's name for the items of `tensor`, byte order and string length aside.

    >>> element_type(np.zeros((2, 3), ">f4")), element_type(np.array(["a", "bc"], object))
    ('float32', 'str')
    """
    return _TYPE_NAMES.get(tensor.dtype.type) or _rare_element_type(tensor)


def _rare_element_type(tensor: NDArray[Any]) -> str:
    if tensor.dtype.type is np.object_:
        # A tensor of strings is usually an object array in Python; nothing but `str` may be in it.
        return "str" if all(isinstance(item, str) for item in tensor.flat) else "object"
    if tensor.dtype.type.__name__ == "bfloat16":  # from ml_dtypes, which need not be installed
        return "bfloat16"
    return tensor.dtype.name


def as_tensor(dialect: str, value: ArrayLike, name: str = "input") -> NDArray[Any]:
    """`value` as a plain `numpy.ndarray`, without a copy where it is an array."""
    if type(value) is np.ndarray:
        return value
    # isinstance alone believes what `__class__` says.
    if isinstance(value, np.ma.MaskedArray) and issubclass(type(value), np.ndarray):
        raise TypeError(
            f"{dialect}: {name} is a masked array, and a tensor has no mask: expected a plain "
            f"array (tilecore.tile keeps masks); {name} shape {value.shape}, dtype {value.dtype}"
        )
    try:
        return as_array(value)
    except Refusal as refusal:
        raise worded(refusal, dialect, None, {"input": name}) from refusal.__cause__


def as_repeats(
    dialect: str,
    value: object,
    tensor: NDArray[Any],
    classes: Set[type] = INTEGERS,
    count: int | None = None,
) -> tuple[int, ...]:
    """A 1-D repeats tensor, or a list or tuple of ints in its stead, as a tuple of ints.

    `classes` are the element types that an array may have, and `count` is the length it must have,
    where the dialect demands one. Signs and sizes are not looked at.
    """
    # What callers bring nearly always takes a short way; `read_repeats` knows all of it.
    repeats: tuple[int, ...] | None = None
    if type(value) is tuple or type(value) is list:
        if len(value) <= MAX_RANK:
            repeats = tuple(value)
            for item in repeats:
                if type(item) is not int:
                    repeats = None
                    break
    elif (
        type(value) is ndarray
        and value.ndim == 1
        and value.dtype.type in classes
        and value.size <= MAX_RANK
    ):
        repeats = tuple(value.tolist())
    if repeats is None:
        repeats = read_repeats(dialect, value, tensor.shape, tensor.dtype, classes)
    if count is not None and len(repeats) != count:
        what = f"repeats has length {len(repeats)}, expected the input's rank {count}"
        raise error(ValueError, dialect, what, tensor.shape, tensor.dtype, repeats=value)
    return repeats


def read_repeats(
    dialect: str, value: object, shape: object, dtype: object, classes: Set[type] = INTEGERS
) -> tuple[int, ...]:
    """`as_repeats` for every kind of `value`; `shape` and `dtype` are only for the error's text."""

    def refuse(kind: type[_Error], what: str) -> _Error:
        return error(kind, dialect, what, shape, dtype, repeats=value)

    if isinstance(value, (list, tuple)):
        items = list(islice(value, MAX_RANK + 1))
        if len(items) > MAX_RANK:
            raise refuse(ValueError, f"repeats has more than {MAX_RANK} entries")
        integers = []
        for position, item in enumerate(items):
            try:
                integers.append(as_integer(item))
            except (TypeError, ValueError) as reason:
                if type(reason) not in (TypeError, ValueError):  # the item's own
                    raise
                what = f"repeats, axis {position}: {reason}"
                raise refuse(kind_of(reason), what) from None
        return tuple(integers)

    if not any(hasattr(value, kind) for kind in ("__array__", "__index__", "__dlpack__")):
        what = f"repeats is a {type(value).__name__}, expected a 1-D tensor or a list of ints"
        raise refuse(TypeError, what)
    array = as_tensor(dialect, value, "repeats")  # type: ignore[arg-type]
    if array.dtype.type not in classes:
        expected = "int64" if classes is INT64 else "an integer type"
        raise refuse(TypeError, f"repeats has dtype {array.dtype}, expected {expected}")
    if array.ndim != 1:
        raise refuse(ValueError, f"repeats has rank {array.ndim}, expected 1")
    if array.size > MAX_RANK:
        raise refuse(ValueError, f"repeats has more than {MAX_RANK} entries")
    return tuple(array.tolist())


def as_integer(item: object) -> int:
    """An int or a NumPy integer as an int; a bool is none: a list of bools is a bool tensor."""
    if isinstance(item, (list, tuple)) or (isinstance(item, np.ndarray) and item.ndim > 0):
        raise ValueError("a sequence, expected one integer")
    try:
        if not isinstance(item, bool):  # numpy.bool is no index in any case
            return operator.index(item)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise TypeError(f"a {type(item).__name__}, expected an integer")


# --- wording -------------------------------------------------------------------------------------


class _Shown(reprlib.Repr):
    """Values as they were typed, cut short where they would fill the screen."""

    def __init__(self) -> None:
        super().__init__()
        self.maxtuple = self.maxlist = MAX_RANK
        self.maxlong = self.maxstring = self.maxother = 60

    def repr_int(self, x: int, level: int) -> str:
        return super().repr_int(x, level) if abs(x) < 2**128 else f"an int of {x.bit_length()} bits"

    def repr_ndarray(self, x: NDArray[Any], level: int) -> str:
        if x.size > MAX_RANK:
            return f"of shape {x.shape}, dtype {x.dtype}"
        return f"{self.repr(x.tolist())} of dtype {x.dtype}"


shown: Callable[[object], str] = _Shown().repr


_CORE = ("tile", "tile_region", "TilePlan", "output_shape")


def renamed(reason: Exception, dialect: str) -> Exception:
    """An error of `tile` or a like function, with the dialect's name in place of its own.

    >>> renamed(ValueError("tile: too much"), "ONNX Tile-13")
    ValueError('ONNX Tile-13: too much')
    >>> renamed(ValueError("what an object raises itself"), "ONNX Tile-13")
    ValueError('what an object raises itself')
    """
    name, _, text = str(reason).partition(": ")
    return kind_of(reason)(f"{dialect}: {text}") if name in _CORE else reason


def error(
    kind: type[_Error], dialect: str, what: str, shape: object, dtype: object, **given: object
) -> _Error:
    """An error to raise: what is wrong, then what the caller typed."""
    context = [f"input shape {'unknown' if shape is None else shown(shape)}"]
    if dtype is not None:
        context.append(f"dtype {dtype}")
    context += [f"{name} {shown(value)}" for name, value in given.items()]
    return kind(f"{dialect}: {what}; {', '.join(context)}")
