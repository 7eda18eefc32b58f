"""TilePlan.batch: many arrays, what each may be, and what is refused."""

import numpy as np
import pytest

import tilecore

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("order", ["steps", "backwards", "last axis first"])
@pytest.mark.parametrize("threads", [None, 1, 3])
def test_many_arrays(oracle, order, threads):
    """Threads share whole arrays; one of them has other loops. Nothing between the tilings in an `out` is written."""
    arrays = [np.full((512, 2), k, "i4") + np.arange(2, dtype="i4") for k in range(1500)]
    arrays[1] = np.asfortranarray(arrays[1])
    plan, want = tilecore.TilePlan((512, 2), (1, 2), "i4"), np.array([oracle(x, (1, 2)) for x in arrays])
    room = np.zeros((3000, 512, 4), "i4", order="F" if order == "last axis first" else "C")
    out = room[::-2] if order == "backwards" else room[::2]
    for got in (plan.batch(arrays, threads=threads), plan.batch(arrays, out, threads=threads)):
        assert (got == want).all()
    assert got is out and not room[0 if order == "backwards" else 1 :: 2].any()


def test_arrays_of_every_kind():
    x = np.arange(6.0).reshape(3, 2)
    rows, scalars = tilecore.TilePlan(2, 2, "float64"), tilecore.TilePlan((), 2, "float64")
    for arrays in ([x[0], (2.0, 3.0), memoryview(x[2])], memoryview(x)):
        assert rows.batch(arrays).tolist() == [[0, 1] * 2, [2, 3] * 2, [4, 5] * 2]
    assert scalars.batch([1.0, 2.0]).tolist() == [[1, 1], [2, 2]]


def test_nothing_is_written_before_all_is_checked(while_threads_are_asked):
    x, out = np.ones(2**20, "u1"), np.zeros((3, 2**23), "u1")  # large enough for several threads
    plan, changing = tilecore.TilePlan(2**20, 8, "u1"), x.copy()
    for last, words in (
        (x[1:], r"arrays\[2\] must have shape"),
        (x.view("i1"), r"arrays\[2\] must have dtype"),
        (out[2, -(2**20) :], r"out must not share memory with arrays\[2\]"),
        (changing, r"arrays\[2\] must have shape"),
        (x, "out must have shape"),
    ):
        if last is changing or last is x:
            array, shape = (changing, (2, -1)) if last is changing else (out, (-1, 2**22))
            while_threads_are_asked(lambda array=array, shape=shape: setattr(array, "shape", shape))
        with pytest.raises((TypeError, ValueError), match=f"^TilePlan.batch: {words}"):
            plan.batch([x, x, last], out)
        assert not out.any()


def test_what_is_wrong_first():
    """The arrays in turn, then the dtype of `out`, the shape of a stack, sizes, the shape of `out`."""
    x, large = np.zeros(3, "f4"), tilecore.TilePlan(3, 2**59, "f4")
    for call, words in (
        (lambda: large.batch([x[1:], x.view("i4")], "out"), r"arrays\[0\] must have shape"),
        (lambda: large.batch([x, x], np.zeros(3, "i4")), "out must have dtype"),
        (lambda: large.batch(np.zeros((2, 2), "f4"), np.zeros(3, "i4")), "out must have dtype"),
        (lambda: large.batch(np.zeros((2, 2), "f4"), x), r"arrays must have shape \(n, 3\), got \(2, 2\)"),
        (lambda: large.batch([x, x], x), "the result would have more than"),
        (lambda: large.batch(np.zeros((2, 3), "f4"), x), "the result would have more than"),
    ):
        with pytest.raises((TypeError, ValueError), match=f"^TilePlan.batch: {words}"):
            call()


def test_a_stack_that_is_read_anew_while_dtypes_are_compared():
    """A field's title does that: then the stack has more arrays of the plan's shape, with narrower items."""

    class Title:
        def __hash__(self):
            return 1

        def __eq__(self, other):
            stack.dtype, stack.shape = "u1", (-1, 3)
            return True

    one, other = (np.dtype([((Title(), "a"), "f4")]) for _ in range(2))
    stack = np.zeros((4, 3), other)
    with pytest.raises((TypeError, ValueError), match="^TilePlan.batch: arrays must have "):
        tilecore.TilePlan(3, 2, one).batch(stack)


def test_sizes_are_checked():
    plan = tilecore.TilePlan((2**20,), (2**30,), "u1")
    x = np.zeros(2**20, "u1")
    asked = r"input shape \(1048576,\), dtype uint8, reps \(1073741824,\)$"
    with pytest.raises(MemoryError, match=f"^TilePlan.batch: the result would take {2**51} bytes.*; {asked}"):
        plan.batch([x, x])
    deep = tilecore.TilePlan((1,) * 64, 1, "u1")
    with pytest.raises(ValueError, match="^TilePlan.batch: the result would have 65 axes"):
        deep.batch([np.zeros((1,) * 64, "u1")])
    assert plan.batch([], np.empty((0, 2**50), "u1")).shape == (0, 2**50)
    assert tilecore.TilePlan(3, 0, "f4").batch([np.zeros(3, "f4")] * 5).shape == (5, 0)


def test_a_list_that_changes_while_it_is_read():
    class Clearing:
        def __array__(self, dtype=None, copy=None):
            held.clear()
            return np.array([3, 4])

    held = [np.array([1, 2]), Clearing()]
    assert tilecore.TilePlan(2, 2, "i8").batch(held).tolist() == [[1, 2, 1, 2], [3, 4, 3, 4]] and held == []
