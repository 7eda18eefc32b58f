"""`tilecore profile`: measures a program's calls of `numpy.tile`, and how long tilecore's `tile` takes for them.

The program gets the results of `numpy.tile`, and each call is timed. At each place in the program, some calls are made
by both functions, in alternating order, on the program's own arrays. These pairs of calls may take a second plus a
tenth of the time since the start. One place may take as much of this as it leaves for the others.
"""

import atexit
import json
import os
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from math import inf, prod
from statistics import median, quantiles
from time import perf_counter, thread_time
from typing import Any, TypeAlias

import numpy

import tilecore
from tilecore._cli.output import errors_naming, new_file, one_line
from tilecore._cli.run import children_seconds, install, start
from tilecore._cli.units import with_unit
from tilecore._core.request.subclasses import numpy_tile
from tilecore._core.resources.recycle import LEAST_BYTES

BUDGET, SHARE = 1.0, 0.1  # for pairs: seconds, and a part of the time since the start
MAX_PAIRS = 10_000  # kept for one place and size
PLAIN = {numpy.ndarray, int, float, complex, bool, str, bytes}
LARGE, MANY, FEW = 2**28, 100, 8  # hints need these bytes of a result, calls with one input; fewer pairs are rough
BATCHED, BATCH = 2**17, 50e-6  # results of fewer bytes are timed in batches of BATCH seconds
BUSY = 0.3  # the report mentions other processes if they had a larger part of the processors' time
# A thread's processor time excludes other processes. On Windows it has steps of 16 ms.
clock = perf_counter if os.name == "nt" else thread_time
Row: TypeAlias = dict[str, Any]
Pair: TypeAlias = tuple[float, Any, str]
VIEW = "every repeated axis has length 1: if the result is only read, broadcasting or tile_view copies nothing"
INPUTS, ROWS = 1000, 20  # at most: inputs counted at one place, places in the table


class Site:
    """A place that calls `numpy.tile`."""

    calls = returned = pairs = nbytes = largest = 0
    seconds = spent = 0.0
    is_view, refusal = True, ""

    def __init__(self) -> None:
        self.inputs: Counter[tuple[object, ...]] = Counter()
        self.sizes: dict[int, list[tuple[float, float]]] = {}  # pairs of seconds, by the bits of the result's size

    def ratios(self) -> tuple[float, ...]:
        """The lower quartile, median and upper quartile, over the pairs, of NumPy's time divided by tilecore's.

        Results of about one size are compared with each other. Each size counts by its median time, so no single call
        decides.
        """
        theirs, ours = 0.0, [0.0, 0.0, 0.0]
        for pairs in self.sizes.values():
            weight = len(pairs) * median([pair[0] for pair in pairs])
            ratios = [a / b for a, b in pairs]
            theirs += weight
            for n, ratio in enumerate(quantiles(ratios * (1 + (len(ratios) < 2)), method="inclusive")):
                ours[n] += weight / ratio
        return tuple(theirs / seconds for seconds in ours)

    def row(self, file: str, line: int, function: str, program: float) -> Row:
        pairs = 0 if self.refusal else self.pairs
        low, middle, high = self.ratios() if pairs else (0.0, 0.0, 0.0)
        ours = self.seconds / middle if pairs else None
        loses = pairs >= FEW and high < 0.95
        hints = {  # the first that holds is shown
            "every call raised an error": not self.returned,
            f"tilecore refuses this: {self.refusal}": self.refusal,
            "nothing to gain: less than a hundredth of the program": self.seconds < 0.01 * program,
            VIEW: self.is_view and self.inputs,
            "much memory: tile_mapped shares it between repeats, tile_region makes a part": self.largest >= LARGE,
            "one shape many times: a TilePlan, its batch, or out= saves more": ours
            and ours > 0.01 * program
            and max(self.inputs.values()) >= MANY,
            "not measured: an array of another library, or too large to make twice": ours is None,
            "keep numpy.tile": loses,
            "nothing to gain": pairs >= FEW and high < 1.1,
            "": True,
        }
        return {
            **{"file": file, "line": line, "function": function, "calls": self.calls, "measured": pairs},
            **{"bytes": self.nbytes, "numpy_seconds": self.seconds, "tilecore_seconds": ours},
            "range": [low, high],
            "hint": "slower with tilecore; " * loses + next(text for text, holds in hints.items() if holds),
            "inputs": {", ".join(map(str, key)): calls for key, calls in self.inputs.most_common()},
        }


