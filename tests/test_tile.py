"""tile and output_shape: right bytes for every input, the right error for every other."""

import itertools
import tracemalloc

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tilecore

pytestmark = pytest.mark.quick

DTYPES = [
    *"? u1 <i2 >i4 f4 >f8 c16 g G M8[ns] m8[s] S3 S17 U2 V5 V33".split(),
    *[np.dtype([("a", "u1"), ("b", "f8")], align=align) for align in (False, True)],
    *[ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4],
]


def same_bytes(got, want):
    """Equal in shape, dtype and every byte: NaN payloads, -0.0 and padding included."""
    assert type(got) is np.ndarray
    assert (got.dtype, got.shape, got.tobytes()) == (want.dtype, want.shape, want.tobytes())


def random_array(shape, dtype, seed=0):
    dtype = np.dtype(dtype)
    raw = np.random.default_rng(seed).integers(0, 256, int(np.prod(shape)) * dtype.itemsize, np.uint8)
    return np.ndarray(shape, dtype, raw.tobytes())


@st.composite
def arrays(draw):
    """Arrays of every kind of layout; the bytes are random."""
    shape = tuple(draw(st.lists(st.integers(0, 6), max_size=4)))
    if draw(st.booleans()) and shape:
        shape = (*shape[:-1], draw(st.sampled_from([1, 3, 16, 40, 300])))
    x = random_array(shape, draw(st.sampled_from(DTYPES)), draw(st.integers(0, 5)))
    layout = draw(st.sampled_from(["C", "F", "steps", "transposed", "broadcast", "unaligned"]))
    if layout == "F":
        x = np.asfortranarray(x)
    elif layout == "steps" and x.ndim:
        x = x[tuple(slice(None, None, draw(st.sampled_from([1, 2, -1, -3]))) for _ in shape)]
    elif layout == "transposed":
        x = x.transpose(draw(st.permutations(range(x.ndim))))
    elif layout == "broadcast":
        x = np.broadcast_to(x, (draw(st.integers(0, 3)), *x.shape))
    elif layout == "unaligned":
        x = np.ndarray(x.shape, x.dtype, b"\0" + x.tobytes() + b"\0", offset=1)
    return x


REPS = st.lists(st.sampled_from([0, 1, 1, 2, 3, 7, 20]), max_size=6).map(tuple)


def affordable(x, reps, limit=1 << 20):
    return np.prod([float(n) for n in tilecore.output_shape(x.shape, reps)]) * x.itemsize <= limit


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@given(arrays(), REPS)
@example(np.zeros((0, 3)), (2, 2))
@example(np.zeros(()), ())
@example(random_array((1, 1, 1), "f4"), (10, 100, 10))
def test_every_byte(oracle, x, reps):
    if not affordable(x, reps):
        reps = tuple(min(r, 2) for r in reps)
    # As raw bytes, for NumPy's own indexing leaves the padding of structures behind.
    want = oracle(x.view(f"V{x.itemsize}"), reps).view(x.dtype)
    got = tilecore.tile(x, reps)
    same_bytes(got, want)
    assert got.flags.c_contiguous and got.flags.writeable and got.base is None
    assert not np.shares_memory(got, x)
    out = np.empty(want.shape, want.dtype)
    assert tilecore.tile(x, reps, out) is out
    same_bytes(out, want)


@pytest.mark.parametrize("row", [*range(1, 34), 40, 63, 64, 65, 96, 128, 129, 1000, 40000])
@pytest.mark.parametrize("repeats", [2, 3, 7, 33])
def test_rows_of_every_size(oracle, row, repeats):
    """Each kernel, and every change from one to the next; many rows and a few."""
    for rows in (1, 2, 5, 100):
        x = random_array((rows, row), "u1", row)
        if rows * row * repeats <= 1 << 21:
            same_bytes(tilecore.tile(x, (1, repeats)), oracle(x, (1, repeats)))
            same_bytes(tilecore.tile(x, (3, repeats)), oracle(x, (3, repeats)))


