"""Code that runs while references are written: a signal's handler, another thread, an object that dies.

Whatever it does, each item holds its old or its new object, and the counts of all are exact.
"""

import collections
import gc
import itertools
import operator
import signal
import sys
import threading
import time
from _thread import interrupt_main
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import tilecore

Strings = np.dtypes.StringDType
pytestmark = [pytest.mark.quick, pytest.mark.whole_process, pytest.mark.usefixtures("heard")]

MANY = 3 << 19  # of references: other threads get several turns, and signals are looked for


def from_c(*calls):
    """Call one after the other with no Python in between, where signals would be looked for too."""
    return list(map(operator.call, calls))


@pytest.fixture
def no_python(monkeypatch):
    """On the way to where tilecore looks for signals."""
    monkeypatch.setattr(tilecore._core.write.whole, "get_num_threads", partial(int, 1))
    monkeypatch.setattr(tilecore._core.request.arguments, "same_dtype", operator.eq)


def counts(items):
    return [sys.getrefcount(item) for item in items]


# ---------------------------------------------------------------- signals and turns

OLD, NEW, OTHER = object(), object(), object()


def objects(n):
    x = np.empty(n, object)
    x[::2], x[1::2] = NEW, OTHER
    return x


def structures(n):
    x = np.zeros(n, [("n", "i4"), ("o", "O")])
    x["n"][1::2] = 1
    x["o"] = objects(n)
    return x


