"""Tilings in Numba's compiled code. Nothing of tilecore's is imported for Numba here: an entry point does it."""

import sys

import numpy as np
import pytest

import tilecore

numba = pytest.importorskip("numba", exc_type=ImportError)
from numba.typed import List  # noqa: E402

numba.config.OPT = 0  # compiling takes the time, and in programs of their own and on a page it is as usual
pytestmark = pytest.mark.process  # most start none, but compiling takes longer than quick tests may

X = np.arange(6.0).reshape(2, 3)
RECORDS = np.array([(1, 2.5, b"ab", (2, 3)), (3, -0.0, b"", (0, 1))], "i1,f8,S2,(2,)i4")

numpys = numba.njit(lambda a, reps: np.tile(a, reps))
ours = numba.njit(nogil=True)(lambda a, reps: tilecore.tile(a, reps))
into = numba.njit(lambda a, reps, out: tilecore.tile(a, reps, out))
shape_of = numba.njit(lambda shape, reps: tilecore.output_shape(shape, reps))
with_threads = numba.njit(lambda a, reps, threads: tilecore.tile(a, reps, threads=threads))


def check(oracle, a, reps):
    counts = tuple(map(int, reps)) if isinstance(reps, tuple) else int(reps)  # Python's own: narrow integers wrap
    want, got = oracle(a, counts), numpys(a, reps)
    np.testing.assert_array_equal(got, want, strict=True)
    assert got.tobytes() == want.tobytes()
    assert got.flags.c_contiguous and got.flags.writeable and not np.shares_memory(got, a)


ITEMS = [*(np.array([0, 1, 7]).astype(dtype) for dtype in "? u8 c16 M8[us] U3 S5".split()), RECORDS]
REPEATS = [np.uint8(200), np.uint64(3), (), (np.int8(2), 3, np.uint64(1)), (2,) * 5]
RANK_4 = np.arange(24.0).reshape(2, 3, 1, 4)[:, ::2]
LAYOUTS = [X.copy("F"), np.broadcast_to(X[:1], (4, 3)), np.array(2.5), RANK_4]


@pytest.mark.parametrize(("a", "repeats"), [
    *[(a, repeats) for a in ITEMS for repeats in (3, 0)], *[(X, repeats) for repeats in REPEATS],
    *[(a, (2, 3)) for a in LAYOUTS],
])  # fmt: skip
def test_items_repeats_and_layouts(a, repeats, oracle):
    check(oracle, a, repeats)


def test_random_forms(oracle):
    rng = np.random.default_rng(27)
    for _ in range(300):
        shape, repeats = rng.integers(0, 5, 3), rng.integers(0, 4, 2)
        a = rng.random(shape)[:, ::-1]
        check(oracle, a, tuple(repeats.tolist()))
        out = np.empty((*shape * [1, *repeats], 2))[..., 1]
        into(a, repeats, out)
        np.testing.assert_array_equal(out, oracle(a, repeats))


def test_repeats_as_arrays_and_lists():
    @numba.njit
    def kinds(a, records, n, one):
        written, changed = [2, 3], [2, 3]
        changed[1] = n
        return np.tile(a, records[0].f3), np.tile(a, one), np.tile(a, written), np.tile(a, changed)

    found = kinds(X, RECORDS, 5, np.array(4))
    for result, repeats in zip(found, [(2, 3), 4, (2, 3), (2, 5)], strict=True):
        np.testing.assert_array_equal(result, np.tile(X, repeats))
    out = np.empty((4, 9))
    for repeats in (np.array([2, 3]), np.array([3, 2], "u1")[::-1], List([2, 3])):
        out[:] = 0
        np.testing.assert_array_equal(into(X, repeats, out), np.tile(X, (2, 3)))
    np.testing.assert_array_equal(into(X, np.array([2]), out[:2, :6]), np.tile(X, 2))

    @numba.njit
    def longer(a):
        repeats = [2, 3]
        repeats.append(2)
        return np.tile(a, repeats)

    with pytest.raises(ValueError, match="number of reps"):
        longer(X)


@pytest.mark.parametrize("a", [2.5, True, ((1, 2), (3, 4)), List([1, 2])])
def test_numbers_and_lists(a, oracle):
    np.testing.assert_array_equal(numpys(a, (2, 2)), oracle(np.array(list(a) if isinstance(a, List) else a), (2, 2)))


def test_output_shape():
    assert shape_of((2, 3), (4, 1, 2)) == (4, 2, 6)
    assert shape_of(3, np.uint8(200)) == (600,) and shape_of((), ()) == ()
    for shape, repeats in [((2, -1), 1), (2, -1), ((2**62, 0), (2, 1))]:
        with pytest.raises(ValueError, match="tilecore: "):
            shape_of(shape, repeats)


@pytest.mark.parametrize("repeats, words", [
    (-1, "reps must be from 0"), ((1, np.uint64(2**63)), "reps must be from 0"), (2**62, "too large"),
])  # fmt: skip
def test_refused_values(repeats, words):
    for a in (X, X[:0]):  # an empty result too
        with pytest.raises(ValueError, match=words):
            numpys(a, repeats)
    with pytest.raises(MemoryError):
        numpys(X, 2**55)


def says_as_the_core(compiled, call):
    """Compiled code has its own copy of the message, without values."""
    with pytest.raises(ValueError, match="^tile: ") as core:
        call()
    with pytest.raises(ValueError, match="^tilecore: ") as ours:
        compiled()
    assert str(core.value).startswith(str(ours.value).replace("tilecore: ", "tile: "))


