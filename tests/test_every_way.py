"""Every way to tile, into a new array and into any `out`: the bytes of index arithmetic, and none beside them.

`tests/fuzz.py` runs the same check, guided by coverage.
"""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tilecore

try:
    from ml_dtypes import bfloat16, float8_e4m3fn, int4
except ImportError:  # not on every platform
    bfloat16 = float8_e4m3fn = int4 = "V2"

pytestmark = pytest.mark.quick

PLAIN = [
    *"? u1 <i2 >i4 <f2 >f2 f4 >f8 c16 g G M8[ns] m8[s] S3 S17 U2 V5 V33 V100".split(),
    *[np.dtype([("a", "u1"), ("b", "f8")], align=align) for align in (False, True)],
    *[bfloat16, float8_e4m3fn, int4],
]
REFERRING = ["O", [("a", "u1"), ("b", "O")], np.dtypes.StringDType(), np.dtypes.StringDType(na_object=None)]
EXTENTS = st.integers(0, 6) | st.sampled_from([1, 3, 16, 17, 40, 300])
REPEATS = st.lists(st.sampled_from([0, 1, 1, 2, 3, 7, 20]), max_size=6).map(tuple)
FAR = st.sampled_from([-(2**63), 2**62, 2**63 - 10])
STEPS = st.sampled_from([1, 1, 1, -1, 2, -3])
MOST = 10**5  # items of a result
ODD_BYTES = np.array([0, 1, 0x7F, 0x80, 0xF0, 0xF8, 0xFF], "u1")  # of infinities, NaNs of both kinds, subnormals, -0.0


def refers(x):
    return x.dtype.hasobject or x.dtype.kind == "T"


def bits(x):
    """For NumPy to pick items of: of other dtypes it loses padding."""
    return x if refers(x) else x.view(f"V{x.itemsize}")


def raw(x):
    """What is compared: all bytes, NaNs and padding included; of references, what they refer to."""
    return x.tolist() if refers(x) else bits(x).tobytes()


def items(shape, dtype, seed=0):
    """Any bytes, or objects of which no two are alike."""
    dtype, n = np.dtype(dtype), math.prod(shape)
    x = np.zeros(n, dtype)
    if not refers(x):
        found = np.random.default_rng(seed).integers(0, 256, n * dtype.itemsize, "u1")
        return (ODD_BYTES[found % len(ODD_BYTES)] if seed % 2 else found).view(dtype).reshape(shape)
    texts = [f"{seed} {k} " * ((k + seed) % 9) for k in range(n)]
    if dtype.names:
        x["a"], x["b"] = np.arange(n) % 256, texts
    else:
        x[:] = texts
    return x.reshape(shape)


def laid_out(draw, x):
    """The same items in another place: any order of axes, steps and directions; and what lies around them."""
    order = draw(st.permutations(range(x.ndim)))
    steps = [draw(STEPS if x.size <= 3000 else st.sampled_from([1, -1])) for _ in x.shape]
    shape, margin = [x.shape[k] * abs(steps[k]) for k in order] + [draw(st.integers(1, 2))], draw(st.integers(0, 1))
    shape[0] += 2 * margin

    def inside(room):
        room = room[margin : len(room) - margin, ..., 0] if len(shape) > 1 else room[margin, ...]
        return room.transpose(np.argsort(order))[(*(slice(None, None, step) for step in steps), ...)]

    room, outside = np.broadcast_to(items((), x.dtype, 9), shape).copy(), np.ones(shape, bool)
    inside(outside)[...] = False
    inside(bits(room))[...] = bits(x)
    return inside(room), lambda: raw(bits(room)[outside])


@st.composite
def inputs(draw):
    shape = tuple(draw(st.lists(EXTENTS, max_size=4)))
    assume(math.prod(shape) <= 4000)
    x = items(shape, draw(st.sampled_from(PLAIN + REFERRING)), draw(st.integers(0, 5)))
    layout = draw(st.sampled_from(["C", "any", "any", "broadcast", "unaligned"]))
    if layout == "any":
        x, _ = laid_out(draw, x)
    elif layout == "broadcast":
        x = np.broadcast_to(x, (draw(st.integers(0, 3)), *x.shape))
    elif layout == "unaligned" and not refers(x):
        x = np.ndarray(x.shape, x.dtype, b"\0" + x.tobytes() + b"\0", offset=1)
    return x