@pytest.mark.parametrize(
    ("shape", "reps"),
    [
        ((3, 100_001), (5, 1)),  # a run longer than a block, fanned out, with an odd rest
        *[((100_001,), (7,)), ((300, 1000), (3, 2)), ((1, 50_000, 3), (1, 1, 5))],
        *[((40, 1, 1000, 2), (3, 2, 2, 2)), ((7, 5, 3, 2), (13, 11, 17, 7))],
    ],
)
def test_more_than_one_block(oracle, shape, reps):
    x = random_array(shape, "<u2", 1)
    for source in (x, x[..., ::-1], x.T):
        same_bytes(tilecore.tile(source, reps), oracle(source, reps))


@pytest.mark.parametrize("side", [5, 80, 200])
@pytest.mark.parametrize("reps", [(1, 1, 1), (5, 1, 1), (2, 3, 1), (2, 2, 2)])
def test_colours_last(oracle, side, reps):
    """Strided input whose innermost axis is short, in one block and in many."""
    x = random_array((3, side, side), "u1").transpose(1, 2, 0)
    for source in (x, x[..., ::-1], x[::-1]):
        same_bytes(tilecore.tile(source, reps), oracle(source, reps))


def test_beyond_the_cache_into_warm_memory():
    """Large enough for stores that bypass the cache, from every kind of block."""
    for shape, reps in [((700, 3), (40, 600)), ((50_000,), (1030,)), ((3_000_001,), (17,))]:
        x = random_array(shape, "u1", 2)
        out = np.empty(tilecore.output_shape(shape, reps), "u1")
        # An index is (repeat, index of x) on each axis: the oracle's own would take eight times as much.
        split = [k for pair in zip(reps, shape, strict=True) for k in pair]
        want = x.reshape([k for n in shape for k in (1, n)])
        for threads in (1, 3):
            out.fill(0)
            tilecore.tile(x, reps, out, threads=threads)
            assert (out.reshape(split) == want).all()


@pytest.mark.parametrize(
    ("a", "reps"),
    [
        *[(5, 3), (2.5, (2, 2)), ("abc", 2), ([1, 2], 2), ([[1], [2]], (2, 3)), ((), 4), ([], (2, 0)), (True, 2)],
        *[(b"xy", 3), (np.float32(1.5), (1, 2)), (range(3), 2), (10**30, 2), (memoryview(b"abc"), 2)],
    ],
)
def test_what_is_not_an_array_is_made_one(a, reps):
    want = np.tile(a, reps)
    got = tilecore.tile(a, reps)
    assert got.dtype == want.dtype and got.shape == want.shape and (got == want).all()


@pytest.mark.parametrize(
    "reps", [2, np.int8(2), np.uint64(2), np.array(2), [2], (2,), np.array([2], "u1"), {2: None}, range(2, 3)]
)
def test_reps_of_every_kind(reps):
    assert tilecore.tile([1, 2], reps).shape == (4,)


def test_reps_by_what_they_hold():
    class Liar(list):
        def __len__(self):
            return 10**9

    for reps in (iter([2]), memoryview(b"\2"), Liar([2])):
        assert tilecore.tile([1, 2], reps).shape == (4,)
    assert tilecore.tile(np.arange(3), np.uint8(100)).shape == (300,)  # narrow integers never wrap
    assert tilecore.tile(np.zeros((0, 3)), np.array([100, 100], "u1")).shape == (0, 300)


def test_an_empty_result_needs_nothing():
    assert tilecore.tile(np.zeros((100, 100)), (200, 0)).shape == (20000, 0)
    assert tilecore.tile(np.zeros((0, 5)), (2**40, 1)).shape == (0, 5)
    assert tilecore.tile(np.zeros(3, "V0"), 4).shape == (12,)


@pytest.mark.parametrize(
    "reps", [True, np.True_, [False], [np.False_], (np.True_, 2), (2, True), np.array([True, False])]
)
def test_bools_are_no_reps(reps):
    for call in (
        lambda: tilecore.tile([[1, 2]], reps),
        lambda: tilecore.output_shape((1, 2), reps),
        lambda: tilecore.output_shape(reps, 2),
        lambda: tilecore.TilePlan((1, 2), reps, "u1"),
        lambda: tilecore.tile_region([[1, 2]], None, reps, (1, 2)),
    ):
        with pytest.raises(TypeError, match="must be .*integers?, .*bool"):
            call()