@pytest.mark.parametrize(("call", "arguments", "words"), [
    *[(call, (X, bad), "reps must be an integer")
      for call, bad in ((numpys, True), (numpys, (1, 2.0)), (ours, np.array([[1]])))],
    *[(call, (X, bad), "number of reps must be known")
      for call, bad in ((numpys, np.array([1, 2])), (ours, List([1, 2])))],
    (ours, (X, (1,) * 65), "64 axes"), (ours, ("text", 2), "a must be an array"),
    (into, (X, 2, np.zeros((2, 6), "f4")), "writeable array of float64"),
    (into, (X, 2, np.broadcast_to(0.0, (2, 6))), "writeable array of float64"),
    (into, (X, 2, np.zeros(12)), "rank of the result, 2"),
    (shape_of, (np.array([1, 2]), 2), "number of reps must be known"),
    (with_threads, (X, 2, 1.5), "threads must be an integer"),
    (numba.njit(lambda a: tilecore.tile(a, 2, axis=0)), (X,), "axis must be None"),
])  # fmt: skip
def test_refused_types(call, arguments, words):
    with pytest.raises(numba.TypingError, match=words):
        call(*arguments)


def test_threads_of_any_integer_or_none():
    for threads in (1, 2**40, np.uint64(2), None):
        np.testing.assert_array_equal(with_threads(X, 2, threads), np.tile(X, 2))
    says_as_the_core(lambda: with_threads(X, 2, 0), lambda: tilecore.tile(X, 2, threads=0))


def test_an_out_of_any_strides_that_shares_nothing():
    whole = np.zeros((4, 24))
    whole[:2, :3] = X
    a, rgb = whole[:2, :3], np.zeros((2, 6, 3))
    outs = [whole[2:, :6], whole[:2, 3:9], whole[::-1, ::-1][:2, :6], whole[:2, 4:16:2]]
    for out in (*outs, rgb[:, :, 1], rgb[:, ::-1, 2]):
        assert into(a, 2, out).ctypes.data == out.ctypes.data
        np.testing.assert_array_equal(out, np.tile(X, 2))
    assert not rgb[:, :, 0].any()
    before = whole.copy()
    strided = np.lib.stride_tricks.as_strided
    shared = [whole[:2, 2:8], whole[1:3, :6], whole[:2, :12:2]]
    overlapping = [strided(whole[2:], (2, 6), strides) for strides in ((8, 8), (0, 8))]
    for out in (*shared, *overlapping):
        says_as_the_core(lambda out=out: into(a, 2, out), lambda out=out: tilecore.tile(a, 2, out))
    with pytest.raises(ValueError, match="out must have the shape of the result"):
        into(a, 2, whole[2:, :5])
    np.testing.assert_array_equal(whole, before)
    assert into(whole[:0], 2, whole[:0].repeat(2, 1)).size == 0


FUNCTION = """
import numba, numpy as np, tilecore
@numba.njit(cache=True)
def twice(a):
    return np.tile(a, 2), tilecore.tile(a, (2, 1))
"""


@pytest.mark.package
def test_cached(program, tmp_path):
    """Another process calls the compiled code, though C functions lie at other addresses there."""
    (tmp_path / "cached.py").write_text(FUNCTION)
    code = """
import sys
from cached import twice
assert "tilecore.integrations.numba" not in sys.modules
first, second = twice(numpy.arange(3))
assert first.tolist() == [0, 1, 2] * 2 and second.shape == (2, 3)
print(len(twice.stats.cache_hits))
"""
    assert [program(code, "-W", "default") for _ in range(2)] == ["0\n", "1\n"]


def test_numba_is_left_alone(program):
    """Nothing is registered until Numba compiles, and an np.tile that Numba has already stays."""
    program("""
assert "numba" not in sys.modules
import numba
from numba.extending import overload
@overload(numpy.tile)
def their_own(A, reps):
    return lambda A, reps: "theirs"
both = numba.njit(lambda a: (numpy.tile(a, 2), tilecore.tile(a, 2)))
theirs, ours = both(numpy.arange(2))
assert theirs == "theirs" and ours.tolist() == [0, 1, 0, 1]
""", "-W", "default")  # fmt: skip


@pytest.mark.package
def test_threads_prange_and_fork(program):
    """Python warns of a fork beside Numba's threads."""
    program("""
import numba
@numba.njit(parallel=True)
def rows(a, n, repeats):
    out = numpy.empty((n, 6))
    for i in numba.prange(n):
        out[i] = numpy.tile(a, repeats) * i
        tilecore.tile(a, repeats, out[i], threads=1)
    return out
@numba.njit(nogil=True)
def large(a):
    return numpy.tile(a, (4, 3))
with tilecore.replace_numpy_tile():
    assert numba.njit(lambda a: numpy.tile(a, 2))(numpy.arange(2)).shape == (4,)
a, image = numpy.arange(3.0), numpy.arange(10.0**6).reshape(1000, 1000)[:, ::-1]
def work():
    for _ in range(5): assert (large(image)[1000:, 2000:] == numpy.tile(image, (3, 1))).all()
def check():
    together(work, work, work)
    assert (rows(a, 1000, 2) == numpy.tile(a, 2)).all()
check()
if hasattr(os, "fork"): forked(work)
check()
""", "-W", "ignore")  # fmt: skip


def test_nothing_is_leaked():
    """An exception leaves references that compiled callers hold, as all of Numba's do; nothing else."""
    before = [sys.getrefcount(X), sys.getrefcount(RECORDS)]
    for _ in range(10):
        ours(X, (2, 2)), into(X, np.array([2]), np.empty((2, 6))), numpys(RECORDS, 2)
    assert [sys.getrefcount(X), sys.getrefcount(RECORDS)] == before