def bounds(draw, shape):
    start = tuple(draw(st.integers(0, n)) for n in shape)
    return start, tuple(draw(st.integers(lo, n)) for lo, n in zip(start, shape, strict=True))


# Each way: what is wanted, by index arithmetic, and a call that takes `out` and `threads`.


def whole(draw, x, reps, oracle):
    return oracle(bits(x), reps), lambda **to: tilecore.tile(x, reps, **to)


def plan(draw, x, reps, oracle):
    return oracle(bits(x), reps), lambda **to: tilecore.TilePlan(x.shape, reps, x.dtype).tile(x, **to)


def part(draw, x, reps, oracle):
    start, stop = bounds(draw, tilecore.output_shape(x.shape, reps))
    want = oracle(bits(x), reps)[(*map(slice, start, stop), ...)]
    return want, lambda **to: tilecore.tile_region(x, reps, start, stop, **to)


def part_by_plan(draw, x, reps, oracle):
    start, stop = bounds(draw, tilecore.output_shape(x.shape, reps))
    made = tilecore.TilePlan(x.shape, reps, x.dtype)
    return oracle(bits(x), reps)[(*map(slice, start, stop), ...)], lambda **to: made.region(x, start, stop, **to)


def plane(draw, x, reps, oracle):
    """Index arithmetic in Python's integers, which never overflow."""
    start = [draw(st.integers(-20, 20) | FAR) for _ in x.shape]
    stop = [lo + draw(st.integers(0, 9)) * (n > 0) for lo, n in zip(start, x.shape, strict=True)]
    ends = zip(x.shape, start, stop, strict=True)
    index = [np.array([i % n for i in range(lo, hi)], "i8") for n, lo, hi in ends]
    want = bits(x)[np.ix_(*index)] if x.ndim else bits(x).copy()
    return want, lambda **to: tilecore.tile_region(x, None, start, stop, **to)


def batch(draw, x, reps, oracle):
    made, seeds = tilecore.TilePlan(x.shape, reps, x.dtype), draw(st.lists(st.integers(0, 9), max_size=4))
    arrays = [laid_out(draw, items(x.shape, x.dtype, seed))[0] if seed else x for seed in seeds]
    together = np.empty((len(arrays), *x.shape), bits(x).dtype)
    want = np.empty((len(arrays), *made.output_shape), bits(x).dtype)
    for n, each in enumerate(arrays):
        together[n], want[n] = bits(each), oracle(bits(each), reps)
    given_as = draw(st.sampled_from([list, tuple, None]))
    if given_as:
        return want, lambda **to: made.batch(given_as(arrays), **to)
    together, _ = laid_out(draw, together if refers(x) else together.view(x.dtype))
    return want, lambda **to: made.batch(together, **to)


def mapped(draw, x, reps, oracle):
    return oracle(bits(x), reps), lambda **to: tilecore.tile_mapped(x, reps)


WAYS = [whole, plan, part, part_by_plan, plane, batch, mapped]


def check(oracle, way, draw):
    x, reps = draw(inputs()), draw(REPEATS)
    assume(math.prod(tilecore.output_shape(x.shape, reps)) <= MOST)
    want, call = way(draw, x, reps, oracle)
    got = call()
    assert (type(got), got.dtype, got.shape) == (np.ndarray, x.dtype, want.shape)
    assert raw(got) == raw(want)
    assert got.flags.c_contiguous and got.flags.writeable and not np.shares_memory(got, x)
    if way is not mapped:
        out, around = laid_out(draw, np.zeros(want.shape, x.dtype))
        before = around()
        assert call(out=out, threads=draw(st.integers(1, 3))) is out
        assert raw(out) == raw(want)
        assert around() == before


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=150)
@given(st.data())
def test_every_way(oracle, way, data):
    check(oracle, way, data.draw)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=4))
def test_a_view_where_strides_can_express_it(oracle, axes):
    shape, reps = [n for n, _ in axes], [r for _, r in axes]
    x = items(shape, "i8")
    if all(n == 1 or r <= 1 for n, r in axes) or any(n * r == 0 for n, r in axes):
        assert raw(tilecore.tile_view(x, reps)) == raw(oracle(x, reps))
    else:
        with pytest.raises(ValueError, match="which strides cannot express"):
            tilecore.tile_view(x, reps)
