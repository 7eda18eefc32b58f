"""Markdown tables, and numbers as a person reads them."""

from collections.abc import Iterable, Sequence
from math import floor, log10


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    marks = ["---", *["--:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, marks, *rows)) + "\n"


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
