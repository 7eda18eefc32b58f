"""What every dialect tells of itself: the row that the package, the command line and the tests read.

DIALECT = Dialect("OpenVINO", rule)        at the end of tilecore/openvino.py
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from numpy.typing import NDArray

from tilecore._core.refusals import NO_NAMES


class Option(NamedTuple):
    """What chooses a version: a keyword argument of `Dialect.rule`, and `--feature-level N_M`."""

    read: Callable[[str], Any]  # the value of the text on the command line
    metavar: str
    help: str


NO_OPTIONS: Mapping[str, Option] = {}


class Rule(NamedTuple):
    """One version of a specification, for callers that do the tiling themselves."""

    name: str  # in front of its errors
    counts: Callable[[NDArray[Any], Any], tuple[int, ...]]
    """The repeats that it allows for an input, as ints; what it refuses is a `Refusal`."""
    names: Mapping[str, str] = NO_NAMES  # its own for the core's arguments, as `worded` takes them


RuleOf: TypeAlias = Callable[..., Rule]


class Dialect(NamedTuple):
    """One specification of Tile."""

    name: str
    rule: RuleOf  # takes the options, by keyword; without them, the newest version
    options: Mapping[str, Option] = NO_OPTIONS
