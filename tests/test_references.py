"""Items that hold references: counts are exact whatever happens in the midst, and memory is bounded."""

import collections
import ctypes
import gc
import itertools
import operator
import signal
import sys
import threading
import tracemalloc
from _thread import interrupt_main
from functools import partial

import numpy as np
import pytest

import tilecore

Strings = np.dtypes.StringDType
RECORD = np.dtype([("n", "i2"), ("o", "O"), ("deep", [("c", "u1"), ("p", "O", (2,))], (2,))])
MANY = 3 << 20  # of references: other threads get several turns, and signals are looked for


def from_c(*calls):
    """Call one after the other with no Python in between, where signals would be looked for too."""
    return list(map(operator.call, calls))


@pytest.fixture(autouse=True)
def heard():
    """A shell has the programs that it starts in the background ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def no_python(monkeypatch):
    """On the way to where tilecore looks for signals."""
    monkeypatch.setattr(tilecore._core.tiling, "get_num_threads", partial(int, 1))
    monkeypatch.setattr(tilecore._core.arguments, "same_dtype", operator.eq)


# ---------------------------------------------------------------- values and counts


def sources(rng):
    """Arrays of each kind, and the objects that they hold."""
    shape = tuple(rng.integers(1, 4, rng.integers(0, 4)))
    items = [object() for _ in range(3)]
    plain = np.empty(shape, object)
    record = np.zeros(shape, RECORD)
    for index in np.ndindex(shape):
        plain[index] = items[rng.integers(3)]
        record[index] = (rng.integers(9), items[rng.integers(3)], [(1, items[:2]), (2, items[1:])])
    strings = np.array([str(k) * (k % 50) for k in range(plain.size)], Strings()).reshape(shape)
    for x in (plain, record, strings):
        yield x, items
        if x.ndim:
            yield x[::-1].T, items
            yield np.broadcast_to(x, (2, *x.shape)), items


def as_picked(x):
    """For NumPy to pick items of, which for strings NumPy 2.0.0 does wrongly."""
    return np.array(x.tolist(), object).reshape(x.shape) if x.dtype.kind == "T" else x


def same(got, want):
    if got.dtype.kind == "V":
        return all(same(got[name], want[name]) for name in got.dtype.names)
    if got.dtype.kind == "O":
        return all(a is b for a, b in zip(got.ravel(), want.ravel(), strict=True))
    return got.tolist() == want.tolist()


def counts(items):
    return [sys.getrefcount(item) for item in items]


@pytest.mark.parametrize("seed", range(25))
def test_every_region(seed, oracle):
    rng = np.random.default_rng(seed)
    for x, items in sources(rng):
        reps = tuple(int(n) for n in rng.integers(1, 4, x.ndim + rng.integers(2)))
        before = counts(items)
        whole = tilecore.tile(x, reps)
        want = oracle(as_picked(x), reps)
        assert same(whole, want)
        held = counts(items)
        bounds = [sorted(rng.integers(0, n + 1, 2).tolist()) for n in whole.shape]
        start, stop = [low for low, _ in bounds], [high for _, high in bounds]
        inside = tuple(slice(low, high) for low, high in bounds)
        part = tilecore.tile_region(x, reps, start, stop)
        assert part.shape == want[(*inside, ...)].shape and same(part, want[(*inside, ...)])
        for target in (np.zeros(part.shape, x.dtype), part.copy()):
            assert tilecore.tile_region(x, reps, start, stop, target) is target
            assert same(target, want[(*inside, ...)])
        copy = part.copy()  # NumPy counts as many
        with_copies = counts(items)
        del part
        one = [a - b for a, b in zip(with_copies, counts(items), strict=True)]
        del copy, target
        assert [a - b for a, b in zip(with_copies, counts(items), strict=True)] == [
            3 * n for n in one
        ]
        assert counts(items) == held
        del whole, want
        assert counts(items) == before


def test_large_regions(oracle):
    """Of more pieces than one, with a run that begins in the midst of the source."""
    items = [object() for _ in range(7)]
    x = np.array(items, object)
    before = counts(items)
    got = tilecore.tile_region(x, MANY, (3,), (3 + MANY,))
    assert got[:7].tolist() == items[3:] + items[:3]
    assert all((got[k::7] == items[(3 + k) % 7]).all() for k in range(7))
    tilecore.tile_region(x, MANY, (2,), (2 + MANY,), got)
    assert all((got[k::7] == items[(2 + k) % 7]).all() for k in range(7))
    assert sum(counts(items)) == sum(before) + MANY
    del got
    assert counts(items) == before


class Plan(ctypes.Structure):  # as in plan.pxd, as far as a region of references reads it
    _fields_ = [
        *((name, ctypes.c_int) for name in ("ndim", "input_ndim", "axis")),
        *((name, ctypes.c_ssize_t) for name in ("itemsize", "nbytes", "input_nbytes", "copies")),
        *((name, ctypes.c_ssize_t * 64) for name in ("shape", "repeats", "output")),
    ]


class Place(ctypes.Structure):
    _fields_ = [
        *(("data", ctypes.c_void_p), ("ndim", ctypes.c_int), ("contiguous", ctypes.c_int)),
        ("strides", ctypes.c_ssize_t * 64),
    ]


class Mode(ctypes.Structure):  # for what is no region
    _fields_ = [("unused", ctypes.c_ssize_t * 3)]


def write_references():
    """The compiled function: the core's regions may begin anywhere, before 0 too."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = (
        ctypes.c_char_p,
        [ctypes.py_object],
    )
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = tilecore._core.references.__pyx_capi__["write_references"]
    pointer = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    places = [ctypes.POINTER(kind) for kind in (Plan, Place, Place)]
    lengths = [ctypes.POINTER(ctypes.c_ssize_t)] * 2
    last = [ctypes.py_object, ctypes.py_object, ctypes.c_int, Mode]
    return ctypes.PYFUNCTYPE(ctypes.c_int, *places, *lengths, *last)(pointer)


