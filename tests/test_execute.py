"""Regions, threads and plans: the same bytes as the whole, however it is cut."""

import copy
import pickle
import pydoc
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import tilecore

pytestmark = pytest.mark.quick


class TestRegion:
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
