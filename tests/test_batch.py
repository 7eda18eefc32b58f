"""TilePlan.batch: each array tiled as by itself, from a list or a stack, into any `out`."""

import gc
import math
import operator
import sys
from _thread import interrupt_main
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tilecore

pytestmark = pytest.mark.quick

DTYPES = [
    "?", "u1", "<i2", ">f4", "f8", "c16", "g", "M8[s]", "S3", "U2", "V5", ml_dtypes.bfloat16,
    [("a", "u1"), ("b", "f8")], "O", [("a", "u1"), ("b", "O")], np.dtypes.StringDType(),
]  # fmt: skip


def numbered(shape, dtype, first):
    """An array of numbers that differ from one item to the next; its dtype is an object of its own."""
    numbers = (np.arange(first, first + math.prod(shape)) % 90).reshape(shape)
    return numbers.astype("S5").astype("V5") if dtype == "V5" else numbers.astype(np.dtype(dtype))


def laid_out(x, layout):
    """The same values in another layout."""
    if layout == "F":
        return np.asfortranarray(x) if x.ndim else x
    if layout == "steps":
        wide = np.zeros([2 * n for n in x.shape], x.dtype)[(*(slice(None, None, 2),) * x.ndim, ...)]
        wide[...] = x
        return wide
    if layout == "backwards" and x.ndim:
        return x[::-1].copy()[::-1]
    return x


@st.composite
def batches(draw):
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    if draw(st.integers(0, 9)) == 0:
        shape = (*shape, 3000)
    reps = tuple(draw(st.lists(st.integers(0, 4), max_size=4)))
    dtype = draw(st.sampled_from(DTYPES))
    layouts = draw(st.lists(st.sampled_from(["C", "C", "F", "steps", "backwards"]), max_size=6))
    arrays = [laid_out(numbered(shape, dtype, 7 * k), layout) for k, layout in enumerate(layouts)]
    plan = tilecore.TilePlan(shape, reps, dtype)
    assume(len(arrays) * np.prod(plan.output_shape) <= 10**5)  # the tests make lists of all items
    return plan, arrays


def out_for(plan, n, draw):
    """An array for `n` results, within a larger one that must not change elsewhere."""
    output = (n, *plan.output_shape)
    order = draw(st.permutations(range(len(output))))
    steps = [draw(st.sampled_from([-2, -1, 1, 1, 1, 3])) for _ in output]
    whole = np.zeros([output[k] * abs(steps[k]) for k in order] + [2], plan.dtype)
    view = whole[..., 0].transpose(np.argsort(order))
    return whole, view[tuple(slice(None, None, step) for step in steps)]


@settings(max_examples=100)
@given(batches(), st.data())
def test_as_one_by_one(oracle, case, data):
    plan, arrays = case
    n = len(arrays)
    want = [oracle(x, plan.reps).tolist() for x in arrays]
    stack = np.empty((n, *plan.input_shape), plan.dtype)
    for k in range(n):
        stack[k] = arrays[k]
    order = data.draw(st.permutations(range(stack.ndim)))
    stack = stack.transpose(order).copy().transpose(np.argsort(order))  # any order of axes
    for given_as in (arrays, tuple(arrays), stack):
        got = plan.batch(given_as)
        assert got.shape == (n, *plan.output_shape)
        assert got.dtype == plan.dtype and got.flags.c_contiguous and got.flags.writeable
        assert got.tolist() == want
        whole, view = out_for(plan, n, data.draw)
        before = whole.tolist()
        assert plan.batch(given_as, view) is view
        assert view.tolist() == want
        view[...] = np.zeros((), plan.dtype)
        assert whole.tolist() == before  # nothing else was written


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype(oracle, dtype):
    plan = tilecore.TilePlan((3, 4), (2, 1, 3), dtype)
    arrays = [numbered((3, 4), dtype, k) for k in range(5)]
    want = [oracle(x, plan.reps).tolist() for x in arrays]
    assert plan.batch(arrays).tolist() == plan.batch(np.array(arrays, dtype)).tolist() == want


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


X = np.zeros((2, 3), "f4")


@pytest.mark.parametrize(
    ("arrays", "kind", "words"),
    [
        ([X, X, X[0]], ValueError, r"arrays\[2\] must have shape \(2, 3\), got \(3,\)"),
        ([X, X.T], ValueError, r"arrays\[1\] must have shape \(2, 3\), got \(3, 2\)"),
        ((X, X.astype("f8")), TypeError, r"arrays\[1\] must have dtype float32, got float64"),
        ([X, np.ma.zeros((2, 3), "f4")], TypeError, r"arrays\[1\] must be a plain array, got Mask"),
        ([X, [[1], [2, 3]]], ValueError, r"arrays\[1\] of type list cannot be read as an array"),
        (X, ValueError, r"arrays must have shape \(n, 2, 3\), got \(2, 3\)"),
        (np.zeros((4, 3, 2), "f4"), ValueError, r"shape \(n, 2, 3\), got \(4, 3, 2\)"),
        (np.zeros((4, 2, 3)), TypeError, "arrays must have dtype float32, got float64"),
        (iter([X]), TypeError, "arrays must be a list or a tuple of arrays, .* got list_iterator"),
        ((x for x in [X]), TypeError, "must be a list or a tuple of arrays, .* got generator"),
        ({1: X}, TypeError, "must be a list or a tuple of arrays, .* got dict"),
        (None, TypeError, "must be a list or a tuple of arrays, .* got NoneType"),
    ],
)
def test_refused(arrays, kind, words):
    plan = tilecore.TilePlan((2, 3), (2, 2), "f4")
    out = np.full((len(arrays) if hasattr(arrays, "__len__") else 1, 4, 6), 9, "f4")
    for into in (None, out):
        with pytest.raises(kind, match=f"^TilePlan.batch: .*{words}"):
            plan.batch(arrays, into)
    assert (out == 9).all()


def test_out_refused():
    plan = tilecore.TilePlan((2, 3), (2, 2), "f4")
    memory = np.zeros((4, 4, 6), "f4")
    inside = memory[3, :2, :3]
    for out, kind, words in [
        (memory[:2], ValueError, r"out must have shape \(3, 4, 6\), got \(2, 4, 6\)"),
        (np.zeros((3, 4, 6)), TypeError, "out must have dtype float32, got float64"),
        (np.broadcast_to(memory[0], (3, 4, 6)), ValueError, "out must be writeable"),
        (memory[1:], ValueError, r"out must not share memory with arrays\[1\]"),
        (memory[1:].tolist(), TypeError, "out must be a NumPy array, got list"),
    ]:
        with pytest.raises(kind, match=f"^TilePlan.batch: {words}"):
            plan.batch([X, inside, X], out)
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
    monkeypatch.setattr(tilecore._core.write.plans, "get_num_threads", partial(int, 1))
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