class Profile:
    def __init__(self) -> None:
        self.ended, self.retained, self.spent, self.cost = False, 0, 0.0, 0.0
        self.started, self.processors = perf_counter(), processor_seconds()
        self.sites: dict[tuple[str, int, str], Site] = {}
        self.lock, self.local = threading.Lock(), threading.local()
        self.threads: set[int] = set()

    def tile(self, *args: Any, **kwargs: Any) -> Any:
        """Called instead of `numpy.tile`."""
        if self.ended or getattr(self.local, "inside", False):  # called by an array of another library, for instance
            return numpy_tile(*args, **kwargs)
        begin, theirs, returned = perf_counter(), 0.0, False
        frame = sys._getframe().f_back
        while frame and str(frame.f_globals.get("__name__")).partition(".")[0] in ("numpy", "tilecore"):
            frame = frame.f_back
        place = (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname) if frame else ("C", 0, "")
        site = self.sites.get(place) or self.sites.setdefault(place, Site())
        room = BUDGET + SHARE * (begin - self.started) - self.spent - site.spent
        self.local.inside = True
        try:
            arguments = dict(zip(("A", "reps"), args, strict=False)) | kwargs if room > 0 else {}
            A, reps = arguments.get("A"), arguments.get("reps")
            measured, first = room > 0 and estimate_seconds(A, reps) <= room, (site.pairs + len(self.sites)) % 2
            pair = time_tilecore(A, reps) if measured and first else (0.0, None, "")
            start, own = perf_counter(), clock()
            result = numpy_tile(*args, **kwargs)
            own = clock() - own
            theirs = perf_counter() - start
            pair = time_tilecore(A, reps) if measured and not first else pair
            if pair[1] is not None and pair[1].nbytes < BATCHED:  # a clock takes longer than such a call
                calls = max(1, int(BATCH / max(own, 1e-7)))
                one, two = (tilecore.tile, numpy_tile) if first else (numpy_tile, tilecore.tile)
                times = time_batch(one, A, reps, calls), time_batch(two, A, reps, calls)
                own, pair = times[first], (times[1 - first], *pair[1:])
            returned = True
            return result
        finally:
            with self.lock:
                if returned:
                    self.note(site, A, reps, result, theirs, own, pair if room > 0 else None)
                site.calls += 1
                self.threads.add(threading.get_ident())
                cost = perf_counter() - begin - theirs
                self.cost += cost
                if room > 0:
                    self.spent, site.spent = self.spent + cost, site.spent + cost
            self.local.inside = False

    def note(self, site: Site, A: Any, reps: Any, result: Any, theirs: float, own: float, pair: Pair | None) -> None:
        site.returned += 1
        site.seconds += theirs
        if isinstance(result, numpy.ndarray):
            site.nbytes, site.largest = site.nbytes + result.nbytes, max(site.largest, result.nbytes)
        if pair is None:
            return
        ours, copy, refusal = pair
        key: tuple[object, ...] = (type(A).__name__, str(reps) if is_plain(reps) else type(reps).__name__)
        is_view = False
        if type(A) is numpy.ndarray:
            is_view = all(n in (1, m) for n, m in zip(A.shape[::-1], result.shape[::-1], strict=False))
            layout = "C" if A.flags.c_contiguous else "Fortran" if A.flags.f_contiguous else "strided"
            key = (A.shape, str(A.dtype), layout, key[1])
        site.is_view = site.is_view and is_view
        if len(site.inputs) < INPUTS or key in site.inputs:
            site.inputs[key] += 1
        site.refusal = refusal or site.refusal
        if copy is not None:
            site.pairs += 1
            pairs = site.sizes.setdefault(copy.nbytes.bit_length(), [])
            if len(pairs) < MAX_PAIRS:
                pairs.append((max(own, 1e-9), max(ours, 1e-9)))
            if copy.nbytes >= LEAST_BYTES and self.retained < tilecore.get_max_bytes() // 8:
                # This result lives as long as NumPy's: memory that is freed now would make later calls faster.
                self.retained += copy.nbytes
                weakref.finalize(result if result.base is None else result.base, id, copy).atexit = False

    def report(self, path: str | None) -> None:
        if self.ended:  # in a child
            return
        self.ended = True
        # Several threads measure at once, and wait for each other: their sum may exceed the program's time.
        program = perf_counter() - self.started - (self.cost if len(self.threads) <= 1 else 0.0)
        rows = [site.row(*place, program) for place, site in list(self.sites.items())]
        rows.sort(key=lambda row: -row["numpy_seconds"])
        theirs = sum(row["numpy_seconds"] for row in rows)
        ours = sum(row["tilecore_seconds"] or row["numpy_seconds"] for row in rows)
        totals = {"seconds": program, "profile_seconds": self.cost, "numpy_seconds": theirs, "tilecore_seconds": ours}
        lines = make_table(rows, *totals.values(), threads=len(self.threads))
        if children := children_seconds():
            lines.append(f"\nNot measured: child processes, which took {children}")
        others, every = (now - then for now, then in zip(processor_seconds(), self.processors, strict=True))
        if 0 < BUSY * every < others:
            lines.append(f"\nOther processes took {others / every:.0%} of the processors' time: times may be too long")
        try:
            if path is not None:
                text = json.dumps(totals | {"sites": rows}, indent=1).encode()
                with errors_naming(path), new_file(path, len(text), force=True) as write:
                    write(memoryview(text))
        except (OSError, ValueError) as error:
            lines.append(f"tilecore: {one_line(error)}")
        with suppress(OSError, ValueError):  # a full disk, or stderr is closed
            print(*lines, sep="\n", file=sys.__stderr__, flush=True)


