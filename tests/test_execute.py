"""Regions, threads and plans: the same bytes as the whole, however it is cut."""

import copy
import pickle
import pydoc
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tilecore

pytestmark = pytest.mark.quick


@st.composite
def regions(draw):
    """An array, repeats, and a region of the tiling."""
    shape = tuple(draw(st.lists(st.integers(0, 6), max_size=4)))
    if draw(st.booleans()):
        shape = (*shape, draw(st.sampled_from([1, 3, 17, 100])))
    reps = tuple(draw(st.lists(st.integers(0, 5), max_size=5)))
    x = np.arange(int(np.prod(shape))).reshape(shape).astype(draw(st.sampled_from(["u1", "f4", "c16", "S3", "O", "T"])))
    if draw(st.booleans()):
        x = x.T[::-1] if x.ndim else x
    output = tilecore.output_shape(x.shape, reps)
    start = tuple(draw(st.integers(0, n)) for n in output)
    stop = tuple(draw(st.integers(lo, n)) for lo, n in zip(start, output, strict=True))
    return x, reps, start, stop


class TestRegion:
    @settings(max_examples=300)
    @given(regions())
    @example((np.zeros(()), (), (), ()))
    def test_is_a_slice_of_the_whole(self, oracle, case):
        x, reps, start, stop = case
        whole = oracle(x, reps)
        want = whole[(*map(slice, start, stop), ...)]  # an array, 0-D too
        got = tilecore.tile_region(x, reps, start, stop)
        assert got.dtype == x.dtype and got.shape == want.shape and got.flags.c_contiguous
        assert got.tolist() == want.tolist()
        plan = tilecore.TilePlan(x.shape, reps, x.dtype)
        out = np.empty(want.shape, want.dtype)
        assert plan.region(x, start, stop, out) is out
        assert out.tolist() == want.tolist()
        out = np.empty(whole.shape, whole.dtype)
        assert plan.tile(x, out) is out
        assert plan.tile(x).tolist() == out.tolist() == whole.tolist()

    @pytest.mark.parametrize("threads", [1, 3])
    def test_large_and_warm(self, oracle, threads):
        x = np.arange(5 * 70_001, dtype="u4").reshape(5, 70_001)
        start, stop = (3, 60_000), (37, 70_001 * 3 + 11)
        want = oracle(x, (8, 5))[3:37, 60_000 : 70_001 * 3 + 11]
        out = np.zeros(want.shape, "u4")
        tilecore.tile_region(x, (8, 5), start, stop, out, threads=threads)
        assert (out == want).all()

    def test_cost_is_the_regions_alone(self):
        """It ends: making all of it would take years."""
        x = np.arange(2**20, dtype="u1")
        for at in range(2**60, 2**60 + 200):
            got = tilecore.tile_region(x, 2**41, (at,), (at + 100,))
            assert (got == np.arange(at % 2**20, at % 2**20 + 100).astype("u1")).all()

    @pytest.mark.parametrize(
        ("start", "stop", "kind", "words"),
        [
            ((0,), (1, 1), ValueError, "start must have 2 entries"),
            ((0, 0), (1, 1, 1), ValueError, "stop must have 2 entries"),
            ((0, 0), (4, 7), ValueError, "stop <= 6 on axis 1, got start 0, stop 7"),
            ((2, 0), (1, 6), ValueError, "axis 0, got start 2, stop 1"),
            ((-1, 0), (1, 6), ValueError, "start must not be negative"),
            ((0, 0.5), (1, 6), TypeError, "start must be integers"),
            (None, (1, 6), TypeError, "start must be an integer or"),
            ((0, 0), (2**70, 6), ValueError, "axis 0 overflows"),
        ],
    )
    def test_bounds_refused(self, start, stop, kind, words):
        with pytest.raises(kind, match=words):
            tilecore.tile_region(np.zeros((2, 3)), (2, 2), start, stop)

    def test_size_limit_counts_the_region(self):
        x = np.zeros((2, 3))
        assert tilecore.tile_region(x, (2**28, 2**28), (0, 0), (2, 2)).shape == (2, 2)
        with pytest.raises(MemoryError, match="limit"):
            tilecore.tile_region(x, (2**28, 2**28), (0, 0), (2**28, 2**20))


