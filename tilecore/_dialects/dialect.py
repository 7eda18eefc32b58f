"""How a dialect's `DIALECT` describes it to the command line, the demo and tests; annotations of its functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, SupportsIndex, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from tilecore._dialects.version import Version

# A result has the dtype of its input, or is `out`.
T = TypeVar("T", bound=np.generic)
Out = TypeVar("Out", bound=NDArray[Any])
Array: TypeAlias = NDArray[Any]
Threads: TypeAlias = int | None


class _Integers(Protocol):
    """A tensor of integers, of any library."""

    def __array__(self) -> np.ndarray[Any, np.dtype[np.integer[Any]]]: ...


Repeats: TypeAlias = Sequence[SupportsIndex] | _Integers


class Option(NamedTuple):
    """An option that chooses a version: a keyword of `Dialect.version`, and a flag of the command line."""

    read: Callable[[str], Any]  # from the text on the command line to the value
    metavar: str
    help: str


class Dialect(NamedTuple):
    """One specification of Tile."""

    name: str
    version: Callable[..., Version]  # takes the options, by keyword; without them, the default version
    example: tuple[str, list[int]]  # what is special about the dialect, and repeats of a 2-D array that show it
    options: Mapping[str, Option] = {}
