"""The rate of each kernel of each instruction set, relative to memset, to plain stores and to the best other kernel.

    python benchmarks/kernels.py [--full]

Compiles kernels.c, calls it at points, and prints Markdown tables.
"""

import argparse
import ctypes
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import NamedTuple

import machine
import numpy as np
from runs import Key, Run
from tables import pivot, size, table
from timing import in_turn

HERE = Path(__file__).parent
COMPILER = os.environ.get("CC", "cc").split()
BLOCK = 16 * 1024  # TILECORE_BLOCK_BYTES: the most that tilecore repeats after it is written by one call of a kernel
CHUNK = 128 * 1024  # the most that it writes by one call
ROUNDS, LARGE_ROUNDS, LARGE_BYTES = 15, 7, 2**24
SAMPLE_SECONDS = 0.0003  # the least that one sample lasts


class Point(NamedTuple):
    """`rows` rows of `row` bytes, `pitch` bytes apart in the source, each written `repeats` times."""

    row: int
    repeats: int
    rows: int
    pitch: int

    @property
    def nbytes(self) -> int:
        return self.row * self.repeats * self.rows

    @property
    def words(self) -> str:
        apart = f", {self.pitch} apart" if self.pitch != self.row else ""
        return f"{self.row} × {self.repeats}{apart}, {size(self.nbytes)}"


