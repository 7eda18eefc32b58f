"""Lazy tilings: tilecore's and dask.array.tile's, from the call to the result, by Dask's threads."""

from itertools import product

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
ENDS = {"built": lambda y: y, "summed": lambda y: y.sum().compute(), "whole": lambda y: y.compute()}
CASE_SECONDS = dict.fromkeys(ENDS, 0.5)


def choose(kind, full):
    return product(WORKLOADS if full else WORKLOADS[1:], CASES)  # Dask's own sum of the pattern takes seconds


def prepare(kind, workload, case):
    x, reps = workload.input(), workload.reps
    verify(CASES[case](x, reps).compute(), x, reps)
    return Call(lambda: ENDS[kind](CASES[case](x, reps)))


def test_built(record):
    """The call alone."""


def test_summed(record):
    """The call, and the sum."""


def test_whole(record):
    """The call, and all of the result."""
