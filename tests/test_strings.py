"""StringDType: values, of any strides; what is another such dtype; and whose memory the texts take."""

import itertools
from functools import partial

import numpy as np
import pytest

import tilecore

pytestmark = pytest.mark.quick

Strings = np.dtypes.StringDType
KINDS = [Strings(), Strings(coerce=False), *(Strings(na_object=missing) for missing in (None, np.nan, "missing"))]


def test_the_result_outlives_the_input():
    x = np.array([["a", None], ["long enough to live in the arena" * 3, ""]], Strings(na_object=None))
    want, got = x.tolist() * 2, tilecore.tile(x, (2, 1))
    del x
    assert got.tolist() == want


@pytest.mark.parametrize("n", [1, 2**14])
def test_texts_die_with_their_array(n):
    """Texts lie in memory of the dtype: that of a large result was the input's, and grew with each call."""
    x = np.array(["long enough to live in the arena"], Strings())
    results = [tilecore.tile(x, n), tilecore.TilePlan(1, n, x.dtype).tile(x), tilecore.tile_region(x, n, (0,), (n,))]
    assert len({id(array.dtype) for array in [x, *results]}) == 4


@pytest.mark.parametrize("pair", list(itertools.permutations(KINDS, 2)), ids=str)
def test_out_of_another_string_dtype(pair, ways):
    """NumPy would make another value of a missing one, or refuse it in the midst."""
    x, out = np.array(["a", "b"], pair[0]), np.full(4, "old", pair[1])
    calls = {name: partial(call, out) for name, call in ways(x, 2).items() if name != "tile_mapped"}
    for name, call in (
        calls | {"TilePlan.tile of": partial(tilecore.TilePlan((2,), 2, pair[0]).tile, out[:2])}
    ).items():
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
