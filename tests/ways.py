"""Every way to tile, with items, layouts and requests of all kinds, drawn or named; what several test files share."""

import math
import sys
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

import tilecore
from tilecore._core.request.errors import RequestError

try:
    from ml_dtypes import bfloat16, float8_e4m3fn, int4
except ImportError:  # not on every platform
    bfloat16 = float8_e4m3fn = int4 = "V2"

PLAIN = [
    *"? u1 <i2 >i4 <f2 >f2 f4 >f8 c16 g G M8[ns] m8[s] S3 S17 U2 V5 V33 V100".split(),
    *[np.dtype([("a", "u1"), ("b", "f8")], align=align) for align in (False, True)],
    *[bfloat16, float8_e4m3fn, int4],
]
DEEP = ([("c", "u1"), ("p", "O", (2,))], (2,))
BACKWARDS = np.dtype({"names": ["n", "o", "deep"], "formats": ["i2", "O", DEEP], "offsets": [42, 34, 0]})
NO_OBJECT = [("o", "O", (0,)), ("n", "i4")]  # NumPy says that it holds objects
STRINGS = [np.dtypes.StringDType(), np.dtypes.StringDType(na_object=None)]
REFERRING = ["O", [("a", "u1"), ("b", "O")], BACKWARDS, NO_OBJECT, *STRINGS]
EXTENTS = st.integers(0, 6) | st.sampled_from([1, 3, 16, 17, 40, 300])
SHAPES = st.lists(EXTENTS, max_size=4) | st.integers(5, 11).map(lambda rank: [2] * rank)
COUNTS = st.sampled_from([0, 1, 1, 2, 3, 7, 20])
FAR = st.sampled_from([-sys.maxsize - 1, sys.maxsize // 2 + 1, sys.maxsize - 9])
STEPS = st.sampled_from([1, 1, 1, -1, 2, -3])
DIALECTS = [getattr(tilecore, name) for name in tilecore._DIALECTS]
MOST = 10**5  # items of a result
ODD_BYTES = np.array([0, 1, 0x7F, 0x80, 0xF0, 0xF8, 0xFF], "u1")  # of infinities, NaNs of both kinds, subnormals, -0.0


def refers(x):
    return x.dtype.hasobject or x.dtype.kind == "T"


def as_void(x):
    """As items without fields: where items have fields, NumPy's indexing copies no padding."""
    return x if refers(x) else x.view(f"V{x.itemsize}")


def picked_from(x):
    """As items that NumPy's indexing copies rightly: NumPy 2.0.0 fails with strings of variable length."""
    return np.array(x.tolist(), object).reshape(x.shape) if x.dtype.kind == "T" else as_void(x)


def contents(x):
    """What is compared: all bytes, those of NaNs and padding too; instead of references, what they refer to."""
    if not refers(x):
        return as_void(x).tobytes()
    return [contents(x[name]) for name in x.dtype.names] if x.dtype.names else x.tolist()


def objects(x):
    if x.dtype.names:
        return [item for name in x.dtype.names for item in objects(x[name])]
    return x.ravel().tolist() if x.dtype == object else []


def number(x, texts):
    """Give each item along the first axis a text of its own, or a number."""
    for name in x.dtype.names or ():
        number(x[name], texts)
    if not x.dtype.names:
        x.T[...] = np.array(texts, object) if refers(x) else np.arange(len(texts)) % 100


def make_items(shape, dtype, seed=0):
    """Any bytes, or objects of which no two are alike."""
    dtype, n = np.dtype(dtype), math.prod(shape)
    x = np.zeros(n, dtype)
    if refers(x):
        number(x, [f"{seed} {k} " * ((k + seed) % 9) for k in range(n)])
        return x.reshape(shape)
    found = np.random.default_rng(seed).integers(0, 256, n * dtype.itemsize, "u1")
    x = (ODD_BYTES[found % len(ODD_BYTES)] if seed % 2 else found).view(dtype)
    if dtype.kind == "U":  # characters that exist: Hypothesis prints examples, and NumPy cannot print others
        x.view("u4")[...] &= 0xFFFFF
    return x.reshape(shape)


def laid_out(draw, x):
    """The same items in another place: any order of axes, steps and directions; and what lies around them."""
    order = draw(st.permutations(range(x.ndim)))
    steps = [draw(STEPS if x.size <= 3000 and x.ndim <= 4 else st.sampled_from([1, -1])) for _ in x.shape]
    shape, margin = [x.shape[k] * abs(steps[k]) for k in order] + [draw(st.integers(1, 2))], draw(st.integers(0, 1))
    shape[0] += 2 * margin

    def inside(room):
        room = room[margin : len(room) - margin, ..., 0] if len(shape) > 1 else room[margin, ...]
        return room.transpose(np.argsort(order))[(*(slice(None, None, step) for step in steps), ...)]

    room, outside = np.broadcast_to(make_items((), x.dtype, 7), shape).copy(), np.ones(shape, bool)
    inside(outside)[...] = False
    inside(as_void(room))[...] = as_void(x)
    return inside(room), lambda: contents(as_void(room)[outside])


def late(x):
    """Columns from the last three items of a cache line on."""
    start = -(x.ctypes.data // x.itemsize + 3) % (64 // x.itemsize)
    return x[:, start : start + 70]


LAYOUTS = {
    "transposed": lambda t: make_items((70, 133), t).T,
    "transposed, power of two": lambda t: make_items((64, 1024), t)[:, :70].T,
    "transposed, power of two, late in a line": lambda t: late(make_items((64, 1024), t)).T,
    "transposed and reversed": lambda t: make_items((70, 133), t)[::-1, ::-1].T,
    "every 7th, backward": lambda t: make_items((9000,), t)[::-7],
    "channels first": lambda t: make_items((50, 31, 3), t).transpose(2, 0, 1),
    "channels last": lambda t: make_items((3, 50, 31), t).transpose(1, 2, 0),
    "channels last, large": lambda t: make_items((3, 200, 180), t).transpose(1, 2, 0)[::-1],
    "few planes": lambda t: make_items((50, 31, 3), t).T,
    "few planes, reversed": lambda t: make_items((50, 31, 3), t)[::-1, ::-1, ::-1].T,
    "planes of two": lambda t: make_items((2, 1500), t)[::-1].T,
    "colours reversed": lambda t: make_items((50, 31, 3), t)[..., ::-1],
    "five axes": lambda t: make_items((16, 1, 5, 24, 4), t).T,
    "heads": lambda t: make_items((40, 5, 16), t).transpose(1, 0, 2),
    "a few colours of each, transposed": lambda t: make_items((6, 50, 31), t).transpose(2, 1, 0)[:, ::-1],
    "a few colours, and what they continue apart": lambda t: make_items((5, 40, 20, 3), t).transpose(2, 0, 3, 1),
    "every 2nd of a few": lambda t: make_items((90, 58, 10), t)[..., ::2],
}


def each_way(oracle, x, reps):
    """What is wanted, and a call: of the whole, a part, a part of the periodic extension, a list and a stack."""
    whole, ends = oracle(x, reps), [(n // 7, n - n // 5) for n in tilecore.output_shape(x.shape, reps)]
    part, bounds = whole[tuple(slice(*end) for end in ends)], tuple(zip(*ends, strict=True))
    plane = [(-n // 3, n + 1) for n in x.shape]
    index = [np.arange(*end) % n for end, n in zip(plane, x.shape, strict=True)]
    plan, stack = tilecore.TilePlan(x.shape, reps, x.dtype), np.stack([x] * 3, axis=-1)
    return [
        (whole, partial(tilecore.tile, x, reps)),
        (part, partial(tilecore.tile_region, x, reps, *bounds)),
        (x[np.ix_(*index)], partial(tilecore.tile_region, x, None, *zip(*plane, strict=True))),
        (np.stack([whole] * 3), partial(plan.batch, [x, x.copy("C"), x.copy("F")])),
        (np.stack([whole] * 3), partial(plan.batch, stack.transpose(x.ndim, *range(x.ndim)))),
    ]


@st.composite
def inputs(draw):
    shape = tuple(draw(SHAPES))
    assume(math.prod(filter(None, shape)) <= 4000)  # NumPy limits the other axes of an empty array too
    x = make_items(shape, draw(st.sampled_from(PLAIN + REFERRING)), draw(st.integers(0, 5)))
    layout = draw(st.sampled_from(["C", "any", "any", "broadcast", "unaligned"]))
    if layout == "any":
        x, _ = laid_out(draw, x)
    elif layout == "broadcast":
        x = np.broadcast_to(x, (draw(st.integers(0, 3)), *x.shape))
    elif layout == "unaligned" and not refers(x):
        x = np.ndarray(x.shape, x.dtype, b"\0" + x.tobytes() + b"\0", offset=1)
    return x


def assume_few(shape):
    """Assume few items, with a margin around empty axes too."""
    assume(math.prod(n or 1 for n in shape) <= MOST)


@st.composite
def repeats(draw, rank):
    """The arguments that ask for repeats, and the count of each axis."""
    if not rank or draw(st.booleans()):
        reps = tuple(draw(st.lists(COUNTS, max_size=6)))
        return {"reps": reps}, reps
    counts = draw(st.dictionaries(st.integers(0, rank - 1), COUNTS))
    axes, reps = [axis - draw(st.sampled_from([0, rank])) for axis in counts], [*counts.values()]
    if len(axes) == 1 and draw(st.booleans()):
        axes, reps = axes[0], reps[0]
    return {"reps": reps, "axis": axes}, [counts.get(axis, 1) for axis in range(rank)]


def bounds(draw, shape):
    start = tuple(draw(st.integers(0, n)) for n in shape)
    return start, tuple(draw(st.integers(lo, n)) for lo, n in zip(start, shape, strict=True))


# Each way takes the input, the arguments that ask for repeats, and a function that tiles by index arithmetic. It
# returns what is wanted, and a call that takes `out` and `threads`.


def whole(draw, x, asked, tiled):
    return tiled(x), partial(tilecore.tile, x, **asked)


def plan(draw, x, asked, tiled):
    return tiled(x), partial(tilecore.TilePlan(x.shape, dtype=x.dtype, **asked).tile, x)


def part(draw, x, asked, tiled):
    start, stop = bounds(draw, tilecore.output_shape(x.shape, **asked))
    want = tiled(x)[(*map(slice, start, stop), ...)]
    return want, partial(tilecore.tile_region, x, start=start, stop=stop, **asked)


def part_by_plan(draw, x, asked, tiled):
    start, stop = bounds(draw, tilecore.output_shape(x.shape, **asked))
    made = tilecore.TilePlan(x.shape, dtype=x.dtype, **asked)
    return tiled(x)[(*map(slice, start, stop), ...)], partial(made.region, x, start, stop)


def periodic(draw, x, asked, tiled):
    """Index arithmetic in Python's integers, which never overflow."""
    start = [draw(st.integers(-20, 20) | FAR) for _ in x.shape]
    stop = [min(lo + draw(EXTENTS) * (n > 0), sys.maxsize) for lo, n in zip(start, x.shape, strict=True)]
    assume_few([hi - lo for lo, hi in zip(start, stop, strict=True)])
    ends = zip(x.shape, start, stop, strict=True)
    index = [np.array([i % n for i in range(lo, hi)], "i8") for n, lo, hi in ends]
    want = picked_from(x)[np.ix_(*index)] if x.ndim else picked_from(x).copy()
    return want, partial(tilecore.tile_region, x, None, start, stop)


def batch(draw, x, asked, tiled):
    made, seeds = tilecore.TilePlan(x.shape, dtype=x.dtype, **asked), draw(st.lists(st.integers(0, 9), max_size=4))
    arrays = [laid_out(draw, make_items(x.shape, x.dtype, seed))[0] if seed else x for seed in seeds]
    together = np.empty((len(arrays), *x.shape), as_void(x).dtype)
    want = np.empty((len(arrays), *made.output_shape), tiled(x).dtype)
    for n, each in enumerate(arrays):
        together[n], want[n] = as_void(each), tiled(each)
    given_as = draw(st.sampled_from([list, tuple, None]))
    if given_as:
        return want, partial(made.batch, given_as(arrays))
    together, _ = laid_out(draw, together if refers(x) else together.view(x.dtype))
    return want, partial(made.batch, together)


def mapped(draw, x, asked, tiled):
    return tiled(x), partial(tilecore.tile_mapped, x, **asked)


def repeats_of_axes(asked, rank):
    """One for each axis of the result."""
    counts = np.atleast_1d(asked["reps"])
    axes, reps = np.atleast_1d(asked.get("axis", np.arange(-len(counts), 0))), [1] * max(rank, len(counts))
    for axis, count in zip(axes, counts, strict=True):
        reps[int(axis)] = int(count)
    return reps


def dialect(draw, x, asked, tiled):
    """A dialect that takes these items and sizes. If the version of a dialect refuses them, so does its `tile`."""
    counts, takes = repeats_of_axes(asked, x.ndim), []
    for module in DIALECTS:
        padded = x[(*(None,) * (len(counts) - x.ndim), ...)], counts
        version = module.DIALECT.version()
        request = (x, asked["reps"]) if version.any_length else padded
        request = padded if "axis" in asked else request
        try:
            version.read_counts(*request)
        except RequestError:
            with pytest.raises((TypeError, ValueError), match=f"^{version.name}: "):
                module.tile(*request)
        else:
            takes.append(partial(module.tile, *request))
    return tiled(x), draw(st.sampled_from(takes))


def dask(draw, x, asked, tiled):
    """In chunks of a few bytes, and in one; of structures, Dask loses padding."""
    assume(not x.dtype.names)
    array, config = pytest.importorskip("dask.array"), pytest.importorskip("dask.config")
    from tilecore.integrations import dask as ours

    want, few = tiled(x), draw(st.booleans()) and x.size < 30
    source = array.from_array(x, chunks=2) if few else x
    size = max(64, want.nbytes // 20) if few else 2**20
    chunks = draw(st.sampled_from(["auto", -1, 9])) if few else "auto"

    def call():
        with config.set({"array.chunk-size": size, "scheduler": "synchronous"}):
            result = ours.tile(source, chunks=chunks, **asked)
            assert (type(result._meta), result._meta.dtype, result._meta.ndim) == (np.ndarray, x.dtype, want.ndim)
            return result.compute()

    return want, call


WAYS = [whole, plan, part, part_by_plan, periodic, batch, mapped, dialect, dask]


def show(value):
    if isinstance(value, list | tuple) and not all(isinstance(item, int) for item in value):
        return f"[{', '.join(map(show, value))}]"
    return f"<{value.shape} {value.dtype} {value.strides}>" if isinstance(value, np.ndarray) else repr(value)


@contextmanager
def showing(call):
    """Add the request to an error. Hypothesis shows none if a fault comes and goes."""
    try:
        yield
    except Exception as error:
        function, keywords = getattr(call, "func", call), getattr(call, "keywords", {}).items()
        arguments = [*map(show, getattr(call, "args", ())), *(f"{name}={show(value)}" for name, value in keywords)]
        plan = getattr(function, "__self__", None)
        error.add_note(f"{plan or function.__module__}.{function.__name__}({', '.join(arguments)})")
        raise


def check(oracle, way, draw):
    x = draw(inputs())
    asked, counts = draw(repeats(x.ndim))
    assume_few([n * r for n, r in zip_longest(x.shape[::-1], counts[::-1], fillvalue=1)])
    if x.size and x.itemsize > 3 and not refers(x) and draw(st.integers(0, 9)) == 9:  # several threads, from 1 MiB on
        counts = [max(n, 1) for n in (*counts, 1)]
        counts[draw(st.integers(0, len(counts) - 1))] *= -(-(2**20) // (x.nbytes * math.prod(counts)))
        asked = {"reps": tuple(counts)}
    want, call = way(draw, x, asked, lambda x: oracle(picked_from(x), counts))
    if way is whole:
        assert tilecore.output_shape(x.shape, **asked) == want.shape
    old = make_items((), x.dtype, 8)
    held = [item for item in objects(x) + objects(old) if item]  # the empty text is Python's own

    def references():
        return np.array([sys.getrefcount(item) for item in held])

    before = references()
    with showing(call):
        got = call()
        assert (type(got), got.dtype, got.shape) == (np.ndarray, x.dtype, want.shape)
        assert contents(got) == contents(want)
        assert got.flags.c_contiguous and got.flags.writeable and not np.shares_memory(got, x)
    if way is dask:  # it keeps what it has computed as long as it likes
        return
    more = references() - before
    if way is not mapped:
        out, around = laid_out(draw, np.broadcast_to(old, want.shape))
        beside = around()
        for _ in range(2):
            into = partial(call, out=out, threads=draw(st.integers(1, 3)))
            with showing(into):
                assert into() is out
                assert contents(out) == contents(want)
                assert around() == beside
        del into
        assert (references() == before + 2 * more).all()
        del out, around
    del got
    assert (references() == before).all()
