"""TilePlan.batch: each array tiled as by itself, from a list or a stack, into any `out`."""

import gc
import operator
import sys
import threading
from functools import partial

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import tilecore

pytestmark = pytest.mark.quick

DTYPES = [
    "?", "u1", "<i2", ">f4", "f8", "c16", "g", "M8[s]", "S3", "U2", "V5", ml_dtypes.bfloat16,
    [("a", "u1"), ("b", "f8")], "O", [("a", "u1"), ("b", "O")], np.dtypes.StringDType(),
]  # fmt: skip


def numbered(shape, dtype, first):
    """An array whose items differ."""
    dtype = np.dtype(dtype)
    n = int(np.prod(shape))
    x = np.empty(n, dtype)
    numbers = np.arange(first, first + n)
    if dtype.names:
        for name in dtype.names:
            x[name] = numbers % 256
    else:
        x[:] = (numbers % 90).astype("u1").astype("S5" if dtype == "V5" else dtype)
    return x.reshape(shape)


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
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
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
@example((tilecore.TilePlan((), (), "f4"), []), None)
def test_as_one_by_one(oracle, case, data):
    plan, arrays = case
    want = [oracle(x, plan.reps).tolist() for x in arrays]
    for given_as in (list, tuple):
        got = plan.batch(given_as(arrays))
        assert got.shape == (len(arrays), *plan.output_shape)
        assert got.dtype == plan.dtype and got.flags.c_contiguous and got.flags.writeable
        assert got.tolist() == want
    if data is None:
        return
    whole, view = out_for(plan, len(arrays), data.draw)
    before = whole.tolist()
    assert plan.batch(arrays, view) is view
    assert view.tolist() == want
    view[...] = np.zeros((), plan.dtype)
    assert whole.tolist() == before  # nothing else was written


@settings(max_examples=100)
@given(batches(), st.data())
def test_a_stack(oracle, case, data):
    plan, arrays = case
    n = len(arrays)
    stack = np.empty((n, *plan.input_shape), plan.dtype)
    for k in range(n):
        stack[k] = arrays[k]
    order = data.draw(st.permutations(range(stack.ndim)))
    stack = stack.transpose(order).copy().transpose(np.argsort(order))  # any order of axes
    want = [oracle(x, plan.reps).tolist() for x in arrays]
    assert plan.batch(stack).tolist() == want
    _, view = out_for(plan, n, data.draw)
    assert plan.batch(stack, view) is view
    assert view.tolist() == want


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype(oracle, dtype):
    plan = tilecore.TilePlan((3, 4), (2, 1, 3), dtype)
    arrays = [numbered((3, 4), dtype, k) for k in range(5)]
    want = [oracle(x, plan.reps).tolist() for x in arrays]
    out = np.empty((5, *plan.output_shape), dtype)
    assert plan.batch(arrays).tolist() == plan.batch(arrays, out).tolist() == want
    assert plan.batch(np.array(arrays, dtype)).tolist() == want


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


def test_equal_dtypes_that_are_not_the_same_object(oracle):
    plan = tilecore.TilePlan(2, 2, [("a", "u1"), ("b", "f8")])
    arrays = [np.zeros(2, np.dtype([("a", "u1"), ("b", "f8")])) for _ in range(3)]
    arrays[1]["a"] = 7
    assert plan.batch(arrays)["a"].tolist() == [[0] * 4, [7] * 4, [0] * 4]


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


@pytest.mark.whole_process
def test_size_limit_counts_the_whole_batch():
    plan = tilecore.TilePlan((1000,), 2, "u1")
    arrays = [np.zeros(1000, "u1")] * 3
    before = tilecore.get_max_bytes()
    tilecore.set_max_bytes(5999)
    try:
        with pytest.raises(MemoryError, match="would take 6000 bytes"):
            plan.batch(arrays)
        assert plan.batch(arrays, np.empty((3, 2000), "u1")).shape == (3, 2000)
    finally:
        tilecore.set_max_bytes(before)


# ---------------------------------------------------------------- items with a will of their own


class Changing:
    """An array-like that does something when it is read."""

    def __init__(self, array, change):
        self.array, self.change = array, change

    def __array__(self, dtype=None, copy=None):
        self.change()
        return self.array


