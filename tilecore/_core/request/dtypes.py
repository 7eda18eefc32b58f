"""Compares dtypes without losing exceptions."""

from typing import Any

import numpy as np


def same_dtype(one: Any, other: Any) -> bool:
    """Whether arrays of these dtypes hold their items in the same bytes, by the same names.

    >>> same_dtype(np.dtype("<i4"), np.dtype("int32")), same_dtype(np.dtype("<i4"), np.dtype(">i4"))
    (True, False)

    As ``==``, except for exceptions. Titles of fields, and StringDType's missing string, may be any objects. If
    comparing them raises an exception, NumPy swallows it, and this function does not.
    """
    if one is other:
        return True
    if isinstance(one, np.dtypes.StringDType) and isinstance(other, np.dtypes.StringDType):
        return one.coerce == other.coerce and same_missing(one, other)
    if one.names is None and one.subdtype is None:
        return bool(one == other)
    if not same_titles(one, other):
        return False
    return bool(drop_titles(one) == drop_titles(other))


def same_missing(one: Any, other: Any) -> bool:
    """Whether two StringDTypes have the same missing string, or both have none. Here NaN equals NaN."""
    first, second = (getattr(one, "na_object", same_missing), getattr(other, "na_object", same_missing))
    if first is second:
        return True
    if isinstance(first, float) and isinstance(second, float):
        return bool(first == second or (first != first and second != second))
    return bool(first == second)


def same_titles(one: Any, other: Any) -> bool:
    if one.subdtype is not None and other.subdtype is not None:
        return same_titles(one.base, other.base)
    if one.names is None or one.names != other.names:
        return bool(one.names == other.names)
    for name in one.names:
        first, second = one.fields[name], other.fields[name]
        titles = first[2:], second[2:]  # () where there is none
        if titles[0] is not titles[1] and titles[0] != titles[1]:
            return False
        if not same_titles(first[0], second[0]):
            return False
    return True


def drop_titles(dtype: Any) -> Any:
    """The dtype without titles: comparing it does not run the caller's code."""
    if dtype.subdtype is not None:
        return np.dtype((drop_titles(dtype.base), dtype.shape))
    if dtype.names is None:
        return dtype
    fields = [dtype.fields[name] for name in dtype.names]
    return np.dtype(
        {
            "names": list(dtype.names),
            "formats": [drop_titles(field[0]) for field in fields],
            "offsets": [field[1] for field in fields],
            "itemsize": dtype.itemsize,
        },
        align=dtype.isalignedstruct,
    )