def points(full: bool) -> list[Point]:
    """Rows of every kernel: dense, apart, and one hot block to many places, far more than a cache holds."""
    rows = [1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 17, 24, 31, 32, 33, 40, 48, 50, 63, 64, 65]
    rows += [80, 96, 100, 127, 128, 129, 192, 256, 400, 1000, 4096]
    dense = product((BLOCK, CHUNK, 2**22) if full else (BLOCK, CHUNK), rows, (2, 3, 5, 7, 9, 16, 64, 256))
    found = [Point(row, n, nbytes // (row * n), row) for nbytes, row, n in dense if row * n <= nbytes]
    found += [Point(row, 1, BLOCK // row, pitch) for row in rows[::3] for pitch in (row + 1, 2 * row)]
    return found + [Point(BLOCK, mib * 2**20 // BLOCK, 1, BLOCK) for mib in ((64, 256) if full else (64,))]


class Job(ctypes.Structure):
    """The beginning of the one in kernels.c."""

    _fields_ = [("next", ctypes.c_void_p), ("set", ctypes.c_char_p), ("kernel", ctypes.c_char_p)]
    _fields_ += [("chosen", ctypes.c_int)]


class Kernel:
    """A kernel at a point, and how often to call it in one sample."""

    def __init__(self, call):
        self.call, self.times = call, 1
        self.times = int(SAMPLE_SECONDS / min(self.sample() for _ in range(5))) + 1

    def sample(self) -> float:
        begin = time.perf_counter()
        self.call(self.times)
        return (time.perf_counter() - begin) / self.times


def compile_c(folder: str, name: str, *options: str | Path) -> Path:
    """The library of a source of this name in benchmarks/."""
    path = Path(folder, f"{name}.so")
    command = [*COMPILER, "-O3", "-shared", "-fPIC", *options, HERE / f"{name}.c", "-o", path]
    subprocess.run(command, check=True)
    return path


def build(folder: str) -> ctypes.CDLL:
    core = HERE.parent / "tilecore" / "_core"
    path = compile_c(folder, "kernels", "-falign-loops=64", f"-I{core}", core / "kernels" / "kernels.c")
    loaded = ctypes.CDLL(str(path))
    loaded.list_jobs.argtypes, loaded.list_jobs.restype = [ctypes.c_ssize_t] * 4, ctypes.c_void_p
    loaded.run_job.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int]
    return loaded


def time_point(library: ctypes.CDLL, point: Point) -> list[tuple[str, str, bool, list[float]]]:
    """Of each kernel that can serve it: set, name, whether it is the chosen one, and seconds by round."""
    src = np.resize(np.arange(1, 252, dtype="u1"), (point.rows, point.pitch))
    wanted, dst = np.tile(src[:, : point.row], point.repeats), np.ones(point.nbytes, "u1")
    jobs, address = [], library.list_jobs(*point)
    while address:
        job = Job.from_address(address)
        call = partial(library.run_job, address, dst.ctypes.data, src.ctypes.data)
        jobs.append((job.set.decode(), job.kernel.decode(), bool(job.chosen), call))
        dst[:] = 0
        call(1)
        if jobs[-1][1] not in ("memset", "stores") and not np.array_equal(dst, wanted.ravel()):
            raise AssertionError(f"wrong bytes by {jobs[-1]} at {point}")
        address = job.next
    rounds = LARGE_ROUNDS if point.nbytes >= LARGE_BYTES else ROUNDS
    found = in_turn({job: Kernel(job[3]) for job in jobs}, least=rounds, seconds=0)
    return [(*job[:3], samples) for job, samples in found.items()]


def time_all(points: Iterable[Point]) -> tuple[Run, list[Key]]:
    """All times, and the chosen kernels. The kind is the instruction set, and the case is the kernel: each set has
    memset and memcpy too, as all took turns."""
    run, chosen = Run({}, {}, {}, {}), []
    with tempfile.TemporaryDirectory() as folder:
        library = build(folder)
        for point in dict.fromkeys(points):
            found = time_point(library, point)
            sets = dict.fromkeys(isa for isa, *_ in found if isa != "libc")
            for isa, kernel, is_chosen, samples in found:
                for kind in sets if isa == "libc" else [isa]:
                    run.samples[Key(kind, point.words, kernel)] = samples
                if is_chosen:
                    chosen.append(Key(isa, point.words, kernel))
    return run, chosen


def speed(run: Run, key: Key, other: str) -> float:
    """Its speed relative to the other's: the median over rounds, each of which timed both."""
    return run.ratio(key, other).mid


def report(run: Run, chosen: list[Key]) -> str:
    def spread(values: list[float]) -> str:
        return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"

    def best_other(key: Key) -> str:
        """The kernel of its set that would serve its rows if it did not exist, or memcpy."""
        cases = {other.case for other in run.samples if other.group == key.group}
        cases -= {key.case, "memset", "stores", "stream"}
        return max(cases, key=lambda case: speed(run, key._replace(case=case), key.case))

    # stream is chosen by the size of the whole output, which is not known here.
    keys = sorted([*chosen, *(key for key in run.samples if key.case == "stream")], key=lambda key: key.case)
    others = {key: best_other(key) for key in keys}
    cells = []
    for key in keys:
        for name, other in (("of memset", "memset"), ("of stores", "stores"), ("over the best other", others[key])):
            cells.append(((key.kind, key.case), name, speed(run, key, other)))
    text = "### Speed of each kernel: median (least to most) over the points for which its set chooses it\n\n"
    text += pivot(["set", "kernel"], cells, spread)
    text += "\n### The chosen kernel at each point, and its speed relative to memset's and to plain stores'\n\n"
    bounds = {key: [f"{speed(run, key, bound):.2f}" for bound in ("memset", "stores")] for key in chosen}
    points = (((key.workload,), key.kind, " ".join([key.case, *bounds[key]])) for key in chosen)
    text += pivot(["row × repeats, output"], points)
    text += "\n### Where another kernel of the set, or memcpy, is over 10 % faster than the chosen one\n\n"
    gains = [(key, 1 / speed(run, key, others[key])) for key in chosen]
    better = [[key.kind, key.workload, key.case, others[key], f"{gain:.2f}"] for key, gain in gains if gain > 1.1]
    return text + table(["set", "row × repeats, output", "chosen", "faster", "speed relative to the chosen"], better)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--full", action="store_true", help="also outputs of 4 MiB")
    arguments = parser.parse_args()
    run, chosen = time_all(points(arguments.full))
    compiler = subprocess.check_output([*COMPILER, "--version"], text=True).partition("\n")[0]
    print("".join(f"- {what}: {said}\n" for what, said in (machine.describe() | {"compiler": compiler}).items()))
    print(report(run, chosen))


if __name__ == "__main__":
    main()