@pytest.mark.parametrize(
    "reps", ["", b"", bytearray(b""), "22", b"\2", bytearray(b"\2"), set(), {2, 3}, frozenset([2])]
)
def test_text_and_sets_are_no_reps(reps):
    text = f"reps must be an integer or a sequence of integers, got {type(reps).__name__};"
    with pytest.raises(TypeError, match=f"^tile: {text}"):
        tilecore.tile([1, 2], reps)
    with pytest.raises(TypeError, match=f"^TilePlan: {text}"):
        tilecore.TilePlan(2, reps, "u1")


NO_INTEGER = "must be an integer or a sequence of integers, got float"


CALLED = "tile() got an unexpected keyword argument '{}'; use '{}'"
SEVERAL = "repeats of several axes are one argument: (2, 3); input shape (2, 3),"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: tilecore.tile(x, repeats=2), CALLED.format("repeats", "reps")),
        (lambda x: tilecore.tile(x, 2, repeats=2), CALLED.format("repeats", "reps")),
        (lambda x: tilecore.tile(A=x, reps=2), CALLED.format("A", "a")),
        (lambda x: tilecore.tile(x), "tile() missing a required argument: 'reps'"),
        (lambda x: tilecore.tile(reps=2), "tile() missing a required argument: 'a'"),
        (lambda x: tilecore.tile(x, 2, other=1), "tile() got an unexpected keyword argument 'other'"),
        (lambda x: tilecore.tile(x, 2, 3), "tile: out must be a NumPy array, got int; " + SEVERAL),
        (lambda x: tilecore.tile([[1], [2, 3]], 2), "tile: a of type list cannot be read as an array: "),
        (lambda x: tilecore.tile_view(np.ma.array(x), 1), "tile_view: a must be a plain array, got MaskedArray"),
        (lambda x: tilecore.tile_region(x, 2, (0,), (1, 1)), "tile_region: start must have 2 entries"),
        (lambda x: tilecore.output_shape(-1, 2), ": shape must not be negative, got -1 for axis 0; shape -1, reps 2"),
        (lambda x: tilecore.tile(x, 1.5), f"tile: reps {NO_INTEGER}; input shape (2, 3), dtype float32, reps 1.5"),
        (lambda x: tilecore.TilePlan(1.5, 2, "f4"), f"TilePlan: shape {NO_INTEGER}; shape 1.5, reps 2"),
        (
            lambda x: tilecore.TilePlan((2, 3), 2, "f4").tile(x, 2),
            "TilePlan.tile: out must be a NumPy array, got int; input shape (2, 3), dtype float32, reps (1, 2)",
        ),
    ],
)
def test_messages_name_the_parameters(call, words):
    with pytest.raises((TypeError, ValueError)) as caught:
        call(ROW)
    assert words in str(caught.value)


@pytest.mark.parametrize("code", ["S", "U"])
def test_strings_of_no_characters(code):
    """NumPy gives new ones room for one, in which no old memory may show."""
    x = np.zeros(3, [("none", code + "0"), ("n", "i4")])["none"]
    assert x.itemsize == 0
    for call in (
        lambda: tilecore.tile(x, 1000),
        lambda: tilecore.tile_mapped(x, 1000),
        lambda: tilecore.tile_region(x, 1000, (0,), (3000,)),
        lambda: tilecore.TilePlan(3, 1000, x.dtype).tile(x),
    ):
        used = [np.full(3000 * n, 255, "u1") for n in (1, 4) for _ in range(9)]
        del used
        got = call()
        assert got.shape == (3000,) and got.dtype == np.empty(1, code + "0").dtype
        assert not got.view("u1").any()
    with pytest.raises(MemoryError, match="more than the limit"):
        tilecore.tile(x, 2**60)


def test_numpys_own_tests_pass(monkeypatch):
    from numpy.lib.tests import test_shape_base

    monkeypatch.setattr(test_shape_base, "tile", tilecore.tile)
    suite = test_shape_base.TestTile()
    names = [name for name in dir(suite) if name.startswith("test_")]
    assert names
    for name in names:
        getattr(suite, name)()


ROW = np.arange(6, dtype="f4").reshape(2, 3)


