"""Shortens what callers typed, for error messages."""

import reprlib
from array import array
from collections import deque
from typing import Any

import numpy as np


class Brief(reprlib.Repr):
    """Shows a value in at most one line.

    It passes on an exception of the value's `repr`, because a signal handler may have raised it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = 16
        self.maxother = 80

    def repr1(self, x: Any, level: int) -> str:
        # reprlib uses only the type's name, and other libraries have an `ndarray` or `array` too.
        # A metaclass may have no hash, or a wrong one.
        is_known = type(type(x)) is type and type(x) in _KNOWN
        return super().repr1(x, level) if is_known else self.repr_instance(x, level)

    def repr_instance(self, x: Any, level: int) -> str:
        text = repr(x)
        half = self.maxother // 2
        return text if len(text) <= self.maxother else f"{text[: half - 3]}...{text[-half:]}"

    def repr_int(self, x: int, level: int) -> str:
        return repr(x) if abs(x) < 10**40 else f"<integer of {x.bit_length()} bits>"

    def repr_bytes(self, x: bytes, level: int) -> str:
        return repr(x) if len(x) <= 40 else f"<{len(x)} bytes>"

    repr_bytearray = repr_bytes

    def repr_set(self, x: Any, level: int) -> str:
        return f"<{type(x).__name__} of {len(x)} items>"

    repr_frozenset = repr_dict = repr_set

    def repr_ndarray(self, x: Any, level: int) -> str:
        if x.size > self.maxlist:
            return f"<array of shape {x.shape}, dtype {x.dtype}>"
        return f"{self.repr(x.tolist())} of dtype {x.dtype}"


_KNOWN = {int, str, bytes, bytearray, list, tuple, set, frozenset, dict, deque, array, np.ndarray}
brief = Brief().repr
