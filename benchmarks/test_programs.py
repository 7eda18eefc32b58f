"""Programs that do other things between the calls, each in a process of its own, and the first call of a process.

A loop that does nothing but tile gets the same memory again and again. A program makes and drops other arrays too, and
then the C library gives memory back to the system and takes it anew. Beside other processes, single calls show what
several threads cost; a loop would hide it.

    python benchmarks/test_programs.py work tilecore 4.1      # one program: seconds a call
    python benchmarks/test_programs.py busy tilecore copy-13  # the same, beside two such processes for each CPU
    python benchmarks/test_programs.py sizes tilecore 35-23   # seconds a call, the peak of resident memory in MB
"""

import random
import subprocess
import sys
import time
from functools import partial
from itertools import product
from math import log
from pathlib import Path
from statistics import mean, median

import numpy as np
from machine import usable_cpus
from peers import PEERS, TILECORE
from timing import Program
from workloads import Workload, verify

CASES = TILECORE | PEERS
MEGABYTES = (0.15, 0.2, 0.4, 0.7, 1.0, 1.5, 1.9, 2.2, 4.1, 6.3, 9.5, 13, 19, 26, 31)
FIRST_MEGABYTES = (0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
USE_MEGABYTES = (1, 4, 13, 30, 100)
BUSY_MEGABYTES = (4.1, 6.3, 13, 26)
NEIGHBOURS = {
    "compute": "x = 1\nwhile True: x = x * 3 % 1000003",
    "copy": "import numpy\na, b = numpy.zeros(2**23), numpy.ones(2**23)\nwhile True: numpy.copyto(a, b)",
    "start": f"import subprocess\nwhile True: subprocess.run([{sys.executable!r}, '-c', 'import json'])",
}
SIZES = ((0, 32), (0, 6), (9, 4), (35, 23), (180, 8), (220, 32))  # MB: at most alive, the largest result
STEPS, SECONDS = 60, 1.0  # a program ends after so many, or so long
MIN_STEPS = 24
CASE_SECONDS = {"work": 4, "use": 4, "busy": 6, "first": 1.3, "sizes": 4}  # most of it starts processes


def rows(megabytes, beside=""):
    """Rows of 100 bytes, each repeated ten times."""
    return Workload(f"{beside}{megabytes} MB", (int(megabytes * 1000), 25), (1, 10), "f4")


def regime(alive, largest):
    """Of the mean size: as many are of each power of two, from 128 KiB on."""
    least, most = 2**17, largest * 1e6
    mean = (most - least) / log(most / least)
    return Workload(f"{alive}-{largest} MB", (1, 8192), (round(mean / 2**15), 1), "f4")


def choose(kind, full):
    if kind == "sizes":
        return product([regime(*sizes) for sizes in SIZES], ["tilecore", "numpy"])
    if kind == "busy":
        besides = product(NEIGHBOURS, BUSY_MEGABYTES[:: 1 if full else 2])
        return product([rows(n, f"{code}-") for code, n in besides], ["tilecore", "tilecore 1 thread", "numpy"])
    if kind == "use":
        return product(map(rows, USE_MEGABYTES), ["tilecore", "numpy"])
    megabytes = {"work": MEGABYTES, "first": FIRST_MEGABYTES}[kind][:: 2 if full else 4]
    return product(map(rows, megabytes), ["tilecore", *(PEERS if kind == "work" else ["numpy"])])


def prepare(kind, workload, case):
    x = workload.input()[:100]
    call = CASES[case](x, workload.reps)  # ImportError, if it is not installed
    verify(call(), x, workload.reps)
    return Program(__file__, kind, case, workload.name.partition(" ")[0])


def test_work(record):
    """Between the calls NumPy multiplies, concatenates, and makes three small arrays; then all are dropped."""


def test_use(record):
    """As `work`. Timed with the call: the result is summed, added to in place, and every fourth item doubled."""


def test_busy(record):
    """The same as `work`, beside two processes for each CPU."""


def test_first(record):
    """The first call of a process."""


def test_sizes(record):
    """Random sizes from 128 KiB on, as many of each power of two. Random results die when too much is alive."""


def main(kind, case, megabytes):
    rng, workload = random.Random(5), rows(float(megabytes))
    x = workload.input()
    call = CASES[case](x, workload.reps)
    times = []
    begin = time.perf_counter()
    while True:
        started = time.perf_counter()
        y = call()
        if kind == "use":
            y.sum()
            y += 1
            fourth = y.ravel()[::4] * 2
            del fourth
        times.append(time.perf_counter() - started)
        late = len(times) >= MIN_STEPS and time.perf_counter() - begin > SECONDS
        if kind == "first" or len(times) == STEPS or late:
            break
        product = np.asarray(y) * np.float32(2)
        joined = np.concatenate([product.ravel(), x.ravel()])
        small = [np.zeros(rng.randrange(1000, 60000)) for _ in range(3)]
        del y, product, joined, small
    print(median(times[len(times) // 3 :]))


def peak_memory():
    """The most that was resident, in MB; 0 on other systems than Linux."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM")), 0)


def vary(case, regime):
    most, largest = (float(word) * 1e6 for word in regime.split("-"))
    rng = random.Random(7)
    x = np.ones((1, 8192), "f4")
    sizes = [int(2**17 * (largest / 2**17) ** rng.random()) // x.nbytes for _ in range(300)]
    calls = [CASES[case](x, (size, 1)) for size in sizes]
    alive, kept, times = 0, [], []
    before, begin = peak_memory(), time.perf_counter()
    while (started := time.perf_counter()) < begin + SECONDS:
        y = rng.choice(calls)()
        kept.append(y)
        alive += y.nbytes
        del y
        while alive > most:
            k = rng.randrange(len(kept))
            alive -= kept[k].nbytes
            kept[k] = kept[-1]
            kept.pop()
        times.append(time.perf_counter() - started)
    print(mean(times[len(times) // 3 :]), peak_memory() - before)


def beside(case, regime):
    name, _, megabytes = regime.partition("-")
    neighbours = [subprocess.Popen([sys.executable, "-c", NEIGHBOURS[name]]) for _ in range(2 * usable_cpus())]
    try:
        main("busy", case, megabytes)
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()


if __name__ == "__main__":
    kind, *words = sys.argv[1:]
    {"sizes": vary, "busy": beside}.get(kind, partial(main, kind))(*words)
