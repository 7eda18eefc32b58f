"""Runs the caller's code from a Python function, because Python counts these, and not compiled functions.

An `__array__` may call `tile` again, level upon level. So Python raises a RecursionError before the stack is full.
"""

from collections.abc import Callable
from typing import Any


def run(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)
