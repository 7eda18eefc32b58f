"""Items that hold references: objects, counted exactly; strings of variable length; and memory that is bounded."""

import itertools
import sys
from functools import partial

import numpy as np
import pytest
from ways import BACKWARDS

import tilecore

pytestmark = pytest.mark.quick

Strings = np.dtypes.StringDType
T = Strings(na_object=None)
MANY = 3 << 20  # of references: several pieces
KINDS = [Strings(), Strings(coerce=False), *(Strings(na_object=missing) for missing in (None, np.nan, "missing"))]


def test_few_and_none():
    assert tilecore.tile(np.empty((0, 2), object), (3, 3)).shape == (0, 6)
    assert tilecore.tile(np.empty(2, [("o", "O")]), 2)["o"].tolist() == [None] * 4  # a null pointer is None
    x = np.broadcast_to(np.array([None, "a"], object), (2,) * 16)
    got = tilecore.tile_region(x, (2,) * 16, (1,) * 16, (3,) * 16)
    assert got.shape == (2,) * 16
    deep = np.array(["a", "b"], object).reshape((1,) * 63 + (2,))
    got_deep = tilecore.tile_region(deep, (4, *(1,) * 62, 3), (1, *(0,) * 62, 1), (3, *(1,) * 62, 4))
    assert got_deep.ravel().tolist() == ["b", "a", "b"] * 2
    assert (got[..., 0] == "a").all() and (got[..., 1] == None).all()  # noqa: E711


def counts(items):
    return [sys.getrefcount(item) for item in items]


@pytest.mark.whole_process
def test_large_regions(oracle):
    """Regions of several pieces, with a run that begins in the middle of the source."""
    items = [object() for _ in range(7)]
    x = np.array(items, object)
    before, got = counts(items), None
    for first in (3, 2):
        got = tilecore.tile_region(x, MANY, (first,), (first + MANY,), got)
        assert all((got[k::7] == items[(first + k) % 7]).all() for k in range(7))
    assert sum(counts(items)) == sum(before) + MANY
    del got
    assert counts(items) == before


@pytest.mark.parametrize("dtype", [
    {"names": ["a"], "formats": [T]}, [("a", {"names": ["n", "b"], "formats": ["O", (T, (2,))]}, (3,)), ("c", "i4")],
])  # fmt: skip
def test_strings_inside_structures(dtype, calls_of):
    """NumPy refuses most of them too ("not currently supported for structured dtype fields")."""
    try:
        dtype = np.dtype(dtype)
    except TypeError:
        pytest.skip("NumPy refuses this one from 2.5 on")
    x = np.zeros(3, dtype)
    (x["a"]["b"] if x["a"].dtype.names else x["a"])[...] = "longer than what lies in the item"
    for name, call in calls_of(x, 4).items():
        for out in (), (np.zeros(12, dtype),):
            assert str(call(*out).tolist()) == str(x.tolist() * 4), name


def test_strings_in_another_order_than_c():
    """A few along the last axis: the texts belong to the copy that is tiled."""
    x = np.array([f"a text that is no short one, {k}" for k in range(27)], Strings()).reshape(3, 9)[:, ::2]
    assert tilecore.tile(x, (2, 1)).tolist() == x.tolist() * 2


@pytest.mark.parametrize("n", [1, 2**14])
def test_texts_die_with_their_array(n):
    """Texts lie in memory of the dtype: that of a large result was the input's, and grew with each call."""
    x = np.array(["long enough to live in the arena"], Strings())
    results = [tilecore.tile(x, n), tilecore.TilePlan(1, n, x.dtype).tile(x), tilecore.tile_region(x, n, (0,), (n,))]
    assert len({id(array.dtype) for array in [x, *results]}) == 4


@pytest.mark.parametrize("pair", list(itertools.permutations(KINDS, 2)), ids=str)
def test_out_of_another_string_dtype(pair, calls_of):
    """NumPy would change missing values, or fail halfway."""
    x, out = np.array(["a", "b"], pair[0]), np.full(4, "old", pair[1])
    calls = {name: partial(call, out) for name, call in calls_of(x, 2).items()}
    calls["TilePlan.tile of"] = partial(tilecore.TilePlan((2,), 2, pair[0]).tile, out[:2])
    for name, call in calls.items():
        with pytest.raises(TypeError, match=f"^{name.partition(' ')[0]}: .*dtype StringDType"):
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


def test_parts_of_one_array_of_strings():
    """Source and result share the memory that long strings lie in, which moves as it grows."""
    both = np.full(4000, "", Strings())
    both[:1000] = [f"{k} is longer than what lies in the item itself" * 20 for k in range(1000)]
    tilecore.tile(both[:1000], 3, both[1000:])
    assert both.tolist() == both[:1000].tolist() * 4


@pytest.mark.parametrize("dtype", ["O", BACKWARDS, Strings()], ids=["O", "record", "T"])
def test_no_temporaries(dtype, traced):
    x = np.zeros(1000, dtype)
    if dtype == "O":
        x[:] = [object() for _ in range(1000)]
    out = np.zeros(200_000, x.dtype)
    region = partial(tilecore.tile_region, x, 10**6, (123,), (200_123,))
    made = region().nbytes
    for call, least in [(partial(tilecore.tile, x, 200, out), 0), (partial(region, out), 0), (region, made)]:
        traced.clear_traces()
        result = call()
        peak = traced.get_traced_memory()[1]
        assert least <= peak < least + 2**16
        del result
