"""Measures calls of `numpy.tile`, and how long tilecore's `tile` takes for them: what `tilecore.profile` does.

Only some calls are made by both functions, as a pair, because what follows a pair takes longer. Times are net of the
profile: `calibrate` measures what it adds to a call.
"""

import os
import re
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import groupby, repeat, zip_longest
from linecache import getlines
from math import inf, prod
from random import Random
from statistics import median
from time import perf_counter
from timeit import timeit
from types import FrameType
from typing import Any, TextIO, TypeAlias

import numpy

from tilecore._core.arrays import tile as tilecore_tile
from tilecore._core.numpy_own import numpy_tile
from tilecore._core.request.errors import pass_on, short_repr, type_name
from tilecore._core.resources.memory import LEAST_RECYCLED_BYTES, get_max_bytes
from tilecore._core.tileplan import output_shape
from tilecore._process import (
    FAULTS,
    children_seconds,
    choose_clock,
    describe_others,
    explain_failure,
    page_faults,
    print_text,
    processor_seconds,
)
from tilecore._profile.block import ProfileBlock
from tilecore._profile.table import FEW, Row, make_table
from tilecore._units import with_unit

clock = choose_clock()
BUDGET, SHARE = 1.0, 0.1  # pairs may take BUDGET seconds, and SHARE of the time since the start
FIRST, SAMPLED = 100, 1 / 64  # a place's first calls are all pairs; later, this part of them
MAX_PAIRS = 10_000  # kept for one place and size
PLAIN = {int, float, complex, bool, str, bytes}
LARGE, MANY = 2**28, 100  # hints need at least these bytes of a result, or calls with one input
PLANNED = 2**14  # for results of at most these bytes, planning is a notable part of the time
BATCHED, BATCH = 2**17, 50e-6  # results of fewer than BATCHED bytes are timed in batches of BATCH seconds
# A and reps; NumPy's seconds; tilecore's seconds, its result or None, and its error or "".
Pair: TypeAlias = tuple[Any, Any, float, float, Any, str]
Place: TypeAlias = tuple[str, int, str]  # file, line, function
VIEW = "every repeated axis has length 1: if the result is only read, broadcasting or tile_view copies nothing"
SHORT = "for arithmetic, keep the tiling: NumPy broadcasts slowly over so short a last axis"
WIDE, NARROW = 2**10, 2**5  # bytes in NumPy's inner loop: broadcasting is faster from WIDE on, tiling up to NARROW
INPUTS = 1000  # at most so many different inputs are counted at one place


class Site:
    """A place that calls `numpy.tile`."""

    calls = returned = pairs = nbytes = largest = 0
    seconds = spent = 0.0
    inner_bytes, refusal = inf, ""

    def __init__(self) -> None:
        self.inputs: Counter[str] = Counter()
        self.sizes: dict[int, list[tuple[float, float]]] = {}  # pairs of seconds, by the bits of the result's size

    def ratios(self) -> tuple[float, ...]:
        """The lower quartile, median and upper quartile of NumPy's time divided by tilecore's, over all pairs.

        Results of about one size are compared. Each size counts by its median time, so no single call decides.
        """
        theirs, ours = 0.0, numpy.zeros(3)
        for pairs in filter(None, self.sizes.values()):
            weight = len(pairs) * median([pair[0] for pair in pairs])
            theirs += weight
            ours += weight / numpy.quantile([a / b for a, b in pairs], [0.25, 0.5, 0.75])
        return tuple((theirs / ours).tolist())

    def row(self, file: str, line: int, function: str, whole: float, faulty: bool = False) -> Row:
        code = read_code(file, line)
        pairs = 0 if self.refusal else self.pairs
        low, middle, high = self.ratios() if pairs else (0.0, 0.0, 0.0)
        ours = self.seconds / middle if pairs else None
        return {
            **{"file": file, "line": line, "function": function, "code": code},
            **{"calls": self.calls, "measured": pairs, "bytes": self.nbytes},
            **{"numpy_seconds": self.seconds, "tilecore_seconds": ours},
            "range": [low, high],
            "hint": self.choose_hint(code, whole, pairs, high, ours, faulty),
            "inputs": dict(self.inputs.most_common()),
        }

    def choose_hint(self, code: str, whole: float, pairs: int, high: float, ours: float | None, faulty: bool) -> str:
        """The first hint that holds. benchmarks/test_following.py measures what the hints advise."""
        loses = pairs >= FEW and high < 0.95 and not faulty
        repeated = ours and ours > 0.01 * whole and max(self.inputs.values()) >= MANY
        hints = {
            "every call raised an error": not self.returned,
            f"tilecore refuses this: {self.refusal}": self.refusal,
            "too short to matter: less than 1% of the whole time": self.seconds < 0.01 * whole,
            VIEW: self.inputs and self.inner_bytes >= WIDE and self.largest >= LEAST_RECYCLED_BYTES,
            "cut after the call: tile_region makes only what is kept, which pays if much is cut off": is_cut(code),
            "much memory: tile_mapped shares it between repeats, tile_region makes a part": self.largest >= LARGE,
            "one shape many times: a TilePlan, its batch, or out= is faster": repeated and self.largest <= PLANNED,
            "not measured: an array of another library, or too large to make twice": ours is None,
            "page faults decide: compare whole runs": faulty and pairs >= FEW and high < 1.1,
            "keep numpy.tile": loses,
            "nothing to gain": pairs >= FEW and high < 1.1,
            SHORT: 0 < self.inner_bytes <= NARROW,
            "": True,
        }
        return "slower with tilecore; " * loses + next(text for text, holds in hints.items() if holds)


