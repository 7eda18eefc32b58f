"""TilePlan.batch: large batches, what is refused, references, signals and threads."""

import gc
import operator
import sys
from _thread import interrupt_main
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import tilecore

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("n", [3, 1500])
@pytest.mark.parametrize("threads", [None, 1, 3])
def test_large(oracle, n, threads):
    """By the blocks of each, or by arrays."""
    size = 3 * 2**18 // n
    arrays = [np.full((size, 2), k, "i4") + np.arange(2, dtype="i4") for k in range(n)]
    arrays[1] = np.asfortranarray(arrays[1])  # other loops for one of them
    plan = tilecore.TilePlan((size, 2), (1, 2), "i4")
    want = np.array([oracle(x, (1, 2)) for x in arrays])
    assert (plan.batch(arrays, threads=threads) == want).all()
    rgba = np.zeros((n, size, 4, 3), "i4")
    plan.batch(arrays, rgba[..., 1], threads=threads)
    assert (rgba[..., 1] == want).all() and not rgba[..., [0, 2]].any()


def test_what_an_array_may_be(oracle):
    torch = pytest.importorskip("torch")
    plan = tilecore.TilePlan((2, 3), (1, 2), "float32")
    x = np.arange(6, dtype="float32").reshape(2, 3)
    items = [x, torch.from_numpy(x + 1), memoryview(x + 2), np.array((x + 3).tolist(), "f4")]
    want = np.array([oracle(x + k, (1, 2)) for k in range(4)])
    assert (plan.batch(items) == want).all()
    assert (plan.batch(torch.stack([torch.from_numpy(x + k) for k in range(4)])) == want).all()
    scalars = tilecore.TilePlan((), 2, "float64")
    assert scalars.batch([1.0, 2.0]).tolist() == [[1, 1], [2, 2]]
    rows = tilecore.TilePlan(2, 2, "float64")
    assert rows.batch([[1.0, 2.0], (3.0, 4.0)]).tolist() == [[1, 2, 1, 2], [3, 4, 3, 4]]


def test_out_that_shares_memory():
    plan, x = tilecore.TilePlan((2, 3), (2, 2), "f4"), np.zeros((2, 3), "f4")
    memory = np.zeros((4, 4, 6), "f4")
    with pytest.raises(ValueError, match=r"^TilePlan.batch: out must not share memory with arrays\[1\]"):
        plan.batch([x, memory[3, :2, :3], x], memory[1:])
    with pytest.raises(ValueError, match="out must not share memory with the input"):
        tilecore.TilePlan((4, 6), 1, "f4").batch(memory, memory)
    between = np.zeros((3, 4, 6, 2), "f4")
    plan.batch([between[0, :2, :3, 1]] * 3, between[..., 0])  # between its elements
    assert not memory.any()


def test_sizes():
    plan = tilecore.TilePlan((2**20,), (2**30,), "u1")
    x = np.zeros(2**20, "u1")
    with pytest.raises(MemoryError, match=f"^TilePlan.batch: the result would take {2**51} bytes"):
        plan.batch([x, x])
    with pytest.raises(ValueError, match="^TilePlan.batch: the result would have more than"):
        tilecore.TilePlan((2**20,), (2**42,), "u1").batch([x, x])
    deep = tilecore.TilePlan((1,) * 64, 1, "u1")
    with pytest.raises(ValueError, match="^TilePlan.batch: the result would have 65 axes"):
        deep.batch([np.zeros((1,) * 64, "u1")])
    assert plan.batch([], np.empty((0, 2**50), "u1")).shape == (0, 2**50)
    assert tilecore.TilePlan(3, 0, "f4").batch([np.zeros(3, "f4")] * 5).shape == (5, 0)


def test_size_limit_counts_the_whole_batch(settings_stay):
    plan = tilecore.TilePlan((1000,), 2, "u1")
    arrays = [np.zeros(1000, "u1")] * 3
    tilecore.set_max_bytes(5999)
    with pytest.raises(MemoryError, match="would take 6000 bytes"):
        plan.batch(arrays)
    assert plan.batch(arrays, np.empty((3, 2000), "u1")).shape == (3, 2000)


def test_lists_that_lie():
    class Endless(list):
        def __len__(self):
            return 10**9

        def __iter__(self):
            raise AssertionError("nobody should ask")

        __getitem__ = __iter__

    class Odd(tuple):
        __len__, __iter__, __getitem__ = Endless.__len__, Endless.__iter__, Endless.__iter__

    class Clearing:
        def __array__(self, dtype=None, copy=None):
            held.clear()
            return np.array([3, 4])

    plan = tilecore.TilePlan(2, 2, "i8")
    for kind in (Endless, Odd):
        assert plan.batch(kind([np.array([1, 2])])).tolist() == [[1, 2, 1, 2]]
    held = [np.array([1, 2]), Clearing()]
    assert plan.batch(held).tolist() == [[1, 2, 1, 2], [3, 4, 3, 4]] and held == []


# ---------------------------------------------------------------- references


@pytest.mark.whole_process
def test_references_are_counted():
    one, other = object(), object()
    plan = tilecore.TilePlan((2,), (3,), "O")
    arrays = [np.array([one, other], "O"), np.array([one, one], "O")]
    counts = sys.getrefcount(one), sys.getrefcount(other)
    result = plan.batch(arrays)
    assert (sys.getrefcount(one), sys.getrefcount(other)) == (counts[0] + 9, counts[1] + 3)
    plan.batch(arrays, result)
    assert (sys.getrefcount(one), sys.getrefcount(other)) == (counts[0] + 9, counts[1] + 3)
    del result
    gc.collect()
    assert (sys.getrefcount(one), sys.getrefcount(other)) == counts


# ---------------------------------------------------------------- signals and threads


def test_interrupted(monkeypatch, heard):
    """As in test_signals.py: a signal is pending when the writing begins, and nothing of Python's runs before."""
    monkeypatch.setattr(tilecore._core.write.whole, "get_num_threads", partial(int, 1))
    rows = [np.full(2**18, 1, "u1")] * 2400
    out = np.zeros((2400, 2**18), "u1")
    plan = tilecore.TilePlan(2**18, 1, "u1")
    for threads in (None, 2):
        with pytest.raises(KeyboardInterrupt):
            list(map(operator.call, [interrupt_main, partial(plan.batch, rows, out, threads=threads)]))
        assert not out[-1].any()


def test_other_threads_run_meanwhile():
    """Two threads that wait for each other in the midst of their calls would never end with the GIL held."""
    plan = tilecore.TilePlan((64, 64, 1), (1, 1, 3), "u1")
    images = [np.full((64, 64, 1), k, "u1") for k in range(256)]
    with ThreadPoolExecutor(3) as pool:
        for result in pool.map(plan.batch, [images] * 60):
            assert (result == np.arange(256, dtype="u1")[:, None, None, None]).all()
