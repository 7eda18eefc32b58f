"""StringDType: values, of any strides; what is another such dtype; and the memory that the texts take."""

import itertools

import numpy as np
import pytest

import tilecore

pytestmark = pytest.mark.quick

Strings = np.dtypes.StringDType
KINDS = [Strings(), Strings(coerce=False), *(Strings(na_object=missing) for missing in (None, np.nan, "missing"))]


@pytest.mark.parametrize("reps", [3, (2, 3), (2, 1, 2), (1, 1), 0])
def test_stringdtype(reps, oracle):
    dtype = Strings(na_object=None)
    x = np.array([["a", None], ["long enough to live in the arena" * 3, ""]], dtype)
    for source in (x, x[::-1], x.T):
        got = tilecore.tile(source, reps)
        # As objects: NumPy before 2.2 loses strings in numpy.tile.
        want = oracle(np.array(source.tolist(), object), reps)
        assert got.dtype == dtype and got.shape == want.shape
        assert got.tolist() == want.tolist()
    del x, source
    assert got.tolist() == want.tolist()


@pytest.mark.parametrize("pair", list(itertools.permutations(KINDS, 2)), ids=str)
def test_out_of_another_string_dtype(pair):
    """NumPy would make another value of a missing one, or refuse it in the midst."""
    x, out = np.array(["a", "b"], pair[0]), np.full(4, "old", pair[1])
    plan = tilecore.TilePlan((2,), 2, pair[0])
    for call in (
        lambda: tilecore.tile(x, 2, out),
        lambda: tilecore.tile_region(x, 9, (1,), (5,), out),
        lambda: plan.tile(x, out),
        lambda: plan.tile(out[:2]),
    ):
        with pytest.raises(TypeError, match=r"^(tile|tile_region|TilePlan.tile): .*dtype StringDType"):
            call()
    assert out.tolist() == ["old"] * 4


def test_equal_string_dtypes():
    one, other = (Strings(na_object=float("nan")) for _ in range(2))
    assert one is not other and one == other
    x = np.array(["a", float("nan")], one)
    out = np.full(4, "old", other)
    assert tilecore.tile(x, 2, out).tolist()[::2] == ["a", "a"]
    assert [type(item) for item in out.tolist()[1::2]] == [float, float]
    plans = [tilecore.TilePlan(2, 2, dtype) for dtype in (one, other)]
    assert plans[0] == plans[1] and hash(plans[0]) == hash(plans[1])
    assert len({*plans}) == 1


@pytest.mark.parametrize("na_object", [{}, {"na_object": None}])
def test_out_of_strings_of_any_strides(na_object):
    """What was there goes, and what lies between stays; both ways, for of two locks one is taken first."""
    one = np.array([f"{k} " * (k % 40) for k in range(24)], Strings(**na_object)).reshape(2, 3, 4)
    if na_object:
        one[1, :, 2] = None
    other = np.full((6, 4, 8), "what was there, and is long", Strings(**na_object))
    out = other[::-1, ::2, 1::2].transpose(1, 2, 0)  # (2, 4, 6)
    tilecore.tile(one.transpose(0, 2, 1), (1, 1, 2), out)
    assert out.tolist() == [[[one[i, k % 3, j % 4] for k in range(6)] for j in range(4)] for i in range(2)]
    other[::-1, ::2, 1::2] = "what was there, and is long"
    assert (other == "what was there, and is long").all()
    tilecore.tile(other[:2, :3, ::2], 1, one[::-1])
    assert (one == "what was there, and is long").all()
    tilecore.tile_region(other, (9, 9, 9), (5, 3, 7), (7, 6, 11), one)
    assert (one == "what was there, and is long").all()


def test_parts_of_one_array_of_strings():
    """Source and result share the memory that long strings lie in, which moves as it grows."""
    both = np.full(4000, "", Strings())
    both[:1000] = [f"{k} is longer than what lies in the item itself" for k in range(1000)]
    tilecore.tile(both[:1000], 3, both[1000:])
    assert both.tolist() == both[:1000].tolist() * 4


@pytest.mark.whole_process
def test_the_limit_counts_what_strings_take():
    """An item says nothing of the text that it stands for."""
    x = np.array(["x" * 10_000, None], np.dtypes.StringDType(na_object=None))
    before = tilecore.get_max_bytes()
    tilecore.set_max_bytes(1 << 20)
    try:
        assert tilecore.tile(x, 100)[198] == x[0]
        for call in (
            lambda: tilecore.tile(x, 1000),
            lambda: tilecore.tile_region(x, 10**6, 0, 2000),
            lambda: tilecore.tile(x.view(type("Sub", (np.ndarray,), {})), 1000),
            lambda: tilecore.TilePlan(2, 1, x.dtype).batch([x] * 1000),
        ):
            with pytest.raises(MemoryError, match="the strings of the result would take more than"):
                call()
        out = np.empty(2000, x.dtype)
        assert tilecore.tile(x, 1000, out)[1998] == x[0]  # the caller's is not limited
    finally:
        tilecore.set_max_bytes(before)
