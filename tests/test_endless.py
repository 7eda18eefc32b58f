"""tile_region without reps: windows of the plane that the input tiles in all directions."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tilecore

pytestmark = pytest.mark.quick

DTYPES = [
    "?", "u1", ">i2", "f4", "c16", "g", "S3", "U2", [("a", "u1"), ("b", "f8")], "O",
    [("a", "u1"), ("b", "O")], np.dtypes.StringDType(), ml_dtypes.bfloat16,
]  # fmt: skip
LEAST, MOST = -(2**63), 2**63 - 1


def numbered(shape, dtype):
    return np.arange(math.prod(shape)).reshape(shape).astype(dtype)


def window(x, start, stop):
    """Index arithmetic in Python's integers, which never overflow."""
    index = [np.array([i % n for i in range(lo, hi)], "i8") for n, lo, hi in zip(x.shape, start, stop, strict=True)]
    return x[np.ix_(*index)] if x.ndim else x.copy()


@st.composite
def windows(draw):
    shape = tuple(draw(st.lists(st.integers(1, 6), max_size=4)))
    x = numbered(shape, draw(st.sampled_from(DTYPES)))
    layout = draw(st.sampled_from(["C", "T", "backwards", "broadcast"]))
    if layout == "T":
        x = x.T
    elif layout == "backwards" and x.ndim:
        x = x[::-1]
    elif layout == "broadcast":
        x = np.broadcast_to(x, (draw(st.integers(1, 3)), *x.shape))
    start = [draw(st.integers(-20, 20) | st.sampled_from([LEAST, MOST - 9])) for _ in x.shape]
    stop = [lo + draw(st.integers(0, 9)) for lo in start]
    return x, tuple(start), tuple(stop)


@settings(max_examples=200)
@given(windows(), st.data())
@example((np.zeros(()), (), ()), None)
def test_is_index_arithmetic(case, data):
    x, start, stop = case
    want = window(x, start, stop)
    got = tilecore.tile_region(x, None, start, stop)
    assert got.dtype == x.dtype and got.shape == want.shape and got.flags.c_contiguous
    assert got.tolist() == want.tolist()
    if data is not None:
        order = data.draw(st.permutations(range(x.ndim)))
        back = data.draw(st.sampled_from([1, -1, 2]))
        memory = np.zeros([want.shape[k] * abs(back) for k in order], x.dtype)
        out = memory.transpose(np.argsort(order))[(*(slice(None, None, back),) * x.ndim, ...)]
        assert tilecore.tile_region(x, None, start, stop, out) is out
        assert out.tolist() == want.tolist()


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=3))
def test_is_padding_that_wraps(axes):
    shape = tuple(n for n, _, _ in axes)
    x = numbered(shape, "i4")
    before, after = [b for _, b, _ in axes], [a for _, _, a in axes]
    want = np.pad(x, list(zip(before, after, strict=True)), mode="wrap")
    stop = [n + a for n, a in zip(shape, after, strict=True)]
    assert (tilecore.tile_region(x, None, [-b for b in before], stop) == want).all()


@pytest.mark.parametrize("threads", [1, 3])
def test_large(threads):
    start, stop = (-1000, -1), (2000, 2701)
    for x in (numbered((700, 900), "u4"), numbered((3, 70), "O")):
        got = tilecore.tile_region(x, None, start, stop, threads=threads)
        assert (got == window(x, start, stop)).all()


@pytest.mark.parametrize("nbytes", [1, 16, 17, 33, 64, 65, 100, 127, 128])
def test_a_single_row(nbytes):
    """Each row of the region comes from the same one of the input: a step of 0 between them."""
    x = numbered((1, nbytes), "u1")
    for start, stop in [((-10, -20), (12, nbytes + 30)), ((0, 0), (20, nbytes))]:
        assert (tilecore.tile_region(x, None, start, stop) == window(x, start, stop)).all()
    out = np.zeros((20, nbytes + 3), "u1")[:, :nbytes]
    assert (tilecore.tile(x, (20, 1), out) == x).all()


def test_many_axes_of_few_elements():
    """So many pieces that a table of offsets takes their place."""
    x = numbered((2,) * 16, "u2")
    start, stop = (-1,) * 16, (1,) * 16
    assert (tilecore.tile_region(x, None, start, stop) == x[(slice(None, None, -1),) * 16]).all()


def test_far_apart_in_a_broadcast_input():
    """Indices near the largest extent there is; nothing overflows on the way."""
    x = np.broadcast_to(np.array(7, "u1"), MOST)
    assert tilecore.tile_region(x, None, (-2,), (3,)).tolist() == [7] * 5
    words = np.broadcast_to(np.array("w", "O"), 2**60 - 1)
    assert tilecore.tile_region(words, None, (-2,), (3,)).tolist() == ["w"] * 5


def test_empty():
    assert tilecore.tile_region(np.zeros((0, 3)), None, (4, -2), (4, 5)).shape == (0, 7)
    assert tilecore.tile_region(np.zeros((2, 3)), None, (1, -2), (1, 5)).shape == (0, 7)
    assert tilecore.tile_region(np.zeros(3, "V0"), None, (-2,), (5,)).shape == (7,)


@pytest.mark.parametrize(
    ("start", "stop", "kind", "words"),
    [
        ((0,), (1, 1), ValueError, "start must have 2 entries, one for each axis of the input, got 1"),
        ((0, 0), (1, 1, 1), ValueError, "stop must have 2 entries"),
        ((0, 2), (1, 1), ValueError, "expected start <= stop on axis 1, got start 2, stop 1"),
        ((-(2**63) - 1, 0), (1, 1), ValueError, "start does not fit 64 bits, got -9223372036854775809 for axis 0"),
        ((0, 0), (1, 2**63), ValueError, "stop does not fit 64 bits, got 9223372036854775808 for axis 1"),
        ((LEAST, 0), (0, 1), ValueError, "axis 0 overflows: from -9223372036854775808 to 0"),
        ((-(2**62), 0), (2**62, 1), ValueError, "axis 0 overflows"),
        ((0, -5), (2**40, 2**40), ValueError, "would have more than 9223372036854775807 elements"),
        ((0, 0), (2**31, 2**30), ValueError, "would have more than 9223372036854775807 bytes"),
        ((0, 0), (2**30, 2**29), MemoryError, "more than the limit"),
        ((0, 0.5), (1, 1), TypeError, "start must be integers, but item 1 is of type float"),
        (None, (1, 1), TypeError, "start must be an integer or a sequence"),
    ],
)  # fmt: skip
def test_refused(start, stop, kind, words):
    with pytest.raises(kind, match=f"^tile_region: .*{words}"):
        tilecore.tile_region(np.zeros((2, 3)), None, start, stop)


def test_an_empty_axis_and_a_chosen_axis_are_refused():
    words = "^tile_region: axis 1 of the input is empty, but the region has 2 elements along it"
    with pytest.raises(ValueError, match=words):
        tilecore.tile_region(np.zeros((2, 0)), None, (0, -1), (0, 1))
    with pytest.raises(ValueError, match="^tile_region: axis must be None if reps is None"):
        tilecore.tile_region(np.zeros(3), None, (0,), (1,), axis=0)
