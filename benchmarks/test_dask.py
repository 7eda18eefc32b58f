"""Lazy tilings: tilecore's and dask.array.tile's, from the call to the result, by Dask's threads."""

from itertools import product

import numpy as np
import pytest
from timing import Call
from workloads import Workload, verify

da = pytest.importorskip("dask.array")
from tilecore.integrations.dask import tile  # noqa: E402

CASES = {
    "tilecore": tile,
    "tilecore in chunks of 1000": lambda x, reps: tile(x, reps, chunks=1000),
    "dask": lambda x, reps: da.tile(da.from_array(x, chunks=-1), reps),
}
WORKLOADS = [Workload("pattern", (64, 64), (100, 100), "f4"), Workload("image", (512, 512), (12, 12), "f4")]
# The summed result of a Dask array of this shape, repeated outside, inside and both, for each number of blocks
LARGE = [((60, 16, 17), 40, 20), ((60, 64, 65), 40, 20), ((360, 90, 180), 40, 20), ((4680, 90, 180), 4, 2)]
BLOCKS = {
    f"{name} in {count} blocks": (f, count)
    for count in (1, 6, 60)
    for name, f in (("tilecore", tile), ("dask", da.tile))
}
LAZY = [Workload(f"{name}, {np.prod(shape) * 4e-6:.2g} MB", shape, reps, "f4") for shape, n, k in LARGE
        for name, reps in (("outside", (n, 1, 1)), ("inside", (1, 1, n)), ("both", (k, 1, n // k)))]  # fmt: skip
ENDS = {"built": lambda y: y, "summed": lambda y: y.sum().compute(), "whole": lambda y: y.compute()}
CASE_SECONDS = dict.fromkeys((*ENDS, "blocks"), 0.5)


def choose(kind, full):
    if kind == "blocks":
        return product(LAZY if full else LAZY[6:7], BLOCKS)
    return product(WORKLOADS if full else WORKLOADS[1:], CASES)  # Dask's own sum of the pattern takes seconds


def prepare(kind, workload, case):
    x, reps = workload.input(), workload.reps
    if kind == "blocks":
        f, count = BLOCKS[case]
        lazy = da.from_array(x, chunks=(len(x) // count, -1, -1))
        verify(f(lazy, reps).compute(), x, reps)
        return Call(lambda: f(lazy, reps).sum().compute())
    verify(CASES[case](x, reps).compute(), x, reps)
    return Call(lambda: ENDS[kind](CASES[case](x, reps)))


def test_built(record):
    """The call alone."""


def test_summed(record):
    """The call, and the sum."""


def test_whole(record):
    """The call, and all of the result."""


def test_blocks(record):
    """The sum of a Dask array's tiling, by its number of blocks."""
