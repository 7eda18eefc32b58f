"""GB/s against the number of threads, into memory that has been written to."""

from functools import partial

import pytest
from machine import usable_cpus
from peers import memset_by_threads, tilecore_out
from timing import prepare
from workloads import Workload

CASES = {"tilecore": tilecore_out, "memset": memset_by_threads}
LARGE = [
    Workload("long rows", (2**16,), (2**8,), "f4"),
    Workload("12-byte rows", (2**20, 3), (1, 5), "f4"),
]
COUNTS = sorted({2**n for n in range(10) if 2**n <= usable_cpus()} | {usable_cpus()})

pytestmark = pytest.mark.benchmark(max_time=0.15, min_rounds=5)


def pytest_generate_tests(metafunc):
    # memset does not care how its bytes came about: once is enough.
    lines = [(LARGE[0], "memset"), *((workload, "tilecore") for workload in LARGE)]
    chosen = [(*line, threads) for threads in COUNTS for line in lines]
    ids = [f"{workload.name}-{case}-{threads}" for workload, case, threads in chosen]
    metafunc.parametrize(("workload", "case", "threads"), chosen, ids=ids)


def test_threads(benchmark, workload, case, threads):
    benchmark.group = f"{threads} threads"
    benchmark.extra_info["output bytes"] = workload.nbytes
    call = prepare(partial(CASES[case], threads=threads), workload, tiles=case != "memset")
    benchmark(call)
