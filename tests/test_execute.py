"""Regions, views, plans and threads: the same bytes as the whole, however it is cut. Layouts: test_layouts.py."""

import copy
import inspect
import os
import pickle
import pydoc
import weakref

import numpy as np
import pytest

import tilecore

pytestmark = pytest.mark.quick


class TestRegion:
    def test_cost_is_the_regions_alone(self):
        """A region of an enormous tiling takes no time: all of it would take years."""
        x = np.arange(2**20, dtype="u1")
        plan = tilecore.TilePlan(2**20, 2**41, "u1")
        for at in range(2**60, 2**60 + 200):
            got = tilecore.tile_region(x, 2**41, (at,), (at + 100,))
            assert (plan.region(x, (at,), (at + 100,)) == got).all()
            assert (got == np.arange(at % 2**20, at % 2**20 + 100).astype("u1")).all()

    def test_by_several_threads(self):
        """By bands; by pieces, if one axis repeats often, bands are few, the source is packed, or leaves the cache."""
        x = np.random.default_rng(1).integers(0, 256, (70, 90, 3), "u1")
        large = np.random.default_rng(2).integers(0, 256, (2**14 + 1, 720), "u1")
        for source, start, stop in [
            (x, (-75, -7, 0), (900, 700, 4)),
            (x.view("V3")[..., 0], (3, 100), (803, 1151)),
            (x.ravel(), (-1,), (2**21,)),
            (large.ravel()[: 2**20], (-9,), (2**21,)),
            (x[:2], (1, -9, 1), (4, 7000, 120)),
            (x[:, :, 0].T, (5, 1), (2205, 1000)),
            (large, (-9, 1), (2**14 + 200, 722)),
        ]:
            index = [np.arange(a, b) % n for a, b, n in zip(start, stop, source.shape, strict=True)]
            want = source[np.ix_(*index)]
            shape, dtype = want.shape, want.dtype
            around = np.zeros([n + 5 for n in shape], dtype)
            gaps = around[tuple(map(slice, shape))]
            for new in (np.zeros(shape, dtype), np.zeros(shape, dtype, "F"), gaps, np.zeros(shape, dtype)[..., ::-1]):
                out = tilecore.tile_region(source, None, start, stop, new, threads=3)
                assert out is new and (out == want).all(), (source.shape, out.strides)
            gaps[...] = np.zeros((), dtype)
            assert around.tobytes() == bytes(around.nbytes), source.shape

    def test_many_axes_of_few_elements(self):
        """2**16 pieces, of an element each."""
        x = np.arange(2**16, dtype="u2").reshape((2,) * 16)
        got = tilecore.tile_region(x, None, (-1,) * 16, (1,) * 16)
        assert (got == x[(slice(None, None, -1),) * 16]).all()

    def test_far_apart_in_a_broadcast_input(self):
        """Indices near the largest extent there is; nothing overflows on the way."""
        x = np.broadcast_to(np.array(7, "u1"), 2**63 - 1)
        assert tilecore.tile_region(x, None, (-2,), (3,)).tolist() == [7] * 5
        for stop in (3, 4):  # rows that all lie in one place, beside an axis of one element
            x = np.broadcast_to(np.array(7, "u1"), (2**62, 1))
            assert tilecore.tile_region(x, None, (-2, 0), (2, stop)).tolist() == [[7] * stop] * 4
        words = np.broadcast_to(np.array("w", "O"), 2**60 - 1)
        assert tilecore.tile_region(words, None, (-2,), (3,)).tolist() == ["w"] * 5
        assert tilecore.tile_region(np.zeros(3, "V0"), None, (-2,), (5,)).shape == (7,)


