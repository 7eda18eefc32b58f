"""GB/s against the size of the output: one block that fits the cache, over and over."""

import pytest
from machine import usable_cpus
from peers import BOUNDS, PEERS, TILECORE, memset_by_threads, tilecore_mapped
from timing import prepare, time_fresh
from workloads import Workload

BLOCK = 2**16  # float32 items: 256 KiB
SIZES = {2**20: "1 MiB", 2**22: "4 MiB", 2**24: "16 MiB", 2**26: "64 MiB", 2**28: "256 MiB"}
FULL_SIZES = SIZES | {2**27: "128 MiB", 2**29: "512 MiB", 2**30: "1 GiB"}

# A line of the chart for each: its name, the case, and what becomes of the results.
KEPT, DROPPED = time_fresh, lambda benchmark, call, nbytes: benchmark(call)
LINES = {
    "tilecore": (TILECORE["tilecore"], DROPPED),
    "tilecore fresh": (TILECORE["tilecore"], KEPT),
    "tilecore mapped": (tilecore_mapped, DROPPED),
    "tilecore out": (TILECORE["tilecore out"], DROPPED),
    "numpy": (PEERS["numpy"], DROPPED),
    "numpy fresh": (PEERS["numpy"], KEPT),
    "memset": (BOUNDS["memset"], DROPPED),
}
if (threads := min(8, usable_cpus())) > 1:  # as many as tilecore takes
    LINES[f"memset {threads} threads"] = (lambda x, r: memset_by_threads(x, r, threads), DROPPED)

pytestmark = pytest.mark.benchmark(max_time=0.15, min_rounds=5)


def pytest_generate_tests(metafunc):
    sizes = FULL_SIZES if metafunc.config.getoption("full") else SIZES
    chosen = [
        (Workload(f"block {name}", (BLOCK,), (nbytes // (4 * BLOCK),), "f4"), line)
        for nbytes, name in sorted(sizes.items())
        for line in LINES
    ]
    # Last, for what they leave in the heap would have the others begin with new memory each time.
    chosen.sort(key=lambda pair: LINES[pair[1]][1] is KEPT)
    ids = [f"{workload.name}-{line}" for workload, line in chosen]
    metafunc.parametrize(("workload", "case"), chosen, ids=ids)


def test_size(benchmark, workload, case):
    benchmark.group = workload.name
    benchmark.extra_info["output bytes"] = workload.nbytes
    prepared, time = LINES[case]
    call = prepare(prepared, workload, tiles=not case.startswith("memset"))
    time(benchmark, call, workload.nbytes)
