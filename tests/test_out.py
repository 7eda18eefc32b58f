"""`out` of any strides, what is refused as `out`, and `axis`: the same values as without."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import tilecore

pytestmark = pytest.mark.quick

DTYPES = ["u1", "<u2", "f4", ">f8", "c16", "S3", "V5", "O", [("a", "u1"), ("b", "O")]]


@st.composite
def places(draw, shape, dtype):
    """An array of this shape somewhere in a larger one: any order of axes, steps and directions."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([-3, -2, -1, 1, 1, 1, 2])) for _ in shape]
    inner = draw(st.integers(1, 2))
    assume(np.prod(shape) * np.prod(np.abs(steps)) <= 10**5)  # the tests make lists of all items
    whole = np.zeros([shape[k] * abs(steps[k]) for k in order] + [inner], dtype)
    view = whole[..., 0].transpose(np.argsort(order)) if shape else whole[..., 0]
    return whole, view[(*(slice(None, None, step) for step in steps), ...)]


@st.composite
def requests(draw):
    shape = tuple(draw(st.lists(st.integers(1, 5), max_size=4)))
    reps = tuple(draw(st.lists(st.integers(1, 4), max_size=4)))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    n = int(np.prod(shape))
    x = np.empty(n, dtype)
    if dtype.names:
        x["a"], x["b"] = np.arange(n), [f"item {k}" for k in range(n)]
    else:
        x[:] = np.arange(n).astype("u1").astype(dtype if dtype.kind != "V" else "S5")
    x = x.reshape(shape)
    if draw(st.booleans()):
        x = x.T[::-1] if x.ndim else x
    output = tilecore.output_shape(x.shape, reps)
    return x, reps, draw(places(output, dtype))


@settings(max_examples=150)
@given(requests())
def test_any_strides(oracle, case):
    x, reps, (whole, view) = case
    before = whole.copy()
    want = oracle(x, reps)
    assert tilecore.tile(x, reps, view) is view
    assert view.tolist() == want.tolist()
    view[...] = np.zeros((), whole.dtype)
    assert whole.tolist() == before.tolist()  # nothing else was written
    plan = tilecore.TilePlan(x.shape, reps, x.dtype)
    assert plan.tile(x, view) is view
    assert view.tolist() == want.tolist()


@settings(max_examples=150)
@given(requests(), st.data())
def test_any_strides_of_a_region(oracle, case, data):
    x, reps, _ = case
    whole = oracle(x, reps)
    start = tuple(data.draw(st.integers(0, n - 1)) for n in whole.shape)
    stop = tuple(data.draw(st.integers(lo + 1, n)) for lo, n in zip(start, whole.shape, strict=True))
    want = whole[(*map(slice, start, stop), ...)]
    _, view = data.draw(places(want.shape, x.dtype))
    assert tilecore.tile_region(x, reps, start, stop, view) is view
    assert view.tolist() == want.tolist()


@pytest.mark.parametrize("threads", [1, 3])
def test_large(oracle, threads):
    x = np.arange(700 * 900, dtype="u2").reshape(700, 900)
    rgba = np.zeros((4, 1400, 2700), "u2").transpose(1, 2, 0)
    tilecore.tile(x, (2, 3), rgba[..., 1], threads=threads)
    assert (rgba[..., 1] == oracle(x, (2, 3))).all() and not rgba[..., [0, 2, 3]].any()
    channels_last = np.zeros((1400, 2700, 4), "u2")
    tilecore.tile(x, (2, 3), channels_last[::-1, :, 3], threads=threads)
    assert (channels_last[::-1, :, 3] == oracle(x, (2, 3))).all()
    assert not channels_last[..., :3].any()


# Elements of two bytes. Steps that are no multiples of each other may still never meet.
# Elements of two bytes. Steps that are no multiples of each other may still never meet.
@pytest.mark.parametrize(
    ("meets", "shape", "strides"),
    [
        *[(True, (3, 4), strides) for strides in ((2, 2), (0, 2), (1, 6))],
        *[(True, (2, 2), (3, 2)), (True, (4, 2), (4, 12)), (False, (1, 4), (0, 2)), (False, (4, 1), (2, 0))],
        *[(False, (2, 2), (6, 4)), (False, (3, 2), (4, 6)), (False, (2, 3), (10, 4)), (False, (2, 4), (10, 4))],
        (False, (2, 2), (-6, 4)),
    ],
)
def test_elements_that_share_a_byte(shape, strides, meets):
    memory = np.zeros(100, "u1")
    out = as_strided(memory[50:].view("u2")[:1], shape, strides)
    seen = [int(np.dot(index, strides)) + byte for index in np.ndindex(shape) for byte in (0, 1)]
    assert meets == (len(set(seen)) < len(seen))  # the table is right
    x = np.arange(np.prod(shape), dtype="u2").reshape(shape)
    if meets:
        with pytest.raises(ValueError, match="^tile: out must not have overlapping elements"):
            tilecore.tile(x, 1, out)
        assert not memory.any()
    else:
        tilecore.tile(x, 1, out)
        assert (out == x).all()


