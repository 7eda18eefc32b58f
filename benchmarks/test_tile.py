"""Whole calls: tilecore, its peers and the bounds of the machine, by workload."""

from functools import partial
from itertools import product

import numpy as np
from machine import usable_cpus
from peers import BOUNDS, PEERS, TILECORE
from timing import Call, KeptCall
from workloads import LARGE, LONG, WORKLOADS, blocks, verify

CASES = TILECORE | PEERS | BOUNDS
FRESH = ["tilecore", "tilecore 1 thread", "numpy", "memset"]
FRESH_BYTES = 2**20  # below, an allocator hardly ever gives pages that were never written
COUNTS = sorted({2**n for n in range(10) if 2**n <= usable_cpus()} | {usable_cpus()})


def choose(kind, full):
    if kind == "threads":
        return [(w, name, n) for w in LARGE for n in COUNTS for name in ("tilecore out", "memset")]
    workloads, cases = {
        "warm": (WORKLOADS, CASES),
        "long": (LONG, ["tilecore", "tilecore out 1 thread", "numpy", "memset"]),
        "fresh": ([w for w in WORKLOADS if w.nbytes >= FRESH_BYTES] + blocks(full), FRESH),
    }[kind]
    return product(workloads, cases)


def prepare(kind, workload, case, threads=None):
    """What is sampled, once its result has been verified."""
    x = workload.input()
    make = partial(CASES[case], threads=threads) if threads else CASES[case]
    call = make(x, workload.reps)
    if case in BOUNDS:
        return Call(call)
    verify(np.asarray(call()), x, workload.reps)
    return KeptCall(call, workload.nbytes) if kind == "fresh" else Call(call)


def test_warm(record):
    """The result is dropped before the next call, which may get the same memory again."""


def test_threads(record, threads):
    """Into memory that has been written to, by the number of threads."""


def test_long(record):
    """One array to a batch, of 1 to 48 MB."""


def test_fresh(record):
    """Every result is kept, and lies in memory that was never written to."""