def place_of(x):
    strides = (ctypes.c_ssize_t * 64)(*x.strides)
    return Place(x.ctypes.data, x.ndim, x.flags.c_contiguous, strides)


@pytest.mark.parametrize("seed", range(25))
def test_regions_of_an_endless_plane(seed):
    """They begin at any place, before 0 and far behind the source's end too."""
    rng = np.random.default_rng(seed)
    write = write_references()
    integers = ctypes.c_ssize_t * 64
    for x, items in sources(rng):
        shape = (1,) * int(rng.integers(2)) + x.shape
        start = [int(n) for n in rng.integers(-50, 50, len(shape))]
        size = [int(n) for n in rng.integers(1, 9, len(shape))]
        plan = Plan(len(shape), x.ndim, 0, x.itemsize, 0, 0, 0, integers(*shape))
        index = [(np.arange(n) + a) % m for n, a, m in zip(size, start, shape, strict=True)]
        want = as_picked(x).reshape(shape)
        before = counts(items)
        want = want[(*np.ix_(*index), ...)].copy()
        copied = [a - b for a, b in zip(counts(items), before, strict=True)]
        for step in (1, -1):
            got = np.zeros(size, x.dtype)[(*[slice(None, None, step)] * len(size), ...)]
            if x.dtype.kind == "T":
                got[...] = "what was there before, and is long"
            bounds = integers(*start), integers(*size)
            old = counts(items)
            assert not write(plan, place_of(x), place_of(got), *bounds, x, got, False, Mode())
            assert same(got, want), (shape, start, size)
            assert [a - b for a, b in zip(counts(items), old, strict=True)] == copied
            del got


def test_a_region_of_many_small_pieces():
    x = np.array([None, "a"], object)
    x = np.broadcast_to(x, (2,) * 16)
    got = tilecore.tile_region(x, (2,) * 16, (1,) * 16, (3,) * 16)
    assert got.shape == (2,) * 16
    assert (got[..., 0] == "a").all() and (got[..., 1] == None).all()  # noqa: E711


def test_structures_without_a_reference(oracle):
    """NumPy says that they hold objects, if they have a field for them."""
    x = np.zeros(5000, [("n", "i4"), ("o", "O", (0,))])
    x["n"] = range(5000)
    out, back = np.zeros((2, 20_000), x.dtype)
    for got, n, first in [
        (tilecore.tile(x, 4), 20_000, 0),
        (tilecore.tile(x[:3], 2), 6, 0),
        (tilecore.tile(x, 4, out), 20_000, 0),
        (tilecore.tile_region(x, 9, (7,), (20_007,)), 20_000, 7),
        (tilecore.tile_region(x, 9, (7,), (20_007,), back[::-1]), 20_000, 7),
    ]:
        assert got.dtype == x.dtype
        assert (got["n"] == (np.arange(n) + first) % (3 if n == 6 else 5000)).all()


def test_references_of_an_unknown_kind():
    """Only their dtype could count them. Here a dtype says so of itself."""
    dtype = np.dtype("M8[s]", metadata={"its own": "object"})
    x, out = np.zeros(3, dtype), np.ones(6, dtype)
    state = dtype.__reduce__()[2]
    flags = next(k for k, part in enumerate(state) if part == dtype.flags and k == 7)
    dtype.__setstate__((*state[:flags], 1, *state[flags + 1 :]))
    try:
        assert dtype.hasobject
        with pytest.raises(TypeError, match="^tile: input holds references of an unknown kind"):
            tilecore.tile(x, 2, out)
    finally:
        dtype.__setstate__(state)
    assert (out == np.ones(6, dtype)).all()


