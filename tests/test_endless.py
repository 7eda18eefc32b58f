"""tile_region without reps: windows of the plane that the input tiles in all directions."""

import math

import numpy as np
import pytest

import tilecore

pytestmark = pytest.mark.quick

LEAST, MOST = -(2**63), 2**63 - 1


def numbered(shape, dtype):
    return np.arange(math.prod(shape)).reshape(shape).astype(dtype)


def window(x, start, stop):
    """Index arithmetic in Python's integers, which never overflow."""
    index = [np.array([i % n for i in range(lo, hi)], "i8") for n, lo, hi in zip(x.shape, start, stop, strict=True)]
    return x[np.ix_(*index)] if x.ndim else x.copy()


@pytest.mark.parametrize("threads", [1, 3])
def test_large(threads):
    start, stop = (-1000, -1), (2000, 2701)
    for x in (numbered((700, 900), "u4"), numbered((3, 70), "O")):
        got = tilecore.tile_region(x, None, start, stop, threads=threads)
        assert (got == window(x, start, stop)).all()


@pytest.mark.parametrize("nbytes", [1, 16, 17, 33, 64, 65, 100, 127, 128])
def test_a_single_row(nbytes):
    """Each row of the region comes from the same one of the input: a step of 0 between them."""
    x = numbered((1, nbytes), "u1")
    for start, stop in [((-10, -20), (12, nbytes + 30)), ((0, 0), (20, nbytes))]:
        assert (tilecore.tile_region(x, None, start, stop) == window(x, start, stop)).all()
    out = np.zeros((20, nbytes + 3), "u1")[:, :nbytes]
    assert (tilecore.tile(x, (20, 1), out) == x).all()


def test_many_axes_of_few_elements():
    """So many pieces that a table of offsets takes their place."""
    x = numbered((2,) * 16, "u2")
    start, stop = (-1,) * 16, (1,) * 16
    assert (tilecore.tile_region(x, None, start, stop) == x[(slice(None, None, -1),) * 16]).all()


def test_far_apart_in_a_broadcast_input():
    """Indices near the largest extent there is; nothing overflows on the way."""
    x = np.broadcast_to(np.array(7, "u1"), MOST)
    assert tilecore.tile_region(x, None, (-2,), (3,)).tolist() == [7] * 5
    words = np.broadcast_to(np.array("w", "O"), 2**60 - 1)
    assert tilecore.tile_region(words, None, (-2,), (3,)).tolist() == ["w"] * 5


def test_empty():
    assert tilecore.tile_region(np.zeros((0, 3)), None, (4, -2), (4, 5)).shape == (0, 7)
    assert tilecore.tile_region(np.zeros((2, 3)), None, (1, -2), (1, 5)).shape == (0, 7)
    assert tilecore.tile_region(np.zeros(3, "V0"), None, (-2,), (5,)).shape == (7,)


def test_an_empty_axis():
    with pytest.raises(
        ValueError, match="^tile_region: axis 1 of the input is empty, but the region has 2 elements along"
    ):
        tilecore.tile_region(np.zeros((2, 0)), None, (0, -1), (0, 1))
