"""Calls of several threads at once, each on arrays of its own or all on the same ones.

    python benchmarks/scaling.py [--threads 1 2 4 8] [--seconds 0.2] [--rounds 5]

A cell is how many calls all threads together make in a microsecond, the median of the rounds; the threads of
one call are one. Without the GIL that grows until the processors are used up, where nothing is shared that is
written to. `numpy.empty` and `ndarray.copy` say what the machine, Python and NumPy's allocator give.
"""

import argparse
import sys
import threading
import time
from statistics import median

import machine
import numpy as np

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
    """Calls of `count` threads in a microsecond, from when the first begins to when the last ends."""
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
        print(f"\n{size:24}" + "".join(f"{count:>8}" for count in chosen.threads))
        cases = ways(shape, reps, dtype)
        rounds = [
            {
                (name, count): rate(make, count, chosen.seconds)
                for name, make in cases.items()
                for count in chosen.threads
            }
            for _ in range(chosen.rounds)
        ]
        for name in cases:
            rates = [median(found[name, count] for found in rounds) for count in chosen.threads]
            print(f"{name:24}" + "".join(f"{each:8.2f}" for each in rates))


if __name__ == "__main__":
    main()
