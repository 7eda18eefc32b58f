"""How a dialect describes itself to the package, the command line and the tests.

DIALECT = Dialect("OpenVINO", rule)        in tilecore/openvino.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from numpy.typing import NDArray


class Option(NamedTuple):
    """An option that chooses a version: a keyword of `Dialect.rule`, a flag of the command line (`--feature-level`)."""

    read: Callable[[str], Any]  # from the text on the command line to the value
    metavar: str
    help: str


class Rule(NamedTuple):
    """One version of a specification, for callers that tile by themselves."""

    name: str  # in front of its errors
    counts: Callable[[NDArray[Any], Any], tuple[int, ...]]  # (input, repeats) -> repeats, which TilePlan checks further
    names: Mapping[str, str] = {}  # its own names for the core's arguments, as `format_error` takes them


class Dialect(NamedTuple):
    """One specification of Tile."""

    name: str
    rule: Callable[..., Rule]  # takes the options, by keyword; without them, the default version
    options: Mapping[str, Option] = {}
