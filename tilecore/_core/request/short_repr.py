"""Shortens the arguments of callers, for error messages."""

import reprlib
from typing import Any

import numpy as np


class ShortRepr(reprlib.Repr):
    """`repr` in at most one line. Python refuses to write a very long integer, and a large array takes time."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = 16
        self.maxother = 80

    def repr1(self, x: Any, level: int) -> str:
        # reprlib dispatches on the name of a type, and other libraries have an `ndarray` or `array` too. It sorts sets
        # and dicts, and drops any error meanwhile, a signal handler's too.
        if type(x) in (dict, set, frozenset):
            return f"<{type(x).__name__}, length {len(x)}>"
        return super().repr1(x, level) if type(x) in KNOWN else self.repr_instance(x, level)

    def repr_instance(self, x: Any, level: int) -> str:
        if hasattr(type(x).__repr__, "__code__"):  # Python code: it may raise, or take long
            return f"<{type(x).__name__} instance>"
        half = (self.maxother - 3) // 2
        text = " ".join((str(x) if isinstance(x, np.dtype) else repr(x)).split())  # reprlib would drop any error
        return text if len(text) <= self.maxother else f"{text[:half]}...{text[-half:]}"

    def repr_int(self, x: int, level: int) -> str:
        return repr(x) if abs(x) < 10**40 else f"<integer of {x.bit_length()} bits>"

    def repr_ndarray(self, x: Any, level: int) -> str:
        if x.size > self.maxlist:
            return f"<array of shape {x.shape}, dtype {x.dtype}>"
        return f"{self.repr(x.tolist())} of dtype {x.dtype}"


KNOWN = (int, str, list, tuple, np.ndarray)
short_repr = ShortRepr().repr
