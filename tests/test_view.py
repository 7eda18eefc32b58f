"""tile_view: no copy, where strides can express it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilecore

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("shape", "reps"),
    [
        *[((), ()), ((), (3,)), ((), (2, 0, 3)), ((5,), ()), ((5,), 1), ((5,), (4, 1)), ((1,), 7)],
        *[((2, 1, 3), (1, 5, 1)), ((2, 1, 3), (1, 1, 5, 1)), ((2, 3), (1, 0)), ((0, 3), (2, 4))],
        ((2, 3), (5, 0)),  # empty: that 2 rows are repeated does not show
        ((1,), (10**6, 10**6, 10**6)),
    ],
)
def test_values_and_layout(shape, reps, oracle):
    x = np.arange(np.prod(shape, dtype=int), dtype="i4").reshape(shape)
    y = tilecore.tile_view(x, reps)
    assert (y.shape, y.dtype) == (tilecore.output_shape(shape, reps), x.dtype)
    assert not y.flags.writeable
    assert np.may_share_memory(x, y) or not y.size
    assert np.array_equal(y, oracle(x, reps)) if y.size < 10**6 else y[5, 6, 7] == x[0]


def test_strides_of_any_input():
    x = np.arange(24).reshape(2, 3, 4)[::-1, 1:2, ::2]
    y = tilecore.tile_view(x, (1, 6, 1))
    assert y.strides == (x.strides[0], 0, x.strides[2])
    assert np.array_equal(y, np.broadcast_to(x, (2, 6, 2)))
    with pytest.raises(ValueError, match="read-only"):
        y[0, 0, 0] = 1
    x[0, 0, 0] = -9
    assert (y[0, :, 0] == -9).all()


@pytest.mark.parametrize(
    ("shape", "reps", "axis"), [((2,), 2, 0), ((1, 3), (2, 2), 1), ((3, 1), (2, 2), 0), ((4,), (2, 3), 1)]
)
def test_where_strides_cannot_say_it(shape, reps, axis):
    with pytest.raises(ValueError, match=rf"tile_view: axis {axis} has \d+ elements and is repeated"):
        tilecore.tile_view(np.zeros(shape), reps)


@pytest.mark.parametrize(
    ("a", "reps", "kind"),
    [
        *[([1], 1.5, TypeError), (np.ma.array([1], mask=[1]), 2, TypeError)],
        *[([1], reps, ValueError) for reps in (-1, (1,) * 65, (2**40, 2**40))],
    ],
)
def test_refused(a, reps, kind):
    with pytest.raises(kind, match="tile_view: "):
        tilecore.tile_view(a, reps)


@pytest.mark.whole_process
def test_nothing_is_allocated():
    limit = tilecore.get_max_bytes()
    tilecore.set_max_bytes(0)
    try:
        assert tilecore.tile_view(np.ones(1), 2**50).shape == (2**50,)
    finally:
        tilecore.set_max_bytes(limit)


@pytest.mark.parametrize("dtype", ["O", "S3", "T", [("a", "i4"), ("b", "O")]])
def test_any_dtype(dtype):
    x = np.zeros((3, 1), dtype)
    y = tilecore.tile_view(x, (1, 4))
    del x
    assert y.shape == (3, 4)
    assert np.array_equal(y, np.zeros((3, 4), dtype))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=4))
def test_as_the_rule_says(axes):
    shape, reps = [n for n, _ in axes], [r for _, r in axes]
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    possible = all(n == 1 or r <= 1 for n, r in axes) or any(n * r == 0 for n, r in axes)
    if possible:
        assert np.array_equal(tilecore.tile_view(x, reps), np.tile(x, reps))
    else:
        with pytest.raises(ValueError, match="which strides cannot express"):
            tilecore.tile_view(x, reps)
