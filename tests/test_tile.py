"""tile and output_shape: right bytes for every input, the right error for every other."""

import numpy as np
import pytest

import tilecore

pytestmark = pytest.mark.quick
ROW = np.arange(6, dtype="f4").reshape(2, 3)
SEVERAL = "repeats of several axes are one argument: (2, 3); input shape (2, 3),"


@pytest.mark.parametrize("row", [*range(1, 34), 40, 63, 64, 65, 96, 128, 129, 256, 257, 512, 513, 40000])
@pytest.mark.parametrize("repeats", [2, 3, 4, 7, 33])
def test_rows_of_every_size(oracle, row, repeats):
    """Each kernel, and every change from one to the next; many rows and a few, also with gaps between them."""
    for rows in (1, 2, 5, 100, 700):
        x = np.random.default_rng(row).integers(0, 256, (rows, row), "u1")
        for reps in ((1, repeats), (3, repeats)) if x.size * repeats <= 1 << 19 else ():
            want, room = oracle(x, reps), np.zeros((reps[0] * rows, row * repeats + 5), "u1")
            np.testing.assert_array_equal(tilecore.tile(x, reps), want, strict=True)
            np.testing.assert_array_equal(tilecore.tile(x, reps, out=room[:, :-5]), want, strict=True)
            assert not room[:, -5:].any()


@pytest.mark.parametrize("nbytes", [2**16 - 1, 2**16, 2**17 - 1, 2**17])
def test_at_the_bounds_of_small_results(oracle, nbytes):
    """From 64 KiB on the GIL is released, from 128 KiB on loops are ordered. The last case: as many repeats as fit."""
    requests = [((nbytes,), (1,)), ((1,), (nbytes,)), ((nbytes // 15, 3), (1, 5)), ((nbytes // 8, 1), (4, 2))]
    for shape, reps in [*requests, ((1,) * 13 + (2, 1), (2,) * (nbytes.bit_length() - 2))]:
        x = np.random.default_rng(0).integers(0, 256, shape, "u1")
        result = tilecore.tile(x, reps)
        np.testing.assert_array_equal(result, oracle(x, reps), strict=True)
        assert result.flags.owndata


def test_reps_of_every_kind():
    twos = [2, np.int8(2), np.uint64(2), np.array(2), [2], (2,), np.array([2], "u1"), {2: None}, range(2, 3)]
    for reps in (*twos, iter([2]), memoryview(b"\2")):
        assert tilecore.tile([1, 2], reps).shape == (4,)
    x = np.arange(3)
    assert not np.shares_memory(tilecore.tile(x, 1), x)  # a copy, though nothing repeats
    assert tilecore.tile(x, np.uint8(100)).shape == (300,)  # narrow integers never wrap
    assert tilecore.tile(np.zeros((0, 3)), np.array([100, 100], "u1")).shape == (0, 300)


@pytest.mark.parametrize(("call", "words"), [
    (lambda x: tilecore.output_shape(x, 2), "but item 0 is of type ndarray; pass the array's shape; shape [["),
    (lambda x: tilecore.TilePlan(x[0], 2, "f4"), "but item 0 is of type float32; pass the array's shape; shape ["),
    (lambda x: tilecore.tile((2, 2), x), "item 0 is of type ndarray; are a and reps swapped?; input shape (2,)"),
    (lambda x: tilecore.tile(2, x), "item 0 is of type ndarray; are a and reps swapped?; input shape ()"),
    (lambda x: tilecore.tile(x, 2, 3), "tile: out must be a NumPy array, got int; " + SEVERAL),
    (lambda x: tilecore.output_shape(-1, 2), ": shape must not be negative, got -1 for axis 0; shape -1, reps 2"),
    (lambda x: tilecore.tile(x, 1.5), "for a length); input shape (2, 3), dtype float32, reps 1.5"),
])  # fmt: skip
def test_messages_name_the_parameters(call, words):
    with pytest.raises((TypeError, ValueError)) as caught:
        call(ROW)
    assert words in str(caught.value)


@pytest.mark.parametrize("code", ["S", "U", ">U"])
def test_strings_of_no_characters(code, calls_of):
    """NumPy gives them room for one character, in which no old memory may show."""
    x = np.zeros(3, [("none", code + "0"), ("n", "i4")])["none"]
    assert x.itemsize == 0
    for call in calls_of(x, 1000).values():
        used = [np.full(3000 * n, 255, "u1") for n in (1, 4) for _ in range(9)]
        del used
        got = call()
        assert got.shape == (3000,) and got.dtype == np.tile(x, 2).dtype
        assert not got.view("u1").any()
    with pytest.raises(MemoryError, match="more than the limit"):
        tilecore.tile(x, 2**58)


def test_peak_memory_is_the_result(traced):
    """No intermediate per axis, and no packed copy of a strided input."""
    x = np.zeros((300, 400), "f4")
    for source in (x, x.T, x[::-1, ::-1]):
        traced.clear_traces()
        got = tilecore.tile(source, (3, 4))
        assert traced.get_traced_memory()[1] < got.nbytes + 10_000


def test_output_shape_and_empty_results():
    assert tilecore.tile(np.zeros((0, 5)), (2**40, 1)).shape == (0, 5)
    assert tilecore.output_shape(3, 2) == (6,)
    assert tilecore.output_shape((2**40, 2**20), 1) == (2**40, 2**20)
    assert tilecore.output_shape(iter([3] + [1] * 63), iter([2] + [1] * 63)) == (6,) + (1,) * 63


def test_the_limit_is_exact(settings_stay, calls_of):
    """The limit counts a region alone, all of a batch, and no `out`."""
    x, plan = np.arange(6.0), tilecore.TilePlan(6, 2, "f8")
    for name, call in (calls_of(x, 2) | {"batch": lambda *out: plan.batch([x] * 3, *out)}).items():
        nbytes = 288 if name == "batch" else 96
        tilecore.set_max_bytes(nbytes)
        got = call()
        tilecore.set_max_bytes(nbytes - 1)
        with pytest.raises(MemoryError, match=f"take {nbytes} bytes, more than the limit of {nbytes - 1} bytes"):
            call()
        assert call(got).nbytes == nbytes
