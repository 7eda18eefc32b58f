"""What each way to get a large tiling costs: time to get, read, write and free it, and memory.

    python benchmarks/memory.py [--mib 256] [--rounds 7]

Every way does the same tiling: a block of 1 MiB, repeated to --mib MiB. The ways take turns in random
order, and each figure is a median.

    first        the first call: no memory of an earlier result is kept
    again        a later call, after the earlier result was dropped
    in parts     regions of 1 MiB, one after the other into one buffer, each read at once
"""

import argparse
import time
from statistics import median

import machine
import numpy as np
from peers import onnxruntime as prepare_onnxruntime
from tables import table
from timing import shuffle
from workloads import verify

import tilecore

MIB = 2**20
STEPS = ("get", "read", "free", "write")
X = np.resize(np.arange(251, dtype="f4"), MIB // 4)


class Ways:
    """The ways to get `repeats` blocks; each may begin with a preparation that is not timed."""

    def __init__(self, repeats: int):
        self.reps = (repeats, 1)
        self.shape = (repeats, X.size)
        self.out = np.ones(self.shape, X.dtype)
        self.part = np.ones((1, X.size), X.dtype)
        self.plan = tilecore.TilePlan(X.shape, self.reps, X.dtype)
        column = np.ones((1, 1), X.dtype)
        self.get = {
            "numpy.tile": lambda: np.tile(X, self.reps),
            "tile, first": lambda: tilecore.tile(X, self.reps),
            "tile, again": lambda: tilecore.tile(X, self.reps),
            "tile, out=": lambda: tilecore.tile(X, self.reps, self.out),
            "TilePlan, out=": lambda: self.plan.tile(X, self.out),
            "tile_region, in parts": None,
            "tile_mapped": lambda: tilecore.tile_mapped(X, self.reps),
            "tile_view": lambda: tilecore.tile_view(column, self.shape),
        }
        try:
            self.get["onnxruntime"] = prepare_onnxruntime(X[None], self.reps)
        except ImportError:
            pass

    def prepare(self, way: str) -> None:
        """Drop an earlier result; its memory stays idle for "tile, again", and else goes back."""
        self.get["tile, again"]()
        if way != "tile, again":
            tilecore.release_memory()

    def check(self) -> None:
        for way, get in self.get.items():
            if way == "tile_view":
                assert get().shape == self.shape and get().strides[1] == 0
            elif get:
                verify(get().reshape(self.shape), X[None], self.reps)

    def parts(self) -> None:
        for row in range(self.reps[0]):
            tilecore.tile_region(X, self.reps, (row, 0), (row + 1, X.size), self.part)
            read(self.part)


def read(array: np.ndarray) -> None:
    if 0 in array.strides:  # a view
        array.max()
    else:
        array.reshape(-1).view("i8").max()


def seconds(call, *arguments) -> float:
    begin = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - begin


def footprint() -> int:
    """This process' share of memory in bytes; a page that it maps several times counts once."""
    try:
        with open("/proc/self/smaps_rollup") as file:
            return 1024 * next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    except OSError:
        return 0


def measure(ways: Ways, way: str) -> dict[str, float]:
    """Get, read all of it and free; and once more to write all of it."""
    if way == "tile_region, in parts":
        return {"get": 0, "read": seconds(ways.parts), "free": 0, "memory": ways.part.nbytes}
    found = {}
    ways.prepare(way)
    before = footprint()
    begin = time.perf_counter()
    result = ways.get[way]()
    found["get"] = time.perf_counter() - begin
    found["read"] = seconds(read, result)
    found["memory"] = ways.out.nbytes if "out=" in way else footprint() - before
    begin = time.perf_counter()
    del result
    found["free"] = time.perf_counter() - begin
    ways.prepare(way)
    result = ways.get[way]()
    if result.flags.writeable:
        found["write"] = seconds(result.fill, 2)
    return found


def show(repeats: int, rounds: int) -> None:
    ways = Ways(repeats)
    ways.check()
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways.get}
    for _ in range(rounds):
        for way in shuffle(ways.get):
            found[way].append(measure(ways, way))

    def against(way: str, whats: tuple[str, ...]) -> str:
        """The ratio to numpy.tile, round by round."""
        pairs = zip(found["numpy.tile"], found[way], strict=True)
        ratios = [sum(n[w] for w in whats) / max(1e-9, sum(o[w] for w in whats)) for n, o in pairs]
        return f"{median(ratios):.1f}"

    rows = []
    for way, samples in found.items():
        cost = {what: median(sample[what] for sample in samples) for what in samples[0]}
        ms = [f"{1e3 * cost[what]:.3g}" if what in cost else "" for what in STEPS]
        got = against(way, ("get",)) if cost["get"] > 1e-6 else ""
        total = against(way, ("get", "read", "free"))
        rows.append([way, ms[0], got, *ms[1:], total, f"{cost['memory'] / MIB:.0f}"])
    print(f"1 MiB × {repeats}, milliseconds; numpy ÷: numpy.tile's time over this one's\n")
    header = ["get", "numpy ÷", "read all", "free", "write all", "numpy ÷ get, read, free", "MiB"]
    print(table(["way", *header], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mib", type=int, default=256, help="of the result")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    machine.show()
    show(arguments.mib, arguments.rounds)


if __name__ == "__main__":
    main()