@pytest.mark.filterwarnings("ignore:Setting the .* on a NumPy array:DeprecationWarning")
def test_arrays_that_change_while_others_are_read():
    plan = tilecore.TilePlan((2, 3), (2, 2), "f4")
    good = np.zeros((2, 3), "f4")
    for change in (
        lambda a: setattr(a, "shape", (3, 2)),
        lambda a: setattr(a, "dtype", "u1"),
        lambda a: setattr(a, "dtype", "i4"),
        lambda a: a.resize((1, 1), refcheck=False),
    ):
        first = np.ones((2, 3), "f4")
        with pytest.raises(ValueError, match=r"^TilePlan.batch: arrays\[0\] must have shape"):
            plan.batch([first, Changing(good, partial(change, first))])
    held = [np.ones((2, 3), "f4"), None]
    held[1] = Changing(good, held.clear)  # the list itself
    assert plan.batch(held).sum() == 24 and held == []
    first = np.ones((2, 3), "f4")
    again = [first, Changing(good, lambda: first.resize(0, refcheck=False))]
    with pytest.raises(ValueError, match=r"arrays\[0\] must have shape"):
        plan.batch(again, np.empty((2, 4, 6), "f4"))


def test_own_exceptions():
    class Own(Exception):
        pass

    def fail():
        raise Own("mine")

    with pytest.raises(Own, match="mine"):
        tilecore.TilePlan(2, 2, "f4").batch([np.zeros(2, "f4"), Changing(None, fail)])


def test_lists_that_lie():
    class Endless(list):
        def __len__(self):
            return 10**9

        def __iter__(self):
            raise AssertionError("nobody should ask")

        __getitem__ = __iter__

    class Odd(tuple):
        __len__, __iter__, __getitem__ = Endless.__len__, Endless.__iter__, Endless.__iter__

    plan = tilecore.TilePlan(2, 2, "i8")
    for kind in (Endless, Odd):
        assert plan.batch(kind([np.array([1, 2])])).tolist() == [[1, 2, 1, 2]]


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


@pytest.mark.parametrize("what", ["arrays", "out"])
def test_resized_in_the_midst(what):
    """Code that runs as an old object dies reaches arrays that are yet to be read."""
    plan = tilecore.TilePlan((2,), (2,), "O")
    arrays = [np.array([k, k], "O") for k in range(3)]
    out = np.full((3, 4), None)

    class Last:
        def __del__(self):
            if what == "arrays":
                arrays[2].resize(10_000, refcheck=False)
            else:
                out.resize((3000, 4), refcheck=False)

    out[0, 0] = Last()
    name = r"arrays\[2\]" if what == "arrays" else "out"
    with pytest.raises(ValueError, match=f"^TilePlan.batch: {name} was given other memory"):
        plan.batch(list(arrays), out)
    assert all(isinstance(item, int | None) for item in out.ravel())


# ---------------------------------------------------------------- signals and threads


def test_interrupted(monkeypatch):
    """As in test_signals.py: a signal is pending when the writing begins, and nothing of Python's runs before."""
    from _thread import interrupt_main
    from collections import deque
    from signal import SIGINT, default_int_handler, signal

    monkeypatch.setattr(tilecore._core.write.plans, "get_num_threads", partial(int, 1))
    before = signal(SIGINT, default_int_handler)
    rows = [np.full(2**18, 1, "u1")] * 2400
    out = np.zeros((2400, 2**18), "u1")
    plan = tilecore.TilePlan(2**18, 1, "u1")
    try:
        for threads in (None, 2):
            with pytest.raises(KeyboardInterrupt):
                call = partial(plan.batch, rows, out, threads=threads)
                deque(map(operator.call, [interrupt_main, call]), maxlen=1)
            assert not out[-1].any()
    finally:
        signal(SIGINT, before)


def test_other_threads_run_meanwhile():
    """Two threads that wait for each other in the midst of their calls would never end with the GIL held."""
    plan = tilecore.TilePlan((64, 64, 1), (1, 1, 3), "u1")
    images = [np.full((64, 64, 1), k, "u1") for k in range(256)]
    results = {}

    def work(name):
        for _ in range(20):
            results[name] = plan.batch(images)

    workers = [threading.Thread(target=work, args=(name,)) for name in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for result in results.values():
        assert (result == np.arange(256, dtype="u1")[:, None, None, None]).all()
