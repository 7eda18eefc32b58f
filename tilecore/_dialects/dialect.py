"""How a dialect describes itself to the command line, the demo and the tests: as `DIALECT`, in its module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from numpy.typing import ArrayLike, NDArray

from tilecore._core.plain import tile_array
from tilecore._core.request.errors import RequestError, format_error, shape_changed
from tilecore._dialects.annotations import Array, Repeats, Threads
from tilecore._dialects.tensors import INTEGERS, Types, as_tensor


class Option(NamedTuple):
    """An option that chooses a version: a keyword of `Dialect.rule`, a flag of the command line (`--feature-level`).
    Several dialects may have one of the same name."""

    read: Callable[[str], Any]  # from the text on the command line to the value
    metavar: str
    help: str


class Rule(NamedTuple):
    """One version of a specification."""

    name: str  # in front of its errors
    counts: Callable[[NDArray[Any], Any], tuple[int, ...]]  # (input, repeats) -> repeats, which the core checks further
    names: Mapping[str, str] = {}  # its own names for the core's arguments, as `format_error` takes them

    def tile(self, input: ArrayLike, repeats: Repeats, out: Array | None, threads: Threads) -> Array:
        """The tiling, or the user's error; most requests are met by tile_within, without this."""
        tensor = None
        try:
            tensor = as_tensor(input)
            shape, counts = tensor.shape, self.counts(tensor, repeats)
            if tensor.shape != shape:
                raise shape_changed()
            return tile_array(tensor, counts, out, threads)
        except RequestError as error:
            raise format_error(error, self.name, tensor, self.names, repeats=repeats) from error.__cause__


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
