"""Programs that do other things between the calls, each in a process of its own, and the first call of a process.

A loop that does nothing but tile gets the same memory again and again. A program makes and drops other arrays too, and
then the C library gives memory back to the system and takes it anew.

    python benchmarks/test_programs.py work tilecore 4.1      # one program: seconds a call, page faults a call
"""

import random
import subprocess
import sys
import time
from statistics import mean, median

import numpy as np
from peers import PEERS, TILECORE
from workloads import Workload, verify

MEGABYTES = (0.15, 0.2, 0.4, 0.7, 1.0, 1.5, 1.9, 2.2, 4.1, 6.3, 9.5, 13, 19, 26, 31)
FIRST_MEGABYTES = (0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
KINDS = {"work": MEGABYTES, "kept": MEGABYTES, "random": MEGABYTES, "first": FIRST_MEGABYTES}
STEPS, SECONDS = 60, 1.0  # a program ends after so many, or so long
LEAST_STEPS = 24
CASE_SECONDS = {"work": 4, "kept": 2, "random": 2, "first": 1.3}  # most of it starts processes
KEPT = 5  # results at a time


def rows(megabytes):
    """Rows of 100 bytes, each repeated ten times."""
    return Workload(f"{megabytes} MB", (int(megabytes * 1000), 25), (1, 10), "f4")


class Program:
    """A process that prints the seconds of a call."""

    def __init__(self, *words):
        self.command = [sys.executable, __file__, *words]

    def sample(self):
        done = subprocess.run(self.command, capture_output=True, text=True, check=True)
        return float(done.stdout.split()[0])


def pytest_generate_tests(metafunc):
    kind = metafunc.definition.originalname.removeprefix("test_")
    sizes = KINDS[kind][:: 2 if metafunc.config.getoption("full") else 4]
    cases = ["tilecore", *(PEERS if kind == "work" else ["numpy"])]
    chosen = [(rows(size), case) for size in sizes for case in cases]
    metafunc.parametrize(("workload", "case"), chosen, ids=[f"{w.name}-{case}" for w, case in chosen])


def prepare(kind, workload, case):
    x = workload.input()[:100]
    call = make(case, x, workload.reps)  # ImportError, if it is not installed
    verify(np.asarray(call()), x, workload.reps)
    return Program(kind, case, workload.name.partition(" ")[0])


def test_work(record):
    """Between the calls NumPy multiplies, concatenates, and makes three small arrays; then all are dropped."""


def test_kept(record):
    """The same, and five results are kept, dropped in random order."""


def test_random(record):
    """The same as `work`, with results of eight sizes between half and one and a half times as large."""


def test_first(record):
    """The first call of a process."""


# ---------------------------------------------------------------- the program


def make(case, x, reps):
    return (TILECORE | PEERS)[case](x, reps)


def page_faults():
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def main(kind, case, megabytes):
    rng = random.Random(5)
    shares = np.linspace(0.5, 1.5, 8) if kind == "random" else [1]
    workloads = [rows(float(megabytes) * share) for share in shares]
    calls = [(x := w.input(), make(case, x, w.reps)) for w in workloads]
    kept, times, faults = [], [], []
    begin = time.perf_counter()
    while True:
        x, call = rng.choice(calls)
        before, started = page_faults(), time.perf_counter()
        y = call()
        times.append(time.perf_counter() - started)
        faults.append(page_faults() - before)
        if kind == "first" or len(times) == STEPS:
            break
        if len(times) >= LEAST_STEPS and time.perf_counter() - begin > SECONDS:
            break
        product = np.asarray(y) * np.float32(2)
        joined = np.concatenate([product.ravel(), x.ravel()])
        small = [np.zeros(rng.randrange(1000, 60000)) for _ in range(3)]
        if kind == "kept":
            kept.append(y)
            if len(kept) > KEPT:
                kept.pop(rng.randrange(KEPT))
        del y, product, joined, small
    warm = len(times) // 3
    print(median(times[warm:]), mean(faults[warm:]))


if __name__ == "__main__":
    main(*sys.argv[1:])