class TestPlan:
    def test_attributes(self):
        plan = tilecore.TilePlan((2, 3), (4, 1, 2), ">f4")
        assert plan.input_shape == (2, 3)
        assert plan.output_shape == (4, 2, 6)
        assert plan.reps == (4, 1, 2)
        assert plan.dtype == np.dtype(">f4")
        assert plan.nbytes == 4 * 2 * 6 * 4
        for name in ("input_shape", "output_shape", "reps", "dtype", "nbytes", "other"):
            with pytest.raises(AttributeError):
                setattr(plan, name, None)

    def test_equality_and_hash(self):
        plan = tilecore.TilePlan((2, 3), 2, "f4")
        assert plan == tilecore.TilePlan([2, 3], (1, 2), np.float32)
        assert hash(plan) == hash(tilecore.TilePlan([2, 3], (1, 2), np.float32))
        assert plan != tilecore.TilePlan((2, 3), 3, "f4")
        assert plan != tilecore.TilePlan((2, 3), 2, "i4")
        assert plan != "plan"
        assert "TilePlan((2, 3), (1, 2), 'float32')" == repr(plan)

    def test_is_the_packages_own_class(self):
        """Where it is compiled and how is not for users."""
        text = pydoc.plain(pydoc.render_doc(tilecore.TilePlan))
        assert text.startswith("Python Library Documentation: class TilePlan in module tilecore\n")
        assert "TilePlan(shape, reps, dtype, *, axis=None)" in text
        assert "__pyx" not in text and "__new__" not in text and "_core" not in text
        assert repr(tilecore.TilePlan) == "<class 'tilecore.TilePlan'>"
        for name in ("tile", "tile_region", "output_shape", "set_max_bytes", "get_num_threads"):
            assert getattr(tilecore, name).__module__ == "tilecore"
            assert b"_core" not in pickle.dumps(getattr(tilecore, name))
            assert pickle.loads(pickle.dumps(getattr(tilecore, name))) is getattr(tilecore, name)
        assert b"_core" not in pickle.dumps(tilecore.TilePlan(2, 2, "f4"))
        with pytest.raises(TypeError):
            object.__new__(tilecore.TilePlan)
        with pytest.raises(TypeError):
            tilecore.TilePlan.__new__(tilecore.TilePlan)

    def test_survives_pickling_and_copying(self):
        plan = tilecore.TilePlan((2, 3), (2, 2), [("a", "u1"), ("b", "f8")])
        for again in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan)):
            assert again == plan and again.dtype.names == ("a", "b")

    def test_refuses_other_arrays(self):
        out = np.zeros((2, 6), "f4")
        for x, kind, words in [
            *((np.zeros(shape, "f4"), ValueError, "for shape .2, 3., got") for shape in ((3, 2), 6, (1, 2, 3), ())),
            (np.zeros((2, 3)), TypeError, "for dtype float32, got float64"),
            (np.ma.zeros((2, 3), "f4"), TypeError, "plain array"),
            (out[:, :3], ValueError, "share memory"),
        ]:
            with pytest.raises(kind, match=words):
                tilecore.TilePlan((2, 3), 2, "f4").tile(x, out)

    def test_may_be_larger_than_memory(self):
        plan = tilecore.TilePlan((2**20,), 2**35, "u1")
        x = np.arange(2**20, dtype="u1")
        with pytest.raises(MemoryError, match="limit"):
            plan.tile(x)
        at = 2**54 + 12345
        assert (plan.region(x, (at,), (at + 9,)) == x[12345 : 12345 + 9]).all()

    @pytest.mark.parametrize(("shape", "reps", "times"), [((50, 7), (20, 3), 20), ((333, 3), (20, 300), 3)])
    def test_from_many_threads(self, oracle, shape, reps, times):
        plan = tilecore.TilePlan(shape, reps, "u1")
        inputs = [np.random.default_rng(k).integers(0, 255, shape, "u1") for k in range(12)]
        want = [oracle(x, reps) for x in inputs]
        with ThreadPoolExecutor(12) as pool:
            for expected, got in zip(
                want * times, pool.map(partial(plan.tile, threads=3), inputs * times), strict=True
            ):
                assert (got == expected).all()


class TestThreads:
    """On results above TILECORE_THREAD_BYTES; smaller ones are written by one thread."""

    @pytest.mark.parametrize("threads", [1, 2, 3, 7, 300])
    @pytest.mark.parametrize(
        ("shape", "reps"),
        [((300, 3), (1, 5000)), ((1_300_001,), (4,)), ((64, 64), (40, 30)), ((11, 1, 13), (9, 14, 301))],
    )
    def test_every_share_is_written(self, oracle, shape, reps, threads):
        x = np.random.default_rng(0).integers(0, 255, shape, "u1").astype("u4")
        out = np.zeros(tilecore.output_shape(shape, reps), "u4")
        assert (tilecore.tile(x, reps, out, threads=threads) == oracle(x, reps)).all()
        assert (tilecore.tile(x, reps, threads=threads) == out).all()

    @pytest.mark.whole_process
    def test_the_first_calls_workers_are_all(self):
        def number_of_threads():
            with open("/proc/self/status") as file:
                return next(line for line in file if line.startswith("Threads:"))

        pythons = threading.active_count()
        tilecore.tile(np.zeros(100_000), 25, threads=4)
        systems = number_of_threads()
        for _ in range(20):
            tilecore.tile(np.zeros(100_000), 25, threads=4)
        assert number_of_threads() == systems
        assert threading.active_count() == pythons

    @pytest.mark.process
    def test_small_stacks(self, program):
        """As small as Python and the system allow: 32 KiB, more with some versions and processors."""
        program("""
x = numpy.arange(300 * 256, dtype="u1").reshape(256, 300)
want = {reps: numpy.tile(x, reps) for reps in ((40, 40), (90, 40))}

def tile():
    for reps in [*want] * 2: assert numpy.array_equal(tilecore.tile(x, reps, threads=2), want[reps])

for kib in (32, 64, 128, 256):
    try:
        threading.stack_size(kib * 1024)
        together(tile)
        break
    except (ValueError, RuntimeError):  # no thread can be made that has no more stack
        assert kib < 256
""")
