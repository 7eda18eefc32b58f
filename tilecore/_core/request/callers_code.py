"""Runs the caller's code from a Python function: Python counts the levels of these, and not of compiled functions.

So if an `__array__` calls `tile` again, level upon level, Python raises a RecursionError before the stack is full.
"""

from collections.abc import Callable
from typing import Any


def run(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)
