"""Calls of several threads at once, each on arrays of its own or all on the same ones; each call by one thread.

Without the GIL the number of calls grows with the threads up to the number of processors, unless they share something
that is written to. `numpy.empty` and `ndarray.copy` show what the machine, Python and NumPy's allocator allow.
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product

import numpy as np
from workloads import Workload, verify

import tilecore

WORKLOADS = [Workload("96 B", (2, 3), (2, 2), "f4"), Workload("64 KB", (64, 64), (2, 2), "f4")]
COUNTS = [1, 2, 4, 8]
CASES = ["tilecore", "tilecore shared input", "tilecore shared plan", "tilecore shared plan out"]
CASES += ["numpy", "empty", "copy"]
SECONDS = 0.05  # of a sample


def choose(kind, full):
    return product(WORKLOADS, CASES, COUNTS if full else COUNTS[:2])


def makers(workload):
    """By case, what makes a thread's call."""
    _, shape, reps, dtype = workload
    own, shared, whole = workload.input, workload.input(), workload.output_shape
    plan = tilecore.TilePlan(shape, reps, dtype)
    return {
        "tilecore": lambda: partial(tilecore.tile, own(), reps),
        "tilecore shared input": lambda: partial(tilecore.tile, shared, reps),
        "tilecore shared plan": lambda: partial(plan.tile, own()),
        "tilecore shared plan out": lambda: partial(plan.tile, own(), np.empty(whole, dtype)),
        "numpy": lambda: partial(np.tile, own(), reps),
        "empty": lambda: partial(np.empty, whole, dtype),
        "copy": lambda: np.ones(whole, dtype).copy,
    }


class Callers:
    def __init__(self, make, threads):
        self.make, self.threads = make, threads

    def sample(self):
        """Seconds a call, of all threads together, from the first one's begin to the last one's end."""
        start, spans, calls = threading.Barrier(self.threads), [], []

        def work():
            call = self.make()
            call()
            start.wait()
            made, begin = 0, time.perf_counter()
            while time.perf_counter() < begin + SECONDS:
                for _ in range(50):
                    call()
                made += 50
            spans.append((begin, time.perf_counter()))
            calls.append(made)

        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(lambda _: work(), range(self.threads)))
        begins, ends = zip(*spans, strict=True)
        return (max(ends) - min(begins)) / sum(calls)


def prepare(kind, workload, case, threads):
    make = makers(workload)[case]
    if case not in ("empty", "copy"):
        verify(make()(), workload.input(), workload.reps)
    return Callers(make, threads)


def test_scaling(record, threads):
    """By the number of threads that call."""
