"""How a dialect describes itself to the command line, the demo and the tests: as `DIALECT`, in its module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from numpy.typing import NDArray

from tilecore._dialects.tensors import INTEGERS, Types


class Option(NamedTuple):
    """An option that chooses a version: a keyword of `Dialect.rule`, a flag of the command line (`--feature-level`).
    Several dialects may have one of the same name."""

    read: Callable[[str], Any]  # from the text on the command line to the value
    metavar: str
    help: str


class Rule(NamedTuple):
    """One version of a specification, for callers that tile by themselves."""

    name: str  # in front of its errors
    counts: Callable[[NDArray[Any], Any], tuple[int, ...]]  # (input, repeats) -> repeats, which TilePlan checks further
    names: Mapping[str, str] = {}  # its own names for the core's arguments, as `format_error` takes them


class Dialect(NamedTuple):
    """One specification of Tile; of several versions, what holds for the default one."""

    name: str
    rule: Callable[..., Rule]  # takes the options, by keyword; without them, the default version
    example: tuple[str, list[int]]  # what is special about it, and repeats of a 2-D array that show it
    options: Mapping[str, Option] = {}
    types: Types | None = None  # of the input; None: all
    count_types: Types = INTEGERS  # of the repeats, if they are an array
    min_repeat: int | None = 0  # a smaller one is an error; None: it counts as 0
    any_length: bool = False  # of the repeats; else one for each axis
    max_elements: int | None = None  # of the output, and so the largest repeat; None: those of the core