class Profile:
    """What is measured while its block is active."""

    def __init__(self) -> None:
        self.retained, self.spent, self.cost = 0, 0.0, 0.0
        self.sites: dict[Place, Site] = {}
        self.threads: set[int] = set()
        self.table: dict[str, Any] = {}  # what is reported, as data

    def block(self) -> ProfileBlock:
        return ProfileBlock(self, active, measure_call)

    def start(self) -> dict[str, Any]:
        self.processors, self.times, self.faults = processor_seconds(), os.times(), page_faults()
        self.started = perf_counter()
        return self.table

    def report(self, file: TextIO | None) -> bool:
        """Print the table to `file`. If that fails, print why, and return False: the program goes on."""
        try:
            text, failed = self.tell(), ""
        except Exception as error:
            text = failed = f"tilecore profile: no table: {explain_failure(error)}"
        print_text(text, file)
        return not failed

    def tell(self) -> str:
        """Fill `table`, and return it as text."""
        # Threads that measure wait for each other, so the sum of their costs may exceed the program's time.
        whole = perf_counter() - self.started - (self.cost if len(self.threads) <= 1 else 0.0)
        user, system = (now - then for now, then in zip(os.times()[:2], self.times, strict=False))
        faults = page_faults() - self.faults
        faulty = faults > FAULTS * max(user + system, 0.05)  # the system counts in ticks of 10 ms
        rows = [site.row(*place, whole, faulty) for place, site in list(self.sites.items())]
        rows.sort(key=lambda row: -row["numpy_seconds"])
        theirs = sum(row["numpy_seconds"] for row in rows)
        ours = sum(row["tilecore_seconds"] or row["numpy_seconds"] for row in rows)
        totals = {"seconds": whole, "profile_seconds": self.cost, "numpy_seconds": theirs, "tilecore_seconds": ours}
        totals |= {"page_faults": faults, "system_seconds": system}
        self.table.update(totals, sites=rows)
        note = f"{faults:,} page faults, {with_unit(system, 's')} of system time: "
        note += "`tilecore compare` shows what the whole program gains."
        # tilecore takes large results from memory of its own, so other arrays find another heap than in this run.
        matters = faults > 0 and any(faulty or site.largest >= LEAST_RECYCLED_BYTES for site in self.sites.values())
        others = describe_others(self.processors)
        return make_table(totals, rows, len(self.threads), children_seconds(self.times), note * matters, others)

    def note(self, site: Site, result: Any, theirs: float, pair: Pair | None) -> None:
        site.returned += 1
        site.seconds += theirs
        if isinstance(result, numpy.ndarray):
            site.nbytes, site.largest = site.nbytes + result.nbytes, max(site.largest, result.nbytes)
        if pair is None:
            return
        A, reps, numpys, ours, copy, refusal = pair
        inner_bytes, what = 0, type_name(A)
        if type(A) is type(result) is numpy.ndarray:
            inner_bytes = A.itemsize * count_inner(A.shape, result.shape)
            layout = "C" if A.flags.c_contiguous else "Fortran" if A.flags.f_contiguous else "strided"
            what = f"{A.shape}, {short_repr(A.dtype)}, {layout}"
        key = f"{what}, {short_repr(reps) if is_plain(reps, levels=1) else type_name(reps)}"
        site.inner_bytes = min(site.inner_bytes, inner_bytes)
        if len(site.inputs) < INPUTS or key in site.inputs:
            site.inputs[key] += 1
        site.refusal = refusal or site.refusal
        if copy is not None:
            pairs = site.sizes.setdefault(copy.nbytes.bit_length(), [])
            if len(pairs) < MAX_PAIRS:
                pairs.append((max(numpys, 1e-9), max(ours, 1e-9)))
            site.pairs += 1  # last: a signal handler may raise before
            if copy.nbytes >= LEAST_RECYCLED_BYTES and self.retained < get_max_bytes() // 8:
                # This result lives as long as NumPy's: memory that is freed now would make later calls faster.
                self.retained += copy.nbytes
                # No Python code frees it: what a signal handler raised there would be lost.
                owner = result if result.base is None else result.base
                kept[id(copy)] = copy, weakref.ref(owner, partial(kept.pop, id(copy)))


