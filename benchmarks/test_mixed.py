"""Random programs that tile and do two to seven other things, each in a process of its own: what a whole step costs.

Of processor time, because page faults are part of it, and other processes are not.

    python benchmarks/test_mixed.py             # all by turns: processor time, page faults, peak of memory
    python benchmarks/test_mixed.py 7 tilecore  # one: seconds and page faults of a step, peak in MB
"""

import sys
import time
from itertools import product
from random import sample
from statistics import geometric_mean, mean, median

import numpy as np
from peers import PEERS, TILECORE
from test_programs import peak_memory
from timing import Program
from workloads import Workload, verify

CASES = TILECORE | PEERS
PROGRAMS, QUICK = 80, 10
WARM, STEPS = 4, 40
ROUNDS = 5  # neighbours in a shared cache make a whole process take up to 1.6 times as long: the median counts
CASE_SECONDS = {"mixed": 3}  # most of it starts processes


def draw(number, tile):
    """An input, its repeats, and a function that does a step. Some of its arrays live until the end of the step."""
    rng = np.random.default_rng(number)
    h, w, c = int(rng.integers(60, 600)), int(rng.integers(60, 900)), int(rng.choice([1, 3, 4]))
    types, shapes, most = rng.choice(["u1", "f4", "f8"], 4), [w, (h, w, 1), (h, 1), (h, w, c)], [200, 200, 9, 200]
    made = ((rng.random(shape) * n).astype(dtype) for dtype, shape, n in zip(types, shapes, most, strict=True))
    row, mask, column, image = made
    operations = [
        lambda t: image * tile(mask, (1, 1, c))(),
        lambda t: t + column,
        lambda t: t.astype("f4"),
        lambda t: np.sqrt(image, dtype="f8"),
        lambda t: tile(column, (1, w))() * t,
        lambda t: np.where(t > 50, t, 0),
        lambda t: np.concatenate([image, image], axis=1),
        lambda t: np.zeros((h, w, c))[::7].copy(),
    ]
    chosen, kept = rng.permutation(len(operations))[: int(rng.integers(2, 8))], rng.random(len(operations)) < 0.4

    def step():
        t, alive = tile(row, (h, 1))(), {}
        for k in chosen:
            alive[k] = operations[k](t)
            if not kept[k]:
                del alive[k]

    return row, (h, 1), step


def workload(number):
    row, reps, _ = draw(number, None)
    return Workload(f"{number}", row.shape, reps, row.dtype.str[1:])


def choose(kind, full):
    return product(map(workload, range(PROGRAMS if full else QUICK)), ("tilecore", "numpy"))


def prepare(kind, workload, case):
    row, reps, _ = draw(int(workload.name), None)
    verify(CASES[case](row, reps)(), row, reps)
    return Program(__file__, workload.name, case)


def test_mixed(record):
    """A step of the program."""


def main(number, case):
    from resource import RUSAGE_SELF, getrusage  # not on Windows

    _, _, step = draw(int(number), CASES[case])
    times = []
    for count in range(WARM + STEPS):
        if count == WARM:
            before = getrusage(RUSAGE_SELF).ru_minflt
        begin = time.process_time()
        step()
        times.append(time.process_time() - begin)
    print(median(times[WARM:]), (getrusage(RUSAGE_SELF).ru_minflt - before) / STEPS, peak_memory())


def compare():
    found = {"numpy": [], "tilecore": []}
    for number in range(ROUNDS * PROGRAMS):
        for case in sample([*found], 2):
            found[case].append(Program(__file__, str(number % PROGRAMS), case).run())
    medians = (np.median(np.reshape(runs, (ROUNDS, PROGRAMS, 3)), axis=0).T for runs in found.values())
    (theirs, _, their_peak), (seconds, faults, peak) = medians
    gains, more = theirs / seconds, peak / their_peak
    print(f"numpy takes {geometric_mean(gains):.2f} times as long, at least {min(gains):.2f}; tilecore has"
          f" {mean(faults):.0f} faults a step, 16 or more in {sum(faults >= 16)} programs, and a peak of"
          f" {geometric_mean(more):.2f} of numpy's, the most {max(more):.2f}")  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:]) if sys.argv[1:] else compare()
