"""tile_view: no copy, where strides can express it."""

import numpy as np
import pytest

import tilecore

pytestmark = pytest.mark.quick


def test_strides_of_any_input():
    x = np.arange(24).reshape(2, 3, 4)[::-1, 1:2, ::2]
    y = tilecore.tile_view(x, (1, 6, 1))
    assert y.strides == (x.strides[0], 0, x.strides[2])
    assert tilecore.tile_view(np.ones((3, 1)), 5, axis=-1).strides == (8, 0)
    with pytest.raises(ValueError, match="read-only"):
        y[0, 0, 0] = 1
    x[0, 0, 0] = -9
    assert (y[0, :, 0] == -9).all()


def test_nothing_is_allocated(settings_stay):
    tilecore.set_max_bytes(0)
    assert tilecore.tile_view(np.ones(1), 2**50).shape == (2**50,)
