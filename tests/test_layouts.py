"""Inputs and outputs of every layout: transposed, reversed, strided, interleaved; by index arithmetic."""

import sys
from contextlib import nullcontext

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from ways import LAYOUTS, each_way, make_items, showing

import tilecore

pytestmark = pytest.mark.quick

TYPES = ["u1", "i2", "f4", "f8", "c16", "S3"]


def same(got, want):
    """By bytes: floats may be NaN."""
    return got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes()


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_of_the_input(oracle, name):
    for dtype in TYPES:
        x = LAYOUTS[name](dtype)
        for reps in [(1,) * x.ndim, (2,) * x.ndim, (3, *(1,) * x.ndim), (*(1,) * (x.ndim - 1), 2)]:
            for want, call in each_way(oracle, x, reps):
                with showing(call):
                    assert same(call(), want)


@pytest.mark.parametrize(("shape", "reps"), [
    ((3, 100_001), (5, 1)),  # a run longer than a block, with an odd rest
    ((400_001,), (5,)), ((300, 3), (1, 2000)), ((64, 64), (24, 20)), ((11, 1, 13), (9, 14, 110)),
    ((40, 1, 1000, 2), (3, 2, 2, 2)), ((7, 5, 3, 2), (13, 9, 13, 5)),
])  # fmt: skip
def test_every_block_and_share_is_written(oracle, shape, reps):
    """Results large enough for threads, into prefaulted memory and between the elements of another array."""
    x = make_items(shape, "u4")
    for source in (x, x[..., ::-1], x.T)[: 1 + min(x.ndim, 2)]:
        for want, call in each_way(oracle, source, reps)[:4]:
            between = np.zeros((*want.shape, 2), "u4")
            for threads in (1, 3, 300):
                got = call(threads=threads)
                assert got.dtype == want.dtype and np.array_equal(got, want)
                between[..., 1] = np.invert(want, out=got)  # no byte is right yet
                for out in (got, between[..., 1]):
                    assert np.array_equal(call(out=out, threads=threads), want)
            assert not between[..., 0].any()


LARGE = [
    ((700, 3), "u1", (40, 600)), ((50_000,), "u1", (1030,)), ((3_000_001,), "u1", (17,)),
    ((100,), "u2", (2**24 // 100 - 3, 1)), ((2**16,), "u2", (253, 1)),  # one panel and many repeats
    *[((1800, 3000 // size), f"u{size}", reps) for size in (1, 4, 8) for reps in [(1, 1), (2, 2), (8, 1)]],
    *[((n, k // size), f"u{size}", (1, 1))  # lines of the cache that begin alike, or not
      for size in (1, 4, 8) for n, k in [(4096, 6144), (4000, 6400), (4099, 6200)]],
]  # fmt: skip


@pytest.mark.parametrize(("shape", "dtype", "reps"), LARGE)
def test_beyond_the_caches(shape, dtype, reps):
    """Large enough for stores that bypass the caches, into prefaulted memory; of sources in order, and of columns."""
    x = make_items(shape, dtype)
    for source in (x, x[::-1]) if x.ndim == 1 else (x, x.T):
        out = np.zeros(tilecore.output_shape(source.shape, reps), dtype)
        # An index is (repeat, index of the source) on each axis: the oracle's own would take eight times as much.
        split = (1,) * (len(reps) - source.ndim) + source.shape
        want = np.ascontiguousarray(source).reshape([k for n in split for k in (1, n)])
        by_repeat = out.reshape([k for pair in zip(reps, split, strict=True) for k in pair])
        for threads in (1, 3):
            by_repeat[:] = ~want  # no byte is right yet
            tilecore.tile(source, reps, out, threads=threads)
            assert (by_repeat == want).all()


@pytest.mark.parametrize("stride", [0, -8, 2**62, -(2**62), -(2**63), 3])
def test_strides_of_every_kind(oracle, stride):
    """An axis of one element may have any stride, and an empty array too."""
    data = np.arange(64, dtype="u1")
    one = as_strided(data, (1, 8, 1), (stride, 3, stride))
    for a in (one, one[:, ::-1], one[:, :0]):
        want = oracle(a, (3, 2, 5))
        assert tilecore.tile(a, (3, 2, 5)).tobytes() == want.tobytes()
        assert tilecore.tile(a, (3, 2, 5), np.empty_like(want)).tobytes() == want.tobytes()
        part = tilecore.tile_region(a, (3, 2, 5), (1, 0, 1), (3, want.shape[1], 4))
        assert part.tobytes() == want[1:3, :, 1:4].tobytes()


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


def test_out_with_a_stride_that_has_no_opposite():
    out = as_strided(np.zeros(16, "i4"), (1, 4), (-sys.maxsize - 1, 8))
    assert tilecore.tile(np.array([[1, 2]], "i4"), 2, out) is out and out.tolist() == [[1, 2, 1, 2]]


def test_outs_and_inputs_anywhere_in_one_memory():
    """An `out` is refused exactly if a byte is shared: steps that are no multiples of each other may never meet."""
    draw, memory = np.random.default_rng(57), np.arange(200, dtype="u1")
    for _ in range(1000):
        shape = draw.integers(1, 4, draw.integers(1, 4))
        pair, seen = [], []
        for strides in draw.integers(-24, 25, (2, len(shape))):
            reaches = [int(np.dot(index, strides)) for index in np.ndindex(*shape)]
            begin = draw.integers(-min(reaches), 199 - max(reaches))
            pair.append(as_strided(memory[begin:][:2].view("u2"), shape, strides))
            seen.append([begin + reach + byte for reach in reaches for byte in (0, 1)])
        message = "share memory" if {*seen[0]} & {*seen[1]} else None
        message = "overlapping elements" if len({*seen[1]}) < len(seen[1]) else message
        before, x = memory.copy(), pair[0].copy()
        with pytest.raises(ValueError, match=message) if message else nullcontext():
            tilecore.tile(pair[0], 1, pair[1])
        assert (memory == before).all() if message else (pair[1] == x).all()


def test_an_out_of_which_nothing_is_known_is_refused():
    """NumPy gives up on it, too."""
    strides = np.random.default_rng(1).integers(2**19, 2**20, 14)
    out = as_strided(np.zeros(2**24, "u1"), (2,) * 14, strides)
    with pytest.raises(np.exceptions.TooHardError):
        np.shares_memory(out[:1], out[1:], max_work=100_000)
    with pytest.raises(ValueError, match="overlapping elements"):
        tilecore.tile(np.uint8(1), (2,) * 14, out)


def test_an_out_between_the_elements_of_the_input(calls_of):
    x, odd = np.arange(12).reshape(6, 2).T
    for call in calls_of(x, 1).values():
        odd.fill(0)
        assert call(odd).tolist() == x.tolist() == [0, 2, 4, 6, 8, 10]
