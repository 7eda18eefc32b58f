"""Markdown tables, and numbers as a person reads them."""

import re
from collections.abc import Callable, Iterable, Sequence
from math import floor, log10
from typing import TypeVar

T = TypeVar("T")
NUMBERS = re.compile(r"((^|, )\**[\d.,]+(×| \S+)?\**)*")  # with a unit, or in bold


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Empty without rows. Columns of numbers are aligned right, but not the first one, of names."""
    rows = list(rows)
    columns = list(zip(*rows, strict=True))[1:]
    marks = ["---", *("--:" if all(map(NUMBERS.fullmatch, column)) else "---" for column in columns)]
    lines = ["| " + " | ".join(cells) + " |\n" for cells in (header, marks, *rows)]
    return "".join(lines) if len(lines) > 2 else ""


def pivot(
    heading: Sequence[str], cells: Iterable[tuple[Sequence[str], str, T]], show: Callable[[list[T]], str] = ", ".join
) -> str:
    """A table of cells: the beginning of the row, the column, and a value. `show` has all values of one place."""
    rows: dict[tuple[str, ...], dict[str, list[T]]] = {}
    for row, column, value in cells:
        rows.setdefault(tuple(row), {}).setdefault(column, []).append(value)
    columns = list(dict.fromkeys(column for by_column in rows.values() for column in by_column))
    lines = ([*row, *(show(by[name]) if name in by else "" for name in columns)] for row, by in rows.items())
    return table([*heading, *columns], lines)


def seconds(value: float) -> str:
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if value * scale >= 1:
            return f"{value * scale:.3g} {unit}" if value * scale < 999.5 else f"{value:,.0f} s"
    return f"{value * 1e9:.3g} ns"


def size(nbytes: float) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if nbytes >= scale:
            return f"{nbytes / scale:.3g} {unit}"
    return f"{nbytes:.3g} bytes"


def times(ratio: float) -> str:
    """Two digits: no more than the eye needs."""
    return f"{ratio:.{max(0, 1 - floor(log10(ratio)))}f}×" if ratio < 9.95 else f"{ratio:,.0f}×"