def test_an_out_that_overlaps_the_input():
    memory = np.arange(48)
    x, odd = memory.reshape(4, 12)[:, ::2], memory.reshape(4, 12)[:, 1::2]
    tilecore.tile(x, 1, odd)  # between its elements
    assert (odd == x).all()
    memory[:] = range(48)
    out = memory[:24].reshape(4, 6)
    for a in (memory[23:29].reshape(2, 3), memory[:48:8].reshape(2, 3), memory[29:17:-2].reshape(2, 3)):
        with pytest.raises(ValueError, match="must not share memory with the input"):
            tilecore.tile(a, (2, 2), out)
    assert (memory == np.arange(48)).all()
    after = memory[24:30].reshape(2, 3)
    assert (tilecore.tile(after, (2, 2), out)[:2, :3] == after).all()


def read_only():
    out = np.zeros((4, 6), "f4")
    out.flags.writeable = False
    return out


@pytest.mark.parametrize(
    ("out", "kind", "words"),
    [
        ([0], TypeError, "out must be a NumPy array, got list"),
        (np.ma.zeros((4, 6), "f4"), TypeError, "got MaskedArray"),
        (np.zeros((4, 7), "f4"), ValueError, r"shape \(4, 6\), got \(4, 7\)"),
        (np.zeros(24, "f4"), ValueError, r"shape \(4, 6\), got \(24,\)"),
        (np.zeros((4, 6)), TypeError, "dtype float32, got float64"),
        (np.zeros((4, 6), np.dtype("f4").newbyteorder()), TypeError, "dtype float32, got [<>]f4"),
        (as_strided(np.zeros(9, "f4"), (4, 6), (4, 4)), ValueError, "overlapping elements"),
        (read_only(), ValueError, "writeable"),
    ],
)
def test_refused(out, kind, words):
    before = np.array(out, copy=True).tobytes()
    with pytest.raises(kind, match=words):
        tilecore.tile(np.arange(6, dtype="f4").reshape(2, 3), (2, 2), out)
    assert np.array(out).tobytes() == before


def test_an_out_that_would_change_the_input():
    """Nothing of `out` is asked that could run code once the plan is made."""
    x = np.arange(2**16)

    class Out(np.ndarray):
        @property
        def __class__(self):
            x.resize(1, refcheck=False)
            return np.ndarray

    out = np.empty(2**17, x.dtype).view(Out)
    assert tilecore.tile(x, 2, out) is out
    assert x.size == 2**16
    assert (np.asarray(out) == np.tile(np.arange(2**16), 2)).all()


# ---------------------------------------------------------------- axis


@settings(max_examples=150)
@given(st.data())
def test_axis(oracle, data):
    shape = tuple(data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4)))
    x = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    axes = data.draw(st.lists(st.integers(0, x.ndim - 1), unique=True))
    reps = [data.draw(st.integers(0, 3)) for _ in axes]
    full = [1] * x.ndim
    for axis, count in zip(axes, reps, strict=True):
        full[axis] = count
    signed = tuple(axis - data.draw(st.sampled_from([0, x.ndim])) for axis in axes)
    want = oracle(x, full)
    assert tilecore.tile(x, reps, axis=signed).tolist() == want.tolist()
    assert tilecore.tile_mapped(x, reps, axis=list(signed)).tolist() == want.tolist()
    assert tilecore.output_shape(shape, reps, axis=signed) == want.shape
    plan = tilecore.TilePlan(shape, reps, x.dtype, axis=signed)
    assert plan.reps == tuple(full) and plan.tile(x).tolist() == want.tolist()
    region = tilecore.tile_region(x, reps, (0,) * x.ndim, want.shape, axis=signed)
    assert region.tolist() == want.tolist()
    if len(axes) == 1:
        assert tilecore.tile(x, reps[0], axis=signed[0]).tolist() == want.tolist()


def test_axis_of_a_view():
    assert tilecore.tile_view(np.ones((3, 1)), 5, axis=-1).strides == (8, 0)


SHAPE = "axis must be an integer or a sequence of integers, got "


@pytest.mark.parametrize(
    ("reps", "axis", "kind", "words"),
    [
        *[(2, n, np.exceptions.AxisError, f"axis {n} is out of bounds for array of dimension 2") for n in (2, -3)],
        *[(2, n, np.exceptions.AxisError, "axis -?9223372036854775807 is out of") for n in (10**30, -(2**70))],
        ((2, 2), (1, -1), ValueError, "axis must not contain axis 1 twice"),
        ((2, 2), 1, ValueError, "reps must have one entry for each of the 1 axes, got 2"),
        (2, (0, 1), ValueError, "one entry for each of the 2 axes, got 1"),
        *[(2, axis, TypeError, SHAPE + type(axis).__name__) for axis in (1.0, "a", True, {0})],
        (2, ["a"], TypeError, "axis must be integers, but item 0 is of type str"),
        ([2] * 65, range(65), ValueError, "at most 64 entries"),
        ((2, -1), (0, 1), ValueError, "reps must not be negative, got -1; (input )?shape"),
        (2**63, 0, ValueError, "reps overflows: 9223372036854775808 is more"),
    ],
)
def test_axis_refused(reps, axis, kind, words):
    x = np.zeros((2, 3))
    for name, call in {
        **{name: getattr(tilecore, name) for name in ("tile", "tile_mapped", "tile_view")},
        "output_shape": lambda x, reps, axis: tilecore.output_shape(x.shape, reps, axis=axis),
        "TilePlan": lambda x, reps, axis: tilecore.TilePlan(x.shape, reps, "f8", axis=axis),
    }.items():
        with pytest.raises(kind, match=f"^{name}: .*{words}.* axis "):
            call(x, reps, axis=axis)
