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
    if one.subdtype is not None and other.subdtype is not None:
        return one.shape == other.shape and same_dtype(one.base, other.base)
    if one.names is None and other.names is None:
        return bool(one == other)
    if one.names != other.names or one.itemsize != other.itemsize:
        return False
    # A field is the dtype, the offset, and the title if there is one.
    pairs = ((one.fields[name], other.fields[name]) for name in one.names)
    return all(first[1:] == second[1:] and same_dtype(first[0], second[0]) for first, second in pairs)


def same_missing(one: Any, other: Any) -> bool:
    """Whether two StringDTypes have the same missing string, or both have none. Here NaN equals NaN."""
    first, second = (getattr(one, "na_object", same_missing), getattr(other, "na_object", same_missing))
    if first is second:
        return True
    if isinstance(first, float) and isinstance(second, float):
        return bool(first == second or (first != first and second != second))
    return bool(first == second)