# ---------------------------------------------------------------- interrupts

OLD, NEW, OTHER = object(), object(), object()
SOURCES = {
    "objects": lambda n: np.array([NEW, OTHER] * (n // 2), object),
    "structures": lambda n: np.array([(1, NEW), (2, OTHER)] * (n // 2), [("n", "i4"), ("o", "O")]),
}
CALLS = {
    "once": lambda x: (tilecore.tile, x, 1),
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


@pytest.mark.parametrize("kind", SOURCES)
def test_interrupted_among_the_copies(kind, no_python):
    """The counts were added to all of them at once, and are taken back."""
    x = SOURCES[kind](64)
    before = counts([NEW, OTHER])
    returned = []
    with pytest.raises(KeyboardInterrupt):
        from_c(
            interrupt_main,
            partial(tilecore.tile, x, 5 * 2**28 // x.nbytes, threads=1),
            partial(returned.append, True),
        )
    assert not returned
    assert counts([NEW, OTHER]) == before


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
        for _ in range(20):
            before, _, after = from_c(
                partial(len, ticks), partial(call, *arguments), partial(len, ticks)
            )
            if after > before:
                break
    finally:
        stop.set()
        other.join()
        sys.setswitchinterval(interval)
    assert after > before


# ---------------------------------------------------------------- code that runs in the midst


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


@pytest.mark.parametrize("what", ["input", "out"])
def test_resized_in_the_midst(what):
    """The memory is gone that was to be read, or written: the rest is an error, and counts are exact."""
    x, out = np.array([NEW] * 4000, object), np.full(8000, None)
    changed = {"input": x, "out": out}[what]
    before = counts([NEW])[0]
    lost = []

    def last_words():
        held, items = counts([NEW])[0], sum(1 for item in changed[10:] if item is NEW)
        changed.resize(10, refcheck=False)
        lost.append(counts([NEW])[0] - held + items)  # of NumPy 2.0.0 alone, all of them

    out[1] = Dying(last_words)
    with pytest.raises(ValueError, match=f"^tile: {what} was resized while"):
        tilecore.tile(x, 2, out)
    left = sum(1 for item in itertools.chain(x, out) if item is NEW)
    assert counts([NEW])[0] == before - 4000 + left + sum(lost)


@pytest.mark.parametrize("kind", [*SOURCES, "strings"])
@pytest.mark.parametrize("what", ["input", "out"])
def test_resized_before_the_first(what, kind, monkeypatch):
    """A signal's handler runs when the places have been noted, and nothing has been read or written."""
    monkeypatch.setattr(tilecore._core.arguments, "same_dtype", operator.eq)  # not there yet
    source = SOURCES.get(kind, lambda n: np.full(n, "a string that is long", Strings()))
    x = source(MANY)
    out = np.empty(4 * MANY, x.dtype)  # large enough to ask for the count of threads, in Python
    changed = {"input": x, "out": out}[what]
    done = []

    def resize(*_):
        if not done:
            done.append(changed.resize(10, refcheck=False))

    signal.signal(signal.SIGINT, resize)
    with pytest.raises(ValueError, match=f"^tile: {what} was resized while"):
        from_c(interrupt_main, partial(tilecore.tile, x, 4, out))
    assert done and (out[:10] == np.empty(10, x.dtype)).all()


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
            tilecore.tile(
                arrays[a][: 6000 // 3], 3, arrays[b]
            ) if seed % 2 else tilecore.tile_region(arrays[a], 3, (7,), (6007,), arrays[b])

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    held = collections.Counter(id(item) for array in arrays for item in array)
    assert counts(items) == [n + held[id(item)] for n, item in zip(before, items, strict=True)]


# ---------------------------------------------------------------- memory


@pytest.mark.parametrize("dtype", ["O", RECORD, Strings()], ids=["O", "record", "T"])
def test_no_temporaries(dtype):
    x = np.zeros(1000, dtype)
    if dtype == "O":
        x[:] = [object() for _ in range(1000)]
    out = np.zeros(200_000, x.dtype)
    region = (tilecore.tile_region, x, 10**6, (123,), (200_123,))
    part = region[0](*region[1:])
    for call, made in [
        (partial(tilecore.tile, x, 200, out), 0),
        (partial(*region, out), 0),
        (partial(*region), part.nbytes),
    ]:
        tracemalloc.start()
        try:
            result = call()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert made <= peak < made + 2**16
        del result


# ---------------------------------------------------------------- StringDType

KINDS = [
    Strings(),
    Strings(coerce=False),
    Strings(na_object=None),
    Strings(na_object=np.nan),
    Strings(na_object="missing"),
]


@pytest.mark.parametrize("pair", list(itertools.permutations(range(len(KINDS)), 2)), ids=str)
def test_out_of_another_string_dtype(pair):
    """NumPy would make another value of a missing one, or refuse it in the midst."""
    x = np.array(["a", "b"], KINDS[pair[0]])
    out = np.full(4, "old", KINDS[pair[1]])
    plan = tilecore.TilePlan((2,), 2, KINDS[pair[0]])
    for call in (
        lambda: tilecore.tile(x, 2, out),
        lambda: tilecore.tile_region(x, 9, (1,), (5,), out),
        lambda: plan(x, out),
        lambda: plan(out[:2]),
    ):
        with pytest.raises(TypeError, match=r"^(tile|tile_region|TilePlan): .*dtype StringDType"):
            call()
    assert out.tolist() == ["old"] * 4


def test_equal_string_dtypes():
    one, other = (Strings(na_object=float("nan")) for _ in range(2))
    assert one is not other and one == other
    x = np.array(["a", float("nan")], one)
    out = np.full(4, "old", other)
    assert tilecore.tile(x, 2, out).tolist()[::2] == ["a", "a"]
    assert [type(item) for item in out.tolist()[1::2]] == [float, float]
    plans = [tilecore.TilePlan(2, 2, dtype) for dtype in (one, other)]
    assert plans[0] == plans[1] and hash(plans[0]) == hash(plans[1])
    assert len({*plans}) == 1


@pytest.mark.parametrize("na_object", [{}, {"na_object": None}])
def test_out_of_strings_of_any_strides(na_object):
    """What was there goes, and what lies between stays; both ways, for of two locks one is taken first."""
    one = np.array([f"{k} " * (k % 40) for k in range(24)], Strings(**na_object)).reshape(2, 3, 4)
    if na_object:
        one[1, :, 2] = None
    other = np.full((6, 4, 8), "what was there, and is long", Strings(**na_object))
    out = other[::-1, ::2, 1::2].transpose(1, 2, 0)  # (2, 4, 6)
    want = [[[one[i, k % 3, j % 4] for k in range(6)] for j in range(4)] for i in range(2)]
    tilecore.tile(one.transpose(0, 2, 1), (1, 1, 2), out)
    assert out.tolist() == want
    other[::-1, ::2, 1::2] = "what was there, and is long"
    assert (other == "what was there, and is long").all()
    tilecore.tile(other[:2, :3, ::2], 1, one[::-1])
    assert (one == "what was there, and is long").all()
    tilecore.tile_region(other, (9, 9, 9), (5, 3, 7), (7, 6, 11), one)
    assert (one == "what was there, and is long").all()


def test_parts_of_one_array_of_strings():
    """Source and result share the memory that long strings lie in, which moves as it grows."""
    both = np.full(4000, "", Strings())
    both[:1000] = [f"{k} is longer than what lies in the item itself" for k in range(1000)]
    tilecore.tile(both[:1000], 3, both[1000:])
    assert both.tolist() == both[:1000].tolist() * 4


@pytest.mark.parametrize("number", ["u1", "i4", "i8"])
def test_structures_whose_objects_are_none(number):
    """NumPy says of a subarray without an item that it holds objects."""
    a = np.zeros(3, [("o", "O", (0,)), ("n", number)])
    a["n"] = [1, 2, 3]
    assert a.dtype.hasobject
    assert tilecore.tile(a, 2)["n"].tolist() == [1, 2, 3, 1, 2, 3]
    assert tilecore.tile(a, 2, np.empty(6, a.dtype))["n"].tolist() == [1, 2, 3, 1, 2, 3]
    assert tilecore.tile_region(a, 2, 1, 5)["n"].tolist() == [2, 3, 1, 2]
    assert (tilecore.tile(a, (50_000, 1))["n"] == [1, 2, 3]).all()


def test_the_limit_counts_what_strings_take():
    """An item says nothing of the text that it stands for."""
    x = np.array(["x" * 10_000, None], np.dtypes.StringDType(na_object=None))
    before = tilecore.get_max_bytes()
    tilecore.set_max_bytes(1 << 20)
    try:
        assert tilecore.tile(x, 100)[198] == x[0]
        for call in (
            lambda: tilecore.tile(x, 1000),
            lambda: tilecore.tile_region(x, 10**6, 0, 2000),
        ):
            with pytest.raises(MemoryError, match="the strings of the result would take more than"):
                call()
        out = np.empty(2000, x.dtype)
        assert tilecore.tile(x, 1000, out)[1998] == x[0]  # the caller's is not limited
    finally:
        tilecore.set_max_bytes(before)
