"""Numbers stay what they are: every bit of every half, of NaNs, zeros and padding, in both orders."""

import numpy as np
import pytest

import tilecore

pytestmark = pytest.mark.quick


def raw(bits, dtype):
    """Items of these bits, never touched by arithmetic, which would quiet a signalling NaN."""
    return np.frombuffer(np.asarray(bits).tobytes(), dtype)


def every_way(a, oracle):
    """Tiled by few, many and strided rows, whole and in part: the same bytes."""
    plain = a.view(f"V{a.itemsize}")
    backwards, plain_backwards = a[::-1], plain[::-1]
    for reps in [(2,), (3, 1), (1, 7)]:
        want = oracle(plain, reps).tobytes()
        assert tilecore.tile(a, reps).tobytes() == want
        assert tilecore.TilePlan(a.shape, reps, a.dtype).tile(a).tobytes() == want
        assert tilecore.tile(backwards, reps).tobytes() == oracle(plain_backwards, reps).tobytes()
    part = tilecore.tile_region(a, (5,), (1,), (2 * a.size + 1,))
    assert part.tobytes() == oracle(plain, (5,))[1 : 2 * a.size + 1].tobytes()
    rows = oracle(plain.reshape(-1, 1), (1, 3))
    assert tilecore.tile(a.reshape(-1, 1), (1, 3)).tobytes() == rows.tobytes()


@pytest.mark.parametrize("order", "<>")
def test_all_halves(oracle, order):
    every_way(raw(np.arange(2**16, dtype="u2"), f"{order}f2"), oracle)


FLOATS = {  # sign, exponent and fraction of: zeros, infinities, quiet and signalling NaNs, subnormals
    "f4": [0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00001, 0x7F800001, 0xFFBFFFFF, 1, 0x80000001],
    "f8": [0, 1 << 63, *(n << 52 for n in (0x7FF, 0xFFF)), 0x7FF8 << 48 | 7, 0x7FF << 52 | 1, 0xFFF7 << 48 | 9]
    + [1, 1 << 63 | 1],
}


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values(oracle, dtype, order):
    bits = np.array(FLOATS[dtype], f"{order}u{dtype[1]}")
    a = raw(bits, order + dtype)
    assert np.isnan(a).sum() == 3 and np.signbit(a[1]) and a[1] == 0
    every_way(a, oracle)
    every_way(raw(np.stack([bits, bits[::-1]], 1), f"{order}c{2 * a.itemsize}"), oracle)


@pytest.mark.parametrize("dtype", ["g", "G", np.dtype([("a", "u1"), ("b", "f8")], align=True), "?"])
def test_bytes_that_mean_nothing(oracle, dtype):
    """Padding of long doubles and structures, and booleans that are neither 0 nor 1."""
    dtype = np.dtype(dtype)
    a = raw(np.random.default_rng(1).integers(0, 256, 37 * dtype.itemsize, np.uint8), dtype)
    every_way(a, oracle)
