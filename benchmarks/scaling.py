"""Calls of several threads at once, each on arrays of its own or all on the same ones.

    python benchmarks/scaling.py [--threads 1 2 4 8] [--seconds 0.2] [--rounds 5]

A cell is the number of calls that all threads together make in a microsecond, the median of the rounds;
each call uses one thread. Without the GIL it grows with the threads up to the number of processors, unless
they share something that is written to. `numpy.empty` and `ndarray.copy` show what the machine, Python and
NumPy's allocator allow.
"""

import argparse
import sys
import threading
import time
from statistics import median

import machine
import numpy as np
from tables import table

import tilecore

CASES = {"96 B": ((2, 3), (2, 2), "f4"), "64 KB": ((64, 64), (2, 2), "f4")}


def ways(shape, reps, dtype):
    """By name, what makes a thread's call."""
    shared = np.ones(shape, dtype)
    plan = tilecore.TilePlan(shape, reps, dtype)
    whole = plan.output_shape

    def own():
        return np.ones(shape, dtype)

    return {
        "tile": lambda: (tilecore.tile, own(), reps),
        "tile, shared input": lambda: (tilecore.tile, shared, reps),
        "shared plan": lambda: (plan.tile, own()),
        "shared plan, own out": lambda: (plan.tile, own(), np.empty(whole, dtype)),
        "numpy.tile": lambda: (np.tile, own(), reps),
        "numpy.empty": lambda: (np.empty, whole, dtype),
        "ndarray.copy": lambda: (np.ones(whole, dtype).copy,),
    }


def rate(make, count, seconds):
    """Calls of `count` threads in a microsecond, from the first one's begin to the last one's end."""
    start, spans, calls = threading.Barrier(count), [], []

    def work():
        call, *arguments = make()
        call(*arguments)
        start.wait()
        made, begin = 0, time.perf_counter()
        while time.perf_counter() < begin + seconds:
            for _ in range(50):
                call(*arguments)
            made += 50
        spans.append((begin, time.perf_counter()))
        calls.append(made)

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    begins, ends = zip(*spans, strict=True)
    return sum(calls) / (max(ends) - min(begins)) / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(f"{machine.usable_cpus()} processors, {'with' if gil else 'without'} the GIL")
    for size, (shape, reps, dtype) in CASES.items():
        cases = ways(shape, reps, dtype)
        found = {(name, count): [] for name in cases for count in chosen.threads}
        for _ in range(chosen.rounds):
            for name, count in found:
                found[name, count].append(rate(cases[name], count, chosen.seconds))
        rows = [[w, *(f"{median(found[w, n]):.2f}" for n in chosen.threads)] for w in cases]
        print(f"\n{table([size, *map(str, chosen.threads)], rows)}", end="")


if __name__ == "__main__":
    main()
