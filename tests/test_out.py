"""Any `out` whose elements share no byte, with each other or with the input."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import tilecore

pytestmark = pytest.mark.quick


# Elements of two bytes. Steps that are no multiples of each other may still never meet.
@pytest.mark.parametrize(
    ("meets", "shape", "strides"),
    [
        *[(True, (3, 4), strides) for strides in ((2, 2), (0, 2), (1, 6))],
        *[(True, (2, 2), (3, 2)), (True, (4, 2), (4, 12)), (False, (1, 4), (0, 2)), (False, (4, 1), (2, 0))],
        *[(False, (2, 2), (6, 4)), (False, (3, 2), (4, 6)), (False, (2, 3), (10, 4)), (False, (2, 4), (10, 4))],
        (False, (2, 2), (-6, 4)),
    ],
)
def test_elements_that_share_a_byte(shape, strides, meets):
    memory = np.zeros(100, "u1")
    out = as_strided(memory[50:].view("u2")[:1], shape, strides)
    seen = [int(np.dot(index, strides)) + byte for index in np.ndindex(shape) for byte in (0, 1)]
    assert meets == (len(set(seen)) < len(seen))  # the table is right
    x = np.arange(np.prod(shape), dtype="u2").reshape(shape)
    if meets:
        with pytest.raises(ValueError, match="^tile: out must not have overlapping elements"):
            tilecore.tile(x, 1, out)
        assert not memory.any()
    else:
        tilecore.tile(x, 1, out)
        assert (out == x).all()


def test_an_out_between_the_elements_of_the_input(ways):
    x, odd = np.arange(12).reshape(6, 2).T
    for call in ways(x, 1).values():
        odd.fill(0)
        assert call(odd).tolist() == x.tolist() == [0, 2, 4, 6, 8, 10]


def test_an_out_that_overlaps_the_input():
    memory = np.arange(48)
    out = memory[2:26].reshape(4, 6)
    for part in (slice(25, 31), slice(0, 48, 8), slice(31, 19, -2), slice(6)):  # after its begin, and before it
        a = memory[part].reshape(2, 3)
        with pytest.raises(ValueError, match="must not share memory with the input"):
            tilecore.tile(a, (2, 2), out)
    assert (memory == np.arange(48)).all()
    after = memory[26:32].reshape(2, 3)
    assert (tilecore.tile(after, (2, 2), out)[:2, :3] == after).all()