def is_plain(value: Any, depth: int = 0) -> bool:
    """Whether `value` may be read twice: that runs no other code."""
    if type(value) in (list, tuple):
        return depth < 64 and all(is_plain(item, depth + 1) for item in value)
    return type(value) in PLAIN or isinstance(value, numpy.generic)


def estimate_seconds(A: Any, reps: Any) -> float:
    """Roughly the seconds to make a result once more; infinite if it must not be made."""
    if not (is_plain(A) and is_plain(reps)):
        return inf
    try:
        nbytes = A.itemsize * prod(tilecore.output_shape(A.shape, reps)) if type(A) is numpy.ndarray else 0
    except Exception:  # tilecore.tile will say why
        return 0
    return nbytes / 1e9 if nbytes <= tilecore.get_max_bytes() // 32 else inf


def time_tilecore(A: Any, reps: Any) -> Pair:
    """tilecore's seconds, its result or None, and its error or ""."""
    result, refusal = None, ""
    start = clock()
    try:
        result = tilecore.tile(A, reps)
    except Exception as error:
        refusal = " ".join(str(error).split())
    return clock() - start, result, refusal


def time_batch(function: Callable[..., object], A: Any, reps: Any, calls: int) -> float:
    """The mean seconds of a call."""
    start = clock()
    for _ in range(calls):
        function(A, reps)
    return (clock() - start) / calls


def make_table(rows: list[Row], program: float, cost: float, theirs: float, ours: float, *, threads: int) -> list[str]:
    if not rows:
        return ["\ntilecore profile: numpy.tile was not called"]
    whole, measuring, before, after, left = (
        with_unit(max(value, 0.0), "s") for value in (program, cost, theirs, ours, program - theirs + ours)
    )
    took, would, so = f"of the program's {whole}, {theirs / program:.1%}", f" of {left}", ""
    if threads > 1:
        took, would, so = f"in {threads} threads together; the program took {whole}", "", ", in all threads together"
    lines = [
        f"\ntilecore profile: numpy.tile took {before} {took}",
        f"With tilecore.tile: {after}{would}. Measuring took {measuring} more{so}.",
        "Not counted: importing tilecore, once.",
        f"\n{'numpy.tile':>10} {'tilecore':>10} {'':>6} {'calls':>11} {'results':>8}  place",
    ]
    for row in rows[:ROWS]:
        before, seconds, inputs = with_unit(row["numpy_seconds"], "s"), row["tilecore_seconds"], [*row["inputs"]]
        after, ratio = (with_unit(seconds, "s"), f"{row['numpy_seconds'] / seconds:.2g}x") if seconds else ("", "")
        place, size = f"{row['file']}:{row['line']} {row['function']}", with_unit(row["bytes"], "B")
        for folder in filter(None, sys.path):
            place = place.removeprefix(folder + os.sep).replace("\n", "\\n")
        low, high = row["range"]
        rough = 0 < row["measured"] < FEW or high > 1.5 * low
        ratio = "~" * rough + ratio
        lines.append(f"{before:>10} {after:>10} {ratio:>6} {row['calls']:>11,} {size:>8}  {place}")
        more = f" and {len(inputs) - 1} more" * (len(inputs) > 1)
        what = f"{inputs[0]}{more}; measured {row['measured']:,} of {row['calls']:,} calls" if inputs else ""
        what += f", {low:.2g}x to {high:.2g}x" * (rough and row["measured"] > 1)
        lines += [f"{'':10} {line}" for line in (what, row["hint"]) if line]
    return lines + [f"{len(rows) - ROWS} more places"] * (len(rows) > ROWS)


def processor_seconds() -> tuple[float, float]:
    """The processor seconds of other processes, and the seconds of all processors; zeros if this is not Linux."""
    try:
        with open("/proc/stat") as file:
            seconds = [int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in file.readline().split()[1:9]]
    except OSError:
        return 0.0, 0.0
    idle = sum(seconds[3:5])  # waiting for a disk included
    return sum(seconds) - idle - sum(os.times()[:4]), sum(seconds)


def writable(path: str) -> str:
    """The absolute path. Errors of writing there are raised now, and not after the program."""
    with suppress(EOFError), errors_naming(path), new_file(path, 0, force=True):
        raise EOFError  # so nothing is written
    return os.path.abspath(path)


def profile(name: str, is_module: bool, path: str | None, arguments: Sequence[str]) -> str | None:
    measured = Profile()
    install(measured.tile)
    atexit.register(measured.report, path)  # before the program's own functions, so it runs after them
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=partial(setattr, measured, "ended", True))
    missing = start(name, is_module, arguments)
    measured.ended = missing is not None
    return missing
