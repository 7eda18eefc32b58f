"""Whole calls: tilecore, its peers and the bounds of the machine, grouped by workload."""

import pytest
from peers import BOUNDS, PEERS, TILECORE, WARM_PEERS
from timing import prepare, time_fresh
from workloads import WORKLOADS, grid

CASES = TILECORE | PEERS | WARM_PEERS | BOUNDS
ON_GRID = ["tilecore", "tilecore out 1 thread", *PEERS, "memset"]
FRESH = ["tilecore", "tilecore 1 thread", "numpy"]
FRESH_BYTES = 2**20  # below, an allocator hardly ever gives pages that were never written
TINY_BYTES = 2**10  # above, a call that only allocates says nothing

# Each round lasts long enough that the clock itself, half a microsecond, does not show.
pytestmark = pytest.mark.benchmark(max_time=0.15, min_rounds=3, min_time=1e-4)


def pytest_generate_tests(metafunc):
    if metafunc.function is test_fresh:
        chosen = [(w, name) for w in WORKLOADS if w.nbytes >= FRESH_BYTES for name in FRESH]
    elif metafunc.function is test_grid:
        full = metafunc.config.getoption("full")
        chosen = [(w, name) for w in grid() for name in ON_GRID] if full else []
    else:
        chosen = [(w, name) for w in WORKLOADS for name in CASES]
        chosen = [(w, name) for w, name in chosen if name != "empty" or w.nbytes < TINY_BYTES]
    ids = [f"{workload.name}-{name}" for workload, name in chosen]
    metafunc.parametrize(("workload", "case"), chosen, ids=ids)


def test_warm(benchmark, workload, case):
    """The result is dropped before the next call, which may get the same memory again."""
    benchmark.group = workload.name
    benchmark.extra_info["output bytes"] = workload.nbytes
    benchmark(prepare(CASES[case], workload, tiles=case not in BOUNDS))


def test_grid(benchmark, workload, case):
    test_warm(benchmark, workload, case)


def test_fresh(benchmark, workload, case):
    """Every result in memory that was never written to."""
    benchmark.group = workload.name
    benchmark.extra_info["output bytes"] = workload.nbytes
    time_fresh(benchmark, prepare(CASES[case], workload), workload.nbytes)
