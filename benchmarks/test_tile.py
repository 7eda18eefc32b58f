"""Whole calls: tilecore, its peers and the bounds of the machine, by workload."""

from itertools import product

from peers import BOUNDS, PEERS, TILECORE
from timing import Call, KeptCall
from workloads import LONG, WORKLOADS, verify

CASES = TILECORE | PEERS | BOUNDS


def choose(kind, full):
    workloads, cases = {
        "warm": (WORKLOADS, CASES),
        "long": (LONG, ["tilecore", "tilecore out 1 thread", "numpy", "memset"]),
        # Smaller results hardly ever lie in pages that were never written.
        "fresh": ([w for w in WORKLOADS if w.nbytes >= 2**20], ["tilecore", "tilecore 1 thread", "numpy", "memset"]),
    }[kind]
    return product(workloads, cases)


def prepare(kind, workload, case):
    """What is sampled, once its result has been verified."""
    x = workload.input()
    call = CASES[case](x, workload.reps)
    if case.startswith(tuple(BOUNDS)):
        return Call(call)
    verify(call(), x, workload.reps)
    return KeptCall(call, workload.nbytes) if kind == "fresh" else Call(call)


def test_warm(record):
    """The result is dropped before the next call, which may get the same memory again."""


def test_long(record):
    """One array to a batch, of 1 to 48 MB."""


def test_fresh(record):
    """Every result is kept, and lies in memory that was never written to."""
