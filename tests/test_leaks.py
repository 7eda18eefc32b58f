"""Nothing grows over many calls of all kinds, refused ones included: references, memory, descriptors, mappings."""

import gc
import os
import sys
from functools import partial

import numpy as np
import pytest
from prelude import descriptors_now

import tilecore

pytestmark = pytest.mark.quick

LINUX = sys.platform == "linux"
DIALECTS = [getattr(tilecore, name) for name in tilecore._DIALECTS]

x = np.arange(6, dtype="f8").reshape(2, 3)
row = x[0]
large = np.arange(2**18, dtype="f4")  # 1 MiB
thing = object()
objects = np.array([thing, None, thing], "O")
record = np.array([(1, thing)], [("n", "i4"), ("o", "O")])
strings = np.array(["short", "longer than fits an item of StringDType"], "T")
masked = np.ma.array([1, 2, 3], mask=[0, 1, 0])
out = np.empty((4, 6))
plan = tilecore.TilePlan((2, 3), (2, 2), "f8")
reps = (2, 2)
watched = [x, row, x.dtype, large, thing, objects, record, record.dtype, strings, out, plan, reps, None]
raising = type("Raising", (), dict.fromkeys(("__index__", "__iter__"), lambda self: 1 // 0))()
subclass = x.view(type("NotTilecores", (np.ndarray,), {}))

OFTEN = [  # and `calls_of`
    lambda: tilecore.tile(x.T[::-1], reps),
    # With its dtype: without, NumPy 2.4 leaks a reference to float64.
    lambda: tilecore.tile(x, 2, out=np.empty((2, 6), x.dtype), threads=2),
    *[partial(tilecore.tile, given, 2) for given in ([[1, 2]], subclass, masked)],
    partial(tilecore.tile_view, x[:, :1], (1, 5)), partial(tilecore.tile_mapped, x, reps),
    partial(plan.tile, x, out), partial(plan.region, x, (0, 0), (3, 3)),
    lambda: tilecore.TilePlan((2, 3), reps, x.dtype).tile(x), lambda: tilecore.output_shape((2, 3), reps),
    *[partial(dialect.tile, large.reshape(1, 1, 512, 512)[:, :, :2], [1, 1, 2, 2]) for dialect in DIALECTS],
]  # fmt: skip
REFUSED = [
    *[partial(tilecore.tile, x, bad) for bad in (-1, raising, (1,) * 65, 2**62, 2**45)],
    partial(tilecore.tile, x, 2, threads=0), partial(tilecore.tile, x, reps, out=x),
    partial(tilecore.tile, subclass, reps, out=out), partial(tilecore.tile, objects, 2**45),
    partial(tilecore.tile_region, x, reps, (0,), (1, 1)), partial(tilecore.tile_view, x, reps),
    partial(tilecore.tile_mapped, x, 2**45), partial(plan.tile, large), partial(plan.region, x, (2, 0), (1, 1)),
    lambda: tilecore.TilePlan((2**40, 2**40), 1, "f8"), lambda: tilecore.output_shape((2, -3), 1),
    *[partial(dialect.tile, x, [2.5]) for dialect in DIALECTS], partial(tilecore.set_max_bytes, -1),
]  # fmt: skip
SELDOM = [
    lambda: tilecore.tile(large, (4, 1)), lambda: tilecore.tile(large, (33, 1), threads=2),
    lambda: tilecore.tile(large, (40, 1))[3:5], lambda: tilecore.tile(strings, 2**16),
    lambda: tilecore.tile(objects, 2**16), lambda: tilecore.tile_mapped(large, (32, 1)),
    lambda: tilecore.tile_mapped(large[:750], 9_000), tilecore.release_memory,
    lambda: tilecore.tile_mapped(large.reshape(-1, 2)[:, ::-1], (32, 1)),
]  # fmt: skip


def many_calls(often, count):
    for n in range(count):
        often[n % len(often)]()
        with pytest.raises((TypeError, ValueError, MemoryError, ZeroDivisionError)):
            REFUSED[n % len(REFUSED)]()
        if n % 25 == 0:
            SELDOM[n // 25 % len(SELDOM)]()


def state():
    """What must be the same, and what may differ by a little: blocks, mappings, resident bytes."""
    gc.collect()
    tilecore.release_memory()
    same = [descriptors_now(), *(sys.getrefcount(watch) for watch in watched[:-1])]
    grows = [sys.getallocatedblocks(), sys.getrefcount(None)]
    if LINUX:
        with open("/proc/self/maps") as maps, open("/proc/self/statm") as statm:
            grows.append(sum(1 for _ in maps))
            grows.append(int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE"))
    return same, grows


@pytest.mark.whole_process
def test_nothing_grows(calls_of):
    """Three attempts: the system itself may make huge pages meanwhile, but not each time."""
    often = [*OFTEN, *(call for each in (row, objects, record, strings) for call in calls_of(each, 7).values())]
    many_calls(often, 500)
    for _ in range(3):
        before, grown_before = state()
        many_calls(often, 3000)
        after, grown = state()
        assert after == before
        more = [now - then for now, then in zip(grown, grown_before, strict=True)]
        if all(n < most for n, most in zip(more, (400, 400, 20, 8 << 20), strict=False)):
            return
    raise AssertionError(f"blocks, references to None, mappings, resident bytes: {more} more")
