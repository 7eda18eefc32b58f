"""tile_view: no copy, where strides can express it."""

import numpy as np
import pytest

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


def test_nothing_is_allocated(settings_stay):
    tilecore.set_max_bytes(0)
    assert tilecore.tile_view(np.ones(1), 2**50).shape == (2**50,)


@pytest.mark.parametrize("dtype", ["O", "S3", "T", [("a", "i4"), ("b", "O")]])
def test_any_dtype(dtype):
    x = np.zeros((3, 1), dtype)
    y = tilecore.tile_view(x, (1, 4))
    del x
    assert y.shape == (3, 4)
    assert np.array_equal(y, np.zeros((3, 4), dtype))
