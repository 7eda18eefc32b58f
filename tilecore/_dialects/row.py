"""The row that every dialect ends with, for the package, the command line and the tests.

DIALECT = Dialect("OpenVINO", rule)        at the end of tilecore/openvino.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from numpy.typing import NDArray


class Option(NamedTuple):
    """Chooses a version: by a keyword argument of `Dialect.rule`, and on the command line (`--feature-level N_M`)."""

    read: Callable[[str], Any]  # from the text on the command line to the value
    metavar: str
    help: str


class Rule(NamedTuple):
    """One version of a specification, for callers that do the tiling themselves."""

    name: str  # in front of its errors
    counts: Callable[[NDArray[Any], Any], tuple[int, ...]]  # (input, repeats) -> legal repeats; raises `RequestError`
    names: Mapping[str, str] = {}  # its own names for the core's arguments, as `format_error` takes them


class Dialect(NamedTuple):
    """One specification of Tile."""

    name: str
    rule: Callable[..., Rule]  # takes the options, by keyword; without them, the newest version
    options: Mapping[str, Option] = {}
