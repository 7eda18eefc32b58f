"""What each thread of a large call writes, its range of blocks, bands or panels: bytes of its own, and no others.

The functions are called as other compiled modules call them, on loops of small shapes.
"""

import itertools
from ctypes import byref

import numpy as np
import pytest
from declared import get_function, get_struct, nest_of, place_of, plan_of, region_iter_init, region_of

from tilecore._core.write import blocks, panels, tiling

pytestmark = [pytest.mark.quick, pytest.mark.tree]

ORDINARY, ORDINARY_IN_ORDER, PAST_CACHES = range(3)  # in stores.pxd
GAP = 255
choose_blocks, write_blocks = get_function(blocks, "choose_blocks"), get_function(blocks, "write_blocks")
choose_panels, write_panels = get_function(panels, "choose_panels"), get_function(panels, "write_panels")
write_bands = get_function(tiling, "write_bands")
Blocks, Panels, Bands = map(get_struct, ["Blocks", "Panels", "Bands"])


def make_source(shape, itemsize, order=None):
    """Items of any bytes but GAP, and their strides, with the axes in any order."""
    found, order = np.random.default_rng(1).integers(0, GAP, (*shape, itemsize), "u1"), order or range(len(shape))
    return np.ascontiguousarray(found.transpose(*order, -1)).transpose(*np.argsort(order), -1)


class Room:
    """An output with gaps after the items of an axis, or with none; and its bytes once all is written."""

    def __init__(self, x, start, shape, gap=None):
        index = [(first + np.arange(n)) % d for first, n, d in zip(start, shape, x.shape, strict=False)]
        shape = [*shape, x.shape[-1]]
        whole = [n + (axis == gap) * 3 for axis, n in enumerate(shape, -len(shape))]
        self.memory = np.full(np.prod(whole) + 128, GAP, "u1")  # with room before and after it
        out = self.memory[64:-64].reshape(whole)[tuple(map(slice, shape))]
        out[...] = x[np.ix_(*index)]
        self.wanted, self.address, self.strides = self.memory.copy(), out.ctypes.data, out.strides[:-1]

    def check(self, task, argument, total, shown):
        """Parts are disjoint, and all that any range of them writes."""

        def write(first, last):
            self.memory.fill(GAP)
            task(byref(argument), first, last)
            written = self.memory != GAP
            wrong = written & (self.memory != self.wanted)
            assert not wrong.any(), f"{shown}: {first} to {last} of {total}: wrong bytes"
            return written

        parts = [write(k, k + 1) for k in range(total)]
        assert (np.sum(parts, axis=0) == (self.wanted != GAP)).all(), f"{shown}: {total} parts overlap, or leave gaps"
        for first, last in itertools.combinations(sorted({0, 1, total // 2, total}), 2):
            assert (write(first, last) == np.any(parts[first:last], axis=0)).all(), f"{shown}: {first} to {last}"


@pytest.mark.parametrize("gap", [None, -1, -2])
def test_blocks(gap):
    seen = set()
    for itemsize, shape, reps in itertools.product((300, 5000, 17000), [(3, 1), (2, 2)], [(1, 1), (1, 2), (2, 2)]):
        x, made = make_source(shape, itemsize), Blocks()
        room = Room(x, (0, 0), np.multiply(shape, reps), gap)
        nest = nest_of(plan_of(shape, reps, itemsize), x.strides[:-1], room.strides)
        for stores in (ORDINARY, ORDINARY_IN_ORDER, PAST_CACHES):
            choose_blocks(byref(made), byref(nest), room.address, x.ctypes.data, stores)
            room.check(write_blocks, made, made.total, (stores, shape, reps, itemsize))
            seen.add((min(made.total, 4), made.split >= 0))
    assert len(seen) > 3, seen


@pytest.mark.parametrize("gap", [None, -1, -2])
def test_bands(gap):
    for itemsize, shape in itertools.product((1, 4, 700), [(3,), (2, 3), (3, 1), (2, 1, 2)]):
        x, tiling = make_source(shape, itemsize), plan_of(shape, (1,) * len(shape), itemsize)
        for first, n in itertools.product((-4, 0, 2), (2, 3, 7)):
            start, output = [first] * len(shape), [n] * len(shape)
            room, window = Room(x, start, output, gap), region_of(tiling, start, output)
            made, places = Bands(dst=room.address, src=x.ctypes.data), map(place_of, (x.strides[:-1], room.strides))
            region_iter_init(byref(made.iter), byref(window), *map(byref, places))
            room.check(write_bands, made, made.iter.axis[made.iter.n - 1].count, (shape, start, output, itemsize))


@pytest.mark.parametrize("gap", [None, -2])
@pytest.mark.parametrize("stores", [ORDINARY, PAST_CACHES])
def test_panels(stores, gap):
    for itemsize, shape, order in [(1, (900, 700), (1, 0)), (8, (300, 260), (1, 0)), (1, (3, 500, 400), (1, 2, 0))]:
        for reps in [(1,) * len(shape), (*[1] * (len(shape) - 1), 2)]:
            x, made = make_source(shape, itemsize, order), Panels()
            room = Room(x, (0, 0, 0), np.multiply(shape, reps), gap)
            nest = nest_of(plan_of(shape, reps, itemsize), x.strides[:-1], room.strides)
            assert choose_panels(byref(made), byref(nest), room.address, x.ctypes.data, stores)
            room.check(write_panels, made, made.total, (shape, order, reps, itemsize))
