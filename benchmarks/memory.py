"""What each way to get a large tiling costs: to get it, read it, write it, free it, and in memory.

    python benchmarks/memory.py [--mib 256] [--rounds 7] [--sizes]

Every way does the same tiling: a block of 1 MiB, repeated to --mib MiB. The ways take turns in random
order, and each figure is a median. --sizes gives GB/s against the size, 1 MiB to 1 GiB, instead.

    first        the first call: there is no memory of an earlier result
    again        a call whose earlier result was dropped
    in parts     regions of 1 MiB, one after the other into one buffer: each is read and gone
"""

import argparse
import random
import time
from collections.abc import Iterable
from statistics import median

import machine
import numpy as np
from peers import onnxruntime as prepare_onnxruntime
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
        """Everybody finds the same: an earlier result, dropped; its memory at the system, or idle."""
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


def shuffled(names: Iterable[str]) -> list[str]:
    """Memory that was just freed is quickest to get again: nobody always follows the same one."""
    return random.sample(list(names), len(list(names)))


def footprint() -> int:
    """Bytes of memory that are this process' share; a page that it maps often counts once."""
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


def table(repeats: int, rounds: int) -> None:
    ways = Ways(repeats)
    ways.check()
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways.get}
    for _ in range(rounds):
        for way in shuffled(ways.get):
            found[way].append(measure(ways, way))
    middle = {
        way: {what: median(sample[what] for sample in samples) for what in samples[0]}
        for way, samples in found.items()
    }

    def against(way: str, whats: tuple[str, ...]) -> str:
        """The ratio to numpy.tile, round by round."""
        pairs = zip(found["numpy.tile"], found[way], strict=True)
        ratios = [sum(n[w] for w in whats) / max(1e-9, sum(o[w] for w in whats)) for n, o in pairs]
        return f"{median(ratios):.1f}"

    print(f"\n1 MiB × {repeats}, milliseconds; × numpy: how many times as quick\n")
    print("| way | get | × numpy | read all | free | write all | get, read, free × numpy | MiB |")
    print("| --- |" + " ---: |" * 7)
    for way, cost in middle.items():
        ms = {what: f"{1e3 * cost[what]:.3g}" if what in cost else "" for what in STEPS}
        total = against(way, ("get", "read", "free"))
        got = against(way, ("get",)) if cost["get"] > 1e-6 else ""
        print(
            f"| {way} | {ms['get']} | {got} | {ms['read']} | {ms['free']} | {ms['write']} "
            f"| {total} | {cost['memory'] / MIB:.0f} |"
        )


def sizes(rounds: int) -> None:
    for exponent in range(11):
        ways = Ways(2**exponent)
        ways.check()
        names = [way for way in ways.get if way not in ("tile_region, in parts", "tile_view")]
        if exponent == 0:
            print("\nGB/s of the call alone\n\n| MiB | " + " | ".join(names) + " |")
            print("| ---: |" + " ---: |" * len(names))
        found: dict[str, list[float]] = {way: [] for way in names}
        for _ in range(rounds):
            for way in shuffled(names):
                ways.prepare(way)
                found[way].append(seconds(ways.get[way]))
        rates = [ways.out.nbytes / median(found[way]) / 1e9 for way in names]
        print(
            f"| {2**exponent} | " + " | ".join(f"{rate:.1f}" for rate in rates) + " |", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mib", type=int, default=256, help="of the result")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sizes", action="store_true", help="GB/s against the size")
    arguments = parser.parse_args()
    for what, said in machine.describe().items():
        print(f"- {what}: {said}")
    if arguments.sizes:
        sizes(arguments.rounds)
    else:
        table(arguments.mib, arguments.rounds)


if __name__ == "__main__":
    main()
