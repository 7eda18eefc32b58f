"""How a dialect describes itself to the command line, the demo and the tests: as `DIALECT`, in its module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tilecore._dialects.version import Version


class Option(NamedTuple):
    """An option that chooses a version: a keyword of `Dialect.version`, a flag of the command line (`--feature-level`)."""

    read: Callable[[str], Any]  # from the text on the command line to the value
    metavar: str
    help: str


class Dialect(NamedTuple):
    """One specification of Tile."""

    name: str
    version: Callable[..., Version]  # takes the options, by keyword; without them, the default version
    example: tuple[str, list[int]]  # what is special about it, and repeats of a 2-D array that show it
    options: Mapping[str, Option] = {}
