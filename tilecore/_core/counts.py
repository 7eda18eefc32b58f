"""Counts that callers set, of threads or bytes; and what callers typed, as every error shows it."""

import reprlib
from operator import index
from typing import Any, SupportsIndex

import numpy as np


class Brief(reprlib.Repr):
    """Shows what was given, but no more than a line of it, whatever it holds."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = 16
        self.maxother = 80

    def repr1(self, x: Any, level: int) -> str:
        # reprlib goes by the name of the type alone, and others call theirs `ndarray` or `array` too.
        try:
            return super().repr1(x, level)
        except Exception:
            return self.repr_instance(x, level)

    def repr_int(self, x: int, level: int) -> str:
        return repr(x) if abs(x) < 10**40 else f"<integer of {x.bit_length()} bits>"

    def repr_bytes(self, x: bytes, level: int) -> str:
        return repr(x) if len(x) <= 40 else f"<{len(x)} bytes>"

    repr_bytearray = repr_bytes

    def repr_ndarray(self, x: Any, level: int) -> str:
        if x.size > self.maxlist:
            return f"<array of shape {x.shape}, dtype {x.dtype}>"
        return f"{self.repr(x.tolist())} of dtype {x.dtype}"


brief = Brief().repr


def as_index(value: SupportsIndex) -> int:
    """operator.index, but no bool of NumPy's is an integer: NumPy 2.0 warns of them, later ones refuse."""
    if isinstance(value, np.bool_):
        raise TypeError
    return index(value)


def read_count(name: str, n: SupportsIndex) -> int:
    """`n` as an int of any size; a TypeError of the function `name` where it is none."""
    try:
        return as_index(n)
    except TypeError as reason:
        if type(reason) is not TypeError:  # the object's own
            raise
        what = f"expected an integer, got {brief(n)} of type {type(n).__name__}"
        raise TypeError(f"{name}: {what}") from None