kept: dict[int, Any] = {}  # tilecore's results, by `id`, and references to NumPy's
active: list[Profile] = []  # the profiles that measure, the outermost first
lock, local = threading.RLock(), threading.local()  # a signal handler may measure in the midst of a measurement


def forget() -> None:
    """End all profiles without a table, in a forked child: child processes are not measured."""
    global lock
    active.clear()
    lock = threading.RLock()  # another thread of the parent may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)


def measure_call(*args: Any, **kwargs: Any) -> Any:
    """Called instead of `numpy.tile`. The innermost profile decides whether to make a pair, and all note it."""
    begin, profiles = perf_counter(), tuple(active)
    if not profiles or getattr(local, "inside", False):  # called by an array of another library, for instance
        return numpy_tile(*args, **kwargs)
    theirs, pair, result, returned, innermost = 0.0, None, None, False, profiles[-1]
    place = place_of_caller(sys._getframe().f_back)
    site = innermost.sites.get(place) or innermost.sites.setdefault(place, Site())
    room = BUDGET + SHARE * (begin - innermost.started) - innermost.spent - site.spent
    sampled = room > 0 and (site.calls < FIRST or random() < SAMPLED)
    counted, unseen = overheads[sampled]
    try:
        local.inside = True
        if sampled:
            result, theirs, pair = measure_pair(args, kwargs, room, (site.pairs + len(innermost.sites)) % 2 == 1)
        else:
            start = perf_counter()
            result = numpy_tile(*args, **kwargs)
            theirs = perf_counter() - start
        theirs = max(theirs - counted, 0.0)
        returned = True
        return result
    except BaseException as error:
        trace = error.__traceback__
        while trace and str(trace.tb_frame.f_globals.get("__name__")).startswith("tilecore."):
            trace = trace.tb_next
        error.__traceback__ = trace  # as without a profile
        raise
    finally:
        local.inside = False  # first: a signal handler may raise at each call
        with lock:
            for profile in profiles:
                site = profile.sites.get(place) or profile.sites.setdefault(place, Site())
                if returned:
                    profile.note(site, result, theirs, pair)
                site.calls += 1
                profile.threads.add(threading.get_ident())
                cost = perf_counter() - begin - theirs + unseen
                profile.cost += cost
                if sampled:
                    profile.spent, site.spent = profile.spent + cost, site.spent + cost


def place_of_caller(frame: FrameType | None) -> Place:
    """The nearest place outside NumPy and tilecore, or "C"."""
    while frame and str(frame.f_globals.get("__name__")).partition(".")[0] in ("numpy", "tilecore"):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname) if frame else ("C", 0, "")


def measure_pair(args: Any, kwargs: Any, room: float, first: bool) -> tuple[Any, float, Pair]:
    """numpy.tile's result, its seconds, and the pair. tilecore is `first` or second, and may take `room` seconds."""
    arguments = dict(zip(("A", "reps"), args, strict=False)) | kwargs
    A, reps = arguments.get("A"), arguments.get("reps")
    measured = estimate_seconds(A, reps) <= room
    ours, copy, refusal = time_tilecore(A, reps) if measured and first else (0.0, None, "")
    numpys, start = clock(), perf_counter()
    result = numpy_tile(*args, **kwargs)
    elapsed = perf_counter() - start
    numpys = clock() - numpys
    if measured and not first:
        ours, copy, refusal = time_tilecore(A, reps)
    if copy is not None and copy.nbytes < BATCHED:  # a clock takes longer than such a call
        batches: list[tuple[Any, float]] = [(numpy_tile, numpys), (tilecore_tile, ours)][:: -1 if first else 1]
        times = {function: time_batch(function, A, reps, seconds) for function, seconds in batches}
        numpys, ours = times[numpy_tile], times[tilecore_tile]
    return result, elapsed, (A, reps, numpys, ours, copy, refusal)


