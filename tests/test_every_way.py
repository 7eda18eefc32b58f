"""Every way to tile, into a new array and into any `out`, writes the bytes of index arithmetic, and no others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ways import PLAIN, REFERRING, WAYS, check, contents, laid_out, make_items, picked_from

import tilecore

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("way", WAYS)
@given(st.data())
def test_every_way(oracle, way, data):
    check(oracle, way, data.draw)


@given(st.lists(st.integers(0, 3), max_size=2), st.lists(st.tuples(*[st.integers(0, 3)] * 2), max_size=4), st.data())
def test_a_view_where_strides_can_express_it(oracle, outer, axes, data):
    shape, reps = [n for n, _ in axes], outer + [r for _, r in axes]
    x, _ = laid_out(data.draw, make_items(shape, data.draw(st.sampled_from(PLAIN + REFERRING))))
    several = [k for k, (n, r) in enumerate(axes, len(outer)) if n > 1 and r > 1]
    if not several or 0 in tilecore.output_shape(shape, reps):
        y = tilecore.tile_view(x, reps)
        assert (y.dtype, y.flags.writeable) == (x.dtype, False)
        assert contents(y) == contents(oracle(picked_from(x), reps))
        assert np.may_share_memory(x, y) or not y.size
    else:
        with pytest.raises(ValueError, match=f"^tile_view: axis {several[0]} has . elements and is repeated"):
            tilecore.tile_view(x, reps)