@pytest.mark.whole_process
@pytest.mark.parametrize(
    ("reps", "kind", "words"),
    [
        *[(-1, ValueError, "negative, got -1 for axis 1"), ((1, -(10**30)), ValueError, "negative, got -1000000")],
        *[(1.0, TypeError, "got float"), (None, TypeError, "got NoneType")],
        *[((2, 1.0), TypeError, "item 1 is of type float"), (np.array([1.5]), TypeError, "item 0 is of type float64")],
        (("a", "b"), TypeError, "item 0 is of type str"),
        ([[1, 2]], ValueError, "one-dimensional, but item 0 is a list"),
        (np.ones((1, 2), int), ValueError, "one-dimensional, but item 0 is a ndarray"),
        (2**62, ValueError, "axis 1 overflows: 3 \\* 4611686018427387904"),
        *[(2**63, ValueError, "axis 1 overflows: 9223372036854775808"), (10**30, ValueError, "axis 1 overflows")],
        ((2**32, 2**32), ValueError, "elements: its shape .* overflows at axis 1"),
        ((2**30, 2**29), ValueError, "more than 9223372036854775807 bytes"),
        *[(endless, ValueError, "at most 64 entries") for endless in ([1] * 65, itertools.repeat(1))],
        (2**45, MemoryError, "would take 844424930131968 bytes, more than the limit"),
        ((-1, "a"), TypeError, "item 1 is of type str"),  # types before signs
        ((-1, 2**63), ValueError, "negative"),  # signs before overflow
        ((2**63, 2**62), ValueError, "axis 0 overflows"),
    ],
)  # fmt: skip
def test_refused(reps, kind, words):
    out = np.full((2, 3), 9.0, "f4")
    for arguments in ((), (out,)) if kind is not MemoryError else ((),):
        tracemalloc.start()
        with pytest.raises(kind, match=words) as caught:
            tilecore.tile(ROW, reps, *arguments)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert str(caught.value).startswith("tile: ")
        typed = "" if reps is None else ", reps "
        assert "input shape (2, 3), dtype float32" + typed in str(caught.value)
        assert peak < 1 << 20
    assert (out == 9).all()


def test_reps_that_change_the_array_while_they_are_read():
    x = np.arange(6)

    class Reshaper:
        def __index__(self):
            x.resize((2,), refcheck=False)
            return 2

    assert tilecore.tile(x, (Reshaper(), 1)).tolist() == [[0, 1], [0, 1]]


@pytest.mark.whole_process
def test_peak_memory_is_the_result():
    """No intermediate per axis, and no packed copy of a strided input."""
    x = np.zeros((300, 400), "f4")
    for source in (x, x.T, x[::-1, ::-1]):
        tracemalloc.start()
        got = tilecore.tile(source, (3, 4))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < got.nbytes + 10_000


class TestOutputShape:
    @given(st.lists(st.integers(0, 50), max_size=6), REPS)
    def test_is_that_of_tile(self, shape, reps):
        pairs = itertools.zip_longest(reversed(shape), reversed(reps), fillvalue=1)
        assert tilecore.output_shape(shape, reps) == tuple(n * r for n, r in pairs)[::-1]

    @pytest.mark.parametrize(
        ("shape", "reps", "kind"),
        [
            *[(shape, 1, ValueError) for shape in ((2, -1), (2**40, 2**40), [1] * 65)],
            *[((2**62,), 2, ValueError), ((2.0,), 1, TypeError), (3, "x", TypeError)],
        ],
    )
    def test_refused(self, shape, reps, kind):
        with pytest.raises(kind, match="^output_shape: "):
            tilecore.output_shape(shape, reps)

    def test_accepted(self):
        assert tilecore.output_shape(3, 2) == (6,)
        assert tilecore.output_shape((2**40, 2**20), 1) == (2**40, 2**20)


@pytest.mark.whole_process
def test_the_limit_is_exact():
    before = tilecore.get_max_bytes()
    try:
        tilecore.set_max_bytes(48)
        assert tilecore.tile(ROW, 2).nbytes == 48
        with pytest.raises(MemoryError, match="96 bytes, more than the limit of 48 bytes"):
            tilecore.tile(ROW, (2, 2))
        assert tilecore.tile(ROW, (2, 2), np.empty((4, 6), "f4")).shape == (4, 6)
        assert tilecore.tile(ROW, (2**40, 0)).shape == (2**41, 0)
    finally:
        tilecore.set_max_bytes(before)