def calibrate(spent: float, calls: int) -> tuple[float, float]:
    """The profile's own seconds a call: those that its clocks count as numpy.tile's, and those outside all clocks.

    `spent` is infinite for calls that are only timed, and minus infinite for pairs.
    """
    trial, found = Profile(), []
    trial.start()
    trial.spent = spent
    active.append(trial)
    names = {"tile": numpy_tile, "measured": partial(measure_call), "x": numpy.zeros(1)}
    for _ in range(15):
        trial.sites, trial.cost = {}, 0.0
        theirs = timeit("tile(x, 2)", number=100, globals=names) / 100
        whole = timeit("measured(x, 2)", number=calls, globals=names)
        (site,) = trial.sites.values()
        found.append((site.seconds / calls - theirs, (whole - site.seconds - trial.cost) / calls))
    active.remove(trial)
    within, outside = map(median, zip(*found, strict=True))
    return within, outside


def read_code(file: str, line: int) -> str:
    """The line, and the following ones until its parentheses are closed; "" if the file cannot be read."""
    code = ""
    for text in getlines(file)[max(line - 1, 0) : line + 9]:
        code += text
        if code.count("(") <= code.count(")"):
            break
    return " ".join(code.split())


def is_cut(code: str) -> bool:
    """Whether a call of `tile` is followed by a slice that has a bound.

    >>> is_cut("y = np.tile(x, -(-n // len(x)))[:n]"), is_cut("y = np.tile(x, n)[:, None]")
    (True, False)
    """
    before = ""
    while code != before:  # remove all other parentheses, the innermost first
        before, code = code, re.sub(r"(?<!\btile)\([^()]*\)", "", code)
    return bool(re.match(r".*?\btile\([^()]*\)\[[^]]*(\w *:|(?<!:): *[-\w])", code))


def count_inner(shape: tuple[int, ...], result: tuple[int, ...]) -> int:
    """The elements of NumPy's inner loop if an array of this shape is broadcast to `result`; 0 if it cannot be.

    >>> count_inner((480, 640, 1), (480, 640, 3)), count_inner((4, 1, 56, 56), (4, 9, 56, 56)), count_inner((2,), (4,))
    (3, 3136, 0)
    """
    axes = [(n, m) for n, m in zip_longest(shape[::-1], result[::-1], fillvalue=1) if m != 1]
    if any(n not in (1, m) for n, m in axes):
        return 0
    _, last = next(groupby(axes, key=lambda axis: axis[0] == axis[1]), (True, iter(())))
    return prod(m for _, m in last)


def is_plain(value: Any, levels: int = 64) -> bool:
    """Whether `value`, lists of at most `levels` levels, may be read twice, because reading it runs no other code."""
    if type(value) in (list, tuple):
        return levels > 0 and all(is_plain(item, levels - 1) for item in value)
    if type(value) is numpy.ndarray or isinstance(value, numpy.generic):
        return not value.dtype.hasobject
    return type(value) in PLAIN


def estimate_seconds(A: Any, reps: Any) -> float:
    """Roughly the seconds to make the result once more; infinite if it must not be made."""
    if not ((type(A) is numpy.ndarray or is_plain(A)) and is_plain(reps, levels=1)):
        return inf
    try:
        nbytes = A.itemsize * prod(output_shape(A.shape, reps)) if type(A) is numpy.ndarray else 0
    except Exception as error:  # tilecore.tile will say why
        pass_on(error)
        return 0
    return nbytes / 1e9 if nbytes <= get_max_bytes() // 32 else inf


def time_tilecore(A: Any, reps: Any) -> tuple[float, Any, str]:
    result, refusal = None, ""
    start = clock()
    try:
        result = tilecore_tile(A, reps)
    except Exception as error:
        pass_on(error)
        refusal = " ".join(str(error).split())
    return clock() - start, result, refusal


def time_batch(function: Callable[..., object], A: Any, reps: Any, seconds: float) -> float:
    """The mean seconds of a call, after one that is not timed; `seconds` is a first measurement."""
    calls = max(1, int(BATCH / max(seconds, 1e-7)))
    function(A, reps)
    start = clock()
    for _ in repeat(None, calls):
        function(A, reps)
    return (clock() - start) / calls


random = Random(0).random  # the program's own random numbers stay as they are
overheads = [(0.0, 0.0)] * 2
overheads = [calibrate(inf, 100), calibrate(-inf, 5)]  # without a pair, and with one: what follows a pair takes longer
