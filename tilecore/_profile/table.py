"""The table that a profile prints: lines of at most 80 columns, or as wide as the terminal."""

import os
import shutil
import sys
from textwrap import shorten, wrap
from typing import Any, TypeAlias

from tilecore._units import with_unit

Row: TypeAlias = dict[str, Any]
FEW = 8  # a ratio of fewer measurements is rough
ROWS = 20  # the table has at most so many places
WIDTH = min(80, max(20, shutil.get_terminal_size((80, 1)).columns))  # read once: it drops what signal handlers raise


def make_table(totals: dict[str, float], rows: list[Row], threads: int, children: str, *notes: str) -> str:
    """The table as text. `children` is the time of child processes; the `notes` are sentences, or empty."""
    texts = summarize(totals, threads) if rows else ["tilecore profile: numpy.tile was not called in this process"]
    if children:
        texts.append(
            f"Child processes took {children}, and are not measured. To measure their work, let this process do it: "
            "num_workers=0 for a DataLoader, map() for pool.map()."
        )
    elif not rows:
        texts.append(
            "Not measured: calls in functions compiled by Numba, calls that replace_numpy_tile serves, and what "
            "broadcasts in products and assignments."
        )
    lines = [""]
    for text in filter(None, [*texts, *notes]):
        lines += wrap(text, WIDTH)
    if rows:
        lines += ["", f"{'numpy.tile':>10} {'tilecore':>10} {'':>6} {'calls':>11} {'results':>8}"]
    for row in rows[:ROWS]:
        numbers, *texts = describe(row)
        lines.append(numbers)
        for text in filter(None, texts):
            lines += wrap(text, WIDTH, initial_indent="    ", subsequent_indent="      ", break_on_hyphens=False)
    return "\n".join(lines + [f"{len(rows) - ROWS} more places"] * (len(rows) > ROWS))


def summarize(totals: dict[str, float], threads: int) -> list[str]:
    whole, cost, theirs, ours, *_ = totals.values()
    seconds = (with_unit(max(value, 0.0), "s") for value in (whole, cost, theirs, ours, whole - theirs + ours))
    total, measuring, before, after, left = seconds
    took, would, so = f"of {total}, {theirs / max(whole, 1e-9):.1%}", f" of {left}", ""
    if threads > 1:
        took, would, so = f"in {threads} threads together, within {total}", "", ", in all threads together"
    return [
        f"tilecore profile: numpy.tile took {before} {took}",
        f"With tilecore.tile: {after}{would}. Measuring took {measuring} more{so}.",
    ]


def describe(row: Row) -> tuple[str, ...]:
    """The lines of a place: its numbers, where it is, its code, its most frequent input, and the hint."""
    seconds, inputs, (low, high) = row["tilecore_seconds"], [*row["inputs"]], row["range"]
    rough = 0 < row["measured"] < FEW or high > 1.5 * low
    after, ratio = (with_unit(seconds, "s"), f"{row['numpy_seconds'] / seconds:.2g}x") if seconds else ("", "")
    before, size, ratio = with_unit(row["numpy_seconds"], "s"), with_unit(row["bytes"], "B"), "~" * rough + ratio
    place, code = name_place(row["file"], row["line"], row["function"]), shorten(row["code"], 2 * WIDTH)
    more = f" and {len(inputs) - 1} more" * (len(inputs) > 1)
    what = f"{inputs[0]}{more}; measured {row['measured']:,} of {row['calls']:,} calls" if inputs else ""
    what += f", {low:.2g}x to {high:.2g}x" * (rough and row["measured"] > 1)
    return f"{before:>10} {after:>10} {ratio:>6} {row['calls']:>11,} {size:>8}", place, code, what, row["hint"]


def name_place(file: str, line: int, function: str) -> str:
    """The place as IPython's tracebacks name a cell of a notebook; files are relative to their folder in `sys.path`."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if cell := getattr(getattr(shell, "compile", None), "format_code_name", lambda file: None)(file):
        return f"{' '.join(cell)}, line {line} {function}"
    place = f"{file}:{line} {function}"
    for folder in (each for each in sys.path if each and isinstance(each, str)):  # Python ignores all else
        place = place.removeprefix(folder + os.sep).replace("\n", "\\n")
    return place
