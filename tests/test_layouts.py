"""Inputs and outputs of every layout: transposed, reversed, strided, interleaved; by index arithmetic."""

import sys

import numpy as np
import pytest
from test_every_way import items

import tilecore

pytestmark = pytest.mark.quick

TYPES = ["u1", "i2", "f4", "f8", "c16", "S3"]


def same(got, want):
    """By bytes: floats may be NaN."""
    return got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes()


LAYOUTS = {
    "transposed": lambda t: items((70, 133), t).T,
    "transposed, power of two": lambda t: items((64, 1024), t)[:, :70].T,
    "transposed and reversed": lambda t: items((70, 133), t)[::-1, ::-1].T,
    "every 7th, backward": lambda t: items((9000,), t)[::-7],
    "channels first": lambda t: items((50, 31, 3), t).transpose(2, 0, 1),
    "channels last": lambda t: items((3, 50, 31), t).transpose(1, 2, 0),
    "channels last, large": lambda t: items((3, 200, 180), t).transpose(1, 2, 0)[::-1],
    "few planes": lambda t: items((50, 31, 3), t).T,
    "few planes, reversed": lambda t: items((50, 31, 3), t)[::-1, ::-1, ::-1].T,
    "planes of two": lambda t: items((2, 1500), t)[::-1].T,
    "colours reversed": lambda t: items((50, 31, 3), t)[..., ::-1],
    "five axes": lambda t: items((16, 1, 5, 24, 4), t).T,
    "heads": lambda t: items((40, 5, 16), t).transpose(1, 0, 2),
    "a few colours of each, transposed": lambda t: items((6, 50, 31), t).transpose(2, 1, 0)[:, ::-1],
    "every 2nd of a few": lambda t: items((90, 58, 10), t)[..., ::2],
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_of_the_input(oracle, name):
    for dtype in TYPES:
        x = LAYOUTS[name](dtype)
        for reps in [(1,) * x.ndim, (2,) * x.ndim, (3, *(1,) * x.ndim), (*(1,) * (x.ndim - 1), 2)]:
            want = oracle(x, reps)
            assert same(tilecore.tile(x, reps), want)
            stop = [n - n // 5 for n in want.shape]
            start = [n // 7 for n in want.shape]
            part = want[tuple(map(slice, start, stop))]
            assert same(tilecore.tile_region(x, reps, start, stop), part)
        plan = tilecore.TilePlan(x.shape, (2,) * x.ndim, x.dtype)
        twice = np.stack([oracle(x, (2,) * x.ndim)] * 3)
        assert same(plan.batch([x, x.copy("C"), x.copy("F")]), twice)
        assert same(plan.batch(np.stack([x] * 3, axis=-1).transpose(x.ndim, *range(x.ndim))), twice)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", ["u1", "f4", "f8"])
def test_large_inputs_in_columns(oracle, dtype, threads):
    """Threads, and results that are streamed past the caches into prefaulted memory."""
    x = items((1800, 3000 // np.dtype(dtype).itemsize), dtype).T
    for reps in [(1, 1), (2, 2), (8, 1)]:
        want = oracle(x, reps)
        out = np.zeros(want.shape, dtype)
        for _ in range(2):
            assert same(tilecore.tile(x, reps, out, threads=threads), want)
    for rows, nbytes in [(4096, 6144), (4000, 6400), (4099, 6200)]:  # lines of the cache that begin alike, or not
        big = items((rows, nbytes // np.dtype(dtype).itemsize), dtype).T
        out = np.zeros(big.shape, dtype)
        assert same(tilecore.tile(big, 1, out, threads=threads), oracle(big, (1, 1)))


@pytest.mark.parametrize("stride", [0, -8, 2**62, -(2**62), 3])
def test_strides_of_every_kind(oracle, stride):
    """An axis of one element may have any stride, and an empty array too."""
    data = np.arange(64, dtype="u1")
    one = np.lib.stride_tricks.as_strided(data, (1, 8, 1), (stride, 3, stride))
    for a in (one, one[:, ::-1], one[:, :0]):
        want = oracle(a, (3, 2, 5))
        assert tilecore.tile(a, (3, 2, 5)).tobytes() == want.tobytes()
        assert tilecore.tile(a, (3, 2, 5), np.empty_like(want)).tobytes() == want.tobytes()
        part = tilecore.tile_region(a, (3, 2, 5), (1, 0, 1), (3, want.shape[1], 4))
        assert part.tobytes() == want[1:3, :, 1:4].tobytes()


@pytest.mark.parametrize("length", [100, 2**16])
def test_one_panel_and_many_repeats(length):
    """Threads share it; test_signals.py interrupts it."""
    x, rows = np.arange(length, dtype="u2")[::-1], 2**24 // length - 3
    assert (tilecore.tile(x, (rows, 1), np.zeros((rows, length), "u2"), threads=2) == x).all()


@pytest.mark.skipif(sys.platform == "win32", reason="mprotect")
def test_rows_that_end_at_forbidden_pages(program):
    """Nothing after a row is read, also where the last panel (8 of 448 columns, one of 8) is narrower than a tile."""
    program("""
import ctypes, mmap
rows, columns = numpy.ogrid[:640, :3592]
memory = numpy.frombuffer(mmap.mmap(-1, 640 * 2 * mmap.PAGESIZE), "u1").reshape(640, -1)
x = memory[:, mmap.PAGESIZE - 3592 : mmap.PAGESIZE]
x[:] = (7 * rows + 3 * columns) % 251
libc = ctypes.CDLL(None)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
for row in memory:
    assert not libc.mprotect(row.ctypes.data + mmap.PAGESIZE, mmap.PAGESIZE, 0)
out = tilecore.tile(x.T, (2, 2))
columns, rows = numpy.ogrid[: 2 * 3592, : 2 * 640]
assert (out == (7 * (rows % 640) + 3 * (columns % 3592)) % 251).all()
""")
