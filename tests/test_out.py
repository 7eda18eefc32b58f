"""A large `out`, what is refused as `out`, and `axis`: the same values as without."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import tilecore

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("threads", [1, 3])
def test_large(oracle, threads):
    x = np.arange(700 * 900, dtype="u2").reshape(700, 900)
    rgba = np.zeros((4, 1400, 2700), "u2").transpose(1, 2, 0)
    tilecore.tile(x, (2, 3), rgba[..., 1], threads=threads)
    assert (rgba[..., 1] == oracle(x, (2, 3))).all() and not rgba[..., [0, 2, 3]].any()
    channels_last = np.zeros((1400, 2700, 4), "u2")
    tilecore.tile(x, (2, 3), channels_last[::-1, :, 3], threads=threads)
    assert (channels_last[::-1, :, 3] == oracle(x, (2, 3))).all()
    assert not channels_last[..., :3].any()


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


def test_an_out_that_overlaps_the_input():
    memory = np.arange(48)
    x, odd = memory.reshape(4, 12)[:, ::2], memory.reshape(4, 12)[:, 1::2]
    tilecore.tile(x, 1, odd)  # between its elements
    assert (odd == x).all()
    memory[:] = range(48)
    out = memory[2:26].reshape(4, 6)
    for part in (slice(25, 31), slice(0, 48, 8), slice(31, 19, -2), slice(6)):  # after its begin, and before it
        a = memory[part].reshape(2, 3)
        with pytest.raises(ValueError, match="must not share memory with the input"):
            tilecore.tile(a, (2, 2), out)
    assert (memory == np.arange(48)).all()
    after = memory[26:32].reshape(2, 3)
    assert (tilecore.tile(after, (2, 2), out)[:2, :3] == after).all()


def test_an_out_that_would_change_the_input():
    """Nothing of `out` is asked that could run code once the plan is made."""
    x = np.arange(2**16)

    class Out(np.ndarray):
        @property
        def __class__(self):
            x.resize(1, refcheck=False)
            return np.ndarray

    out = np.empty(2**17, x.dtype).view(Out)
    assert tilecore.tile(x, 2, out) is out
    assert x.size == 2**16
    assert (np.asarray(out) == np.tile(np.arange(2**16), 2)).all()


# ---------------------------------------------------------------- axis


@settings(max_examples=150)
@given(st.data())
def test_axis(oracle, data):
    shape = tuple(data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4)))
    x = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    axes = data.draw(st.lists(st.integers(0, x.ndim - 1), unique=True))
    reps = [data.draw(st.integers(0, 3)) for _ in axes]
    full = [1] * x.ndim
    for axis, count in zip(axes, reps, strict=True):
        full[axis] = count
    signed = tuple(axis - data.draw(st.sampled_from([0, x.ndim])) for axis in axes)
    want = oracle(x, full)
    assert tilecore.tile(x, reps, axis=signed).tolist() == want.tolist()
    assert tilecore.tile_mapped(x, reps, axis=list(signed)).tolist() == want.tolist()
    assert tilecore.output_shape(shape, reps, axis=signed) == want.shape
    plan = tilecore.TilePlan(shape, reps, x.dtype, axis=signed)
    assert plan.reps == tuple(full) and plan.tile(x).tolist() == want.tolist()
    region = tilecore.tile_region(x, reps, (0,) * x.ndim, want.shape, axis=signed)
    assert region.tolist() == want.tolist()
    if len(axes) == 1:
        assert tilecore.tile(x, reps[0], axis=signed[0]).tolist() == want.tolist()


def test_axis_of_a_view():
    assert tilecore.tile_view(np.ones((3, 1)), 5, axis=-1).strides == (8, 0)
