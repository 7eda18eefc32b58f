"""What the timed cases share: a result that is verified once, and results in fresh memory."""

import numpy as np
import pytest
from workloads import verify

import tilecore

KEPT_BYTES = 2**30  # the most that the results of one case take together, but for the last


def prepare(case, workload, *, tiles=True):
    """The call to time, once its result has been checked, where it tiles at all."""
    x = workload.input()
    try:
        call = case(x, workload.reps)
    except ImportError as missing:
        pytest.skip(str(missing))
    if tiles:
        verify(np.asarray(call()), x, workload.reps)
    return call


def time_fresh(benchmark, call, nbytes):
    """Keep every result, so that none is written to memory that was in use before."""
    kept = []

    def make_room():
        if len(kept) * nbytes >= KEPT_BYTES:
            kept.clear()  # allocators give blocks as large as these back at once
        tilecore.release_memory()  # and so does tilecore, when it is told

    rounds = max(3, min(30, KEPT_BYTES // 2 // nbytes))
    benchmark.pedantic(lambda: kept.append(call()), setup=make_room, rounds=rounds)