class TestPlan:
    def test_attributes_are_read_only(self):
        plan = tilecore.TilePlan((2, 3), (4, 1, 2), ">f4")
        assert (plan.input_shape, plan.output_shape, plan.reps) == ((2, 3), (4, 2, 6), (4, 1, 2))
        assert (plan.dtype, plan.nbytes) == (np.dtype(">f4"), 4 * 2 * 6 * 4)
        for name in ("input_shape", "output_shape", "reps", "dtype", "nbytes", "other"):
            with pytest.raises(AttributeError):
                setattr(plan, name, None)

    def test_equality_hash_and_copies(self):
        plan = tilecore.TilePlan((2, 3), 2, "f4")
        assert plan == tilecore.TilePlan([2, 3], (1, 2), np.float32)
        assert hash(plan) == hash(tilecore.TilePlan([2, 3], (1, 2), np.float32))
        for other in (tilecore.TilePlan((2, 3), 3, "f4"), tilecore.TilePlan((2, 3), 2, "i4"), "plan"):
            assert plan != other
        assert repr(plan) == "TilePlan((2, 3), (1, 2), 'float32')"
        types = ["<M8[s]", "S0", [("a", ">i4"), ("b", "f8", 2)], np.dtype("i1,f8", align=True), ("i4", (2,)), "V3"]
        for dtype in (*types, np.dtypes.StringDType(), np.dtypes.StringDType(na_object=None)):
            plan = tilecore.TilePlan((2, 3), 2, dtype)
            assert eval(repr(plan), {"TilePlan": tilecore.TilePlan, "numpy": np}) == plan
        plan = tilecore.TilePlan((2, 3), (2, 2), [("a", "u1"), ("b", "f8")])
        for again in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan)):
            assert again == plan and again.dtype.names == ("a", "b")
        assert weakref.ref(plan)() is plan

    def test_is_the_packages_own_class(self):
        """Users do not see in which module it is compiled, nor how."""
        text = pydoc.plain(pydoc.render_doc(tilecore.TilePlan))
        assert text.startswith("Python Library Documentation: class TilePlan in module tilecore\n")
        assert "TilePlan(shape, reps, dtype, *, axis=None)" in text
        assert "__pyx" not in text and "__new__" not in text and "_core" not in text
        assert str(inspect.signature(tilecore.tile)) == "(a, reps, out=None, *, axis=None, threads=None)"
        assert str(inspect.signature(tilecore.num_threads)) == "(n)"
        assert repr(tilecore.TilePlan) == "<class 'tilecore.TilePlan'>"
        assert {getattr(tilecore, name).__module__ for name in tilecore.__all__} == {"tilecore"}
        for name in ("tile", "tile_region", "output_shape", "set_max_bytes", "get_num_threads"):
            assert inspect.isbuiltin(getattr(tilecore, name))  # with no Python frame in between
            assert b"_core" not in pickle.dumps(getattr(tilecore, name))
            assert pickle.loads(pickle.dumps(getattr(tilecore, name))) is getattr(tilecore, name)
        assert b"_core" not in pickle.dumps(tilecore.TilePlan(2, 2, "f4"))
        for make in (object.__new__, tilecore.TilePlan.__new__):
            with pytest.raises(TypeError):
                make(tilecore.TilePlan)


def test_a_view_allocates_nothing(settings_stay):
    tilecore.set_max_bytes(0)
    assert tilecore.tile_view(np.ones(1), 2**50).shape == (2**50,)


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="threads are counted in /proc")
@pytest.mark.parametrize("pages, target, threads", [(255, "out", 1), (256, "out", 2), (2047, "", 1), (2048, "", 2)])
def test_from_which_size_two_threads_write(pages, target, threads, program):
    """From TILECORE_THREAD_BYTES on, or TILECORE_NEW_THREAD_BYTES if the memory is new; with no worker yet."""
    program(f"""
x, out = numpy.ones((1, 4096), "u1"), numpy.zeros(({pages}, 4096), "u1")
kept = tilecore.tile(x, ({pages}, 1), {target})     # a dropped result would begin the watcher
assert len(threads()) == {threads}
""", TILECORE_NUM_THREADS="2")  # fmt: skip