SOURCES = {"objects": objects, "structures": structures}
CALLS = {
    "once": lambda x: (tilecore.tile, x, 1),
    "copies": lambda x: (tilecore.tile, x[:64], 5 * 2**28 // x[:64].nbytes),  # counted all at once, and taken back
    "twice": lambda x: (tilecore.tile, x, 2),
    "region": lambda x: (tilecore.tile_region, x, 3, (5,), (5 + MANY,)),
    "out": lambda x: (tilecore.tile, x[:2], MANY // 2, old(x)),
    "region, out": lambda x: (tilecore.tile_region, x, 3, (5,), (5 + MANY,), old(x)),
}


def old(x):
    out = np.zeros(MANY, x.dtype)
    (out if x.dtype == object else out["o"])[:] = OLD
    return out


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("name", CALLS)
def test_interrupted(name, kind, no_python):
    x = SOURCES[kind](MANY)
    call, *arguments = CALLS[name](x)
    out = arguments[-1] if name.endswith("out") else None
    before = counts([OLD, NEW, OTHER])
    returned = []
    with pytest.raises(KeyboardInterrupt):
        from_c(interrupt_main, partial(call, *arguments), partial(returned.append, True))
    assert not returned
    if out is not None:
        held = out if kind == "objects" else out["o"]
        written = int((held != OLD).sum())
        assert 0 < written < MANY
        assert counts([OLD])[0] == before[0] - written
        assert sum(counts([NEW, OTHER])) == sum(before[1:]) + written
        assert (held[:written] != OLD).all() and (held[written:] == OLD).all()
        del held, out, arguments
    else:
        assert counts([OLD, NEW, OTHER]) == before
    del x
    gc.collect()


@pytest.mark.parametrize("region", [False, True])
def test_interrupted_strings(region, no_python):
    x = np.array(["a", "longer than what lies in the item itself"], Strings())
    out = np.full(MANY, "old", Strings())
    call = partial(tilecore.tile, x, MANY // 2, out)
    if region:
        call = partial(tilecore.tile_region, x, MANY, (1,), (1 + MANY,), out)
    with pytest.raises(KeyboardInterrupt):
        from_c(interrupt_main, call)
    written = int((out != "old").sum())
    assert 0 < written < MANY
    assert out[written - 1] in x and out[written] == "old"
    call()
    assert out[:2].tolist() == x.tolist()[:: -1 if region else 1]


@pytest.mark.parametrize("name", ["region", "out", "region, out"])
def test_other_threads_get_a_turn(name):
    x = SOURCES["objects"](MANY)
    call, *arguments = CALLS[name](x)
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(None)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    other = threading.Thread(target=tick)
    other.start()
    try:
        before = after = 0
        patience = time.monotonic() + 60  # seconds: on a busy machine a call may end before its turn comes
        while after == before and time.monotonic() < patience:
            before, _, after = from_c(partial(len, ticks), partial(call, *arguments), partial(len, ticks))
    finally:
        stop.set()
        other.join()
        sys.setswitchinterval(interval)
    assert after > before


# ---------------------------------------------------------------- objects that die


class Dying:
    def __init__(self, last_words):
        self.last_words = last_words

    def __del__(self):
        self.last_words()


def test_what_is_let_go_sees_new_references():
    """It dies when what replaces it stands, and may write there itself."""
    out = np.full(1000, None)
    seen = []

    def last_words():
        seen.append(out[3] is NEW)
        out[4] = OTHER
        tilecore.tile(np.array([OTHER], object), 10, out[-10:])

    before = counts([NEW, OTHER])
    out[3] = Dying(last_words)
    tilecore.tile(np.array([NEW], object), 1000, out)
    assert seen == [True]
    assert (out[:4] == NEW).all() and out[4] is OTHER and (out[5:900] == NEW).all()
    last = sum(1 for item in out if item is OTHER)
    assert counts([NEW, OTHER]) == [before[0] + 1000 - last, before[1] + last]


def test_collections_while_they_are_let_go():
    """Each old object collects garbage, and tiles into the same place; every count is exact at the end."""
    out = np.full(2000, None)
    source = np.array([NEW, OTHER], object)
    before = counts([NEW, OTHER])

    def last_words():
        gc.collect(0)
        tilecore.tile(source[::-1], 1000, out)

    for k in range(0, 2000, 100):
        cycle = [Dying(last_words)]
        cycle.append(cycle)
        out[k], out[k + 1] = cycle, Dying(last_words)
    del cycle
    tilecore.tile(source, 1000, out)
    gc.collect()
    held = [sum(1 for item in out if item is which) for which in (NEW, OTHER)]
    assert sum(held) == 2000
    assert counts([NEW, OTHER]) == [a + b for a, b in zip(before, held, strict=True)]


@pytest.mark.parametrize("what", ["tile: a", "tile: out", r"TilePlan.batch: arrays\[1\]", "TilePlan.batch: out"])
def test_resized_in_the_midst(what):
    """The memory is gone that was to be read, or written: the rest is an error, and counts are exact."""
    batch, is_out = "batch" in what, what.endswith("out")
    x, out = np.array([NEW] * 4000, object), np.full((2, 8000) if batch else 8000, None)
    changed = out if is_out else x
    before = counts([NEW])[0]
    lost = []

    def last_words():
        held, items = counts([NEW])[0], sum(1 for item in changed[10:].flat if item is NEW)
        changed.resize((10, *changed.shape[1:]), refcheck=False)
        lost.append(counts([NEW])[0] - held + items)  # of NumPy 2.0.0 alone, all of them

    out.flat[1] = Dying(last_words)
    with pytest.raises(ValueError, match=f"^{what} was given other memory"):
        if batch:
            tilecore.TilePlan(4000, 2, object).batch([x.copy(), x], out)
        else:
            tilecore.tile(x, 2, out)
    left = sum(1 for item in itertools.chain(x, out.flat) if item is NEW)
    assert counts([NEW])[0] == before - 4000 + left + sum(lost)


@pytest.mark.parametrize("kind", [*SOURCES, "strings"])
@pytest.mark.parametrize("what", ["a", "out"])
def test_resized_by_a_signal_handler(what, kind, monkeypatch):
    """It runs after the places have been noted."""
    monkeypatch.setattr(tilecore._core.request.arguments, "same_dtype", operator.eq)  # not there yet
    source = SOURCES.get(kind, lambda n: np.full(n, "a string that is long", Strings()))
    x = source(2**18)
    out = np.empty(2**20, x.dtype)  # large enough to look for signals
    changed = {"a": x, "out": out}[what]
    done = []

    def resize(*_):
        if not done:
            done.append(changed.resize(10, refcheck=False))

    signal.signal(signal.SIGINT, resize)
    with pytest.raises(ValueError, match=f"^tile: {what} was given other memory"):
        from_c(interrupt_main, partial(tilecore.tile, x, 4, out))
    assert done


KINDS = {  # and a dtype of the same size without references
    "objects": ("O", "i8"),
    "structures": ([("o", "O"), ("n", "i8")], [("o", "i8"), ("n", "i8")]),
    "strings": (Strings(), "V16"),
    "numbers": ("i8", ">i8"),
}
WAYS = ["tile", "region", "plane", "plan", "plan.region", "batch", "stack", "mapped"]


def filled(n, dtype, item):
    a = np.zeros(n, dtype)
    (a["o"] if a.dtype.names else a)[...] = item
    return a


def case(way, dtype, size, n, with_out):
    """An input, `out`, the call, and what its errors call the input."""
    x = filled((1, size) if way == "stack" else size, dtype, "7")
    last = n * size
    out = filled((1, last) if way in ("batch", "stack") else last, dtype, "0") if with_out else None
    plan = tilecore.TilePlan(size, n, dtype)
    call = {
        "tile": lambda: tilecore.tile(x, n, out),
        "region": lambda: tilecore.tile_region(x, n + 1, (5,), (5 + last,), out),
        "plane": lambda: tilecore.tile_region(x, None, (-5,), (last - 5,), out),
        "plan": lambda: plan.tile(x, out),
        "plan.region": lambda: plan.region(x, (0,), (last,), out),
        "batch": lambda: plan.batch([x], out),
        "stack": lambda: plan.batch(x, out),
        "mapped": lambda: tilecore.tile_mapped(x, n),
    }[way]
    return x, out, call, {"batch": r"arrays\[0\]", "stack": "arrays"}.get(way, "a")


@pytest.mark.parametrize("way", [*WAYS[:5], "second of a list", "second of a stack"])
@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("what", ["input", "out"])
def test_another_dtype_at_the_same_address(what, kind, way):
    """An object that dies makes numbers of what was references; their address and size stay as they were."""
    dtype, plain = KINDS[kind]
    if way in WAYS:
        x, out, call, name = case(way, dtype, 60, 100, True)  # more than are let go of at once without the GIL
    else:
        stack = way == "second of a stack"
        x, out = filled((2, 30) if stack else 30, dtype, "new"), filled((2, 6000), dtype, "old")
        call = partial(tilecore.TilePlan(30, 200, dtype).batch, x if stack else [x, x], out)
        name = "arrays" if stack else r"arrays\[0\]"
    changed = x if what == "input" else out

    def last_words():
        at = changed.ctypes.data
        changed.__setstate__((1, changed.shape, np.dtype(plain), False, b"1" * changed.nbytes))
        if what == "input":  # of a thousand bytes or more NumPy keeps the bytes themselves
            assert changed.dtype == plain and changed.ctypes.data == at

    (out["o"] if out.dtype.names else out).flat[3] = Dying(last_words)
    words = f": {name if what == 'input' else 'out'} was given other memory or another dtype"
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ["input", "out", "input, new result"])
def test_memory_that_is_taken_away(what, kind, monkeypatch):
    """As the number of threads is asked for."""
    dtype, plain = KINDS[kind]
    ways = set(WAYS) - {"batch"}  # references in a list are written without asking
    if kind == "numbers":
        ways.add("batch")
    if kind != "numbers" or what != "input, new result":
        ways.remove("mapped")
    for way in ways:
        x, out, call, name = case(way, dtype, 1 << 19, 2, what != "input, new result")
        changed = out if what == "out" else x

        def take_away(changed=changed):
            changed.__setstate__((1, (4,), np.dtype(plain), False, b"1" * (4 * np.dtype(plain).itemsize)))
            return 1

        monkeypatch.setattr(tilecore._core.write.whole, "get_num_threads", take_away)
        with pytest.raises(ValueError, match=f": {'out' if what == 'out' else name} was given other memory"):
            call()
        assert changed.shape == (4,)


def test_the_source_changes_in_the_midst():
    """What was read has been counted."""
    x, out = np.array([NEW] * 4000, object), np.full(8000, None)
    before = counts([NEW, OTHER])
    out[1] = Dying(lambda: x.fill(OTHER))
    tilecore.tile(x, 2, out)
    written = int((out == NEW).sum())
    assert 0 < written < 8000 and (out[written:] == OTHER).all()
    assert counts([NEW, OTHER]) == [before[0] - 4000 + written, before[1] + 12000 - written]


def test_threads_that_write_to_each_others_sources():
    """Sources and results of other threads at once: every count is exact at the end."""
    items = [object() for _ in range(5)]
    before = counts(items)
    arrays = [np.array([items[k]] * 6000, object) for k in range(4)]

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(60):
            a, b = rng.choice(4, 2, replace=False)
            if seed % 2:
                tilecore.tile(arrays[a][: 6000 // 3], 3, arrays[b])
            else:
                tilecore.tile_region(arrays[a], 3, (7,), (6007,), arrays[b])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    held = collections.Counter(id(item) for array in arrays for item in array)
    assert counts(items) == [n + held[id(item)] for n, item in zip(before, items, strict=True)]
