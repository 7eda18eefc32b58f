"""Bytes per cycle of each kernel of each instruction set, relative to the next simpler one too.

    python benchmarks/kernels.py [--full | --rates]

Compiles kernels.c, feeds it points, and prints Markdown tables.
"""

import argparse
import csv
import subprocess
import tempfile
from pathlib import Path
from statistics import median
from typing import NamedTuple

import machine
from tables import table

HERE = Path(__file__).parent
BLOCK = 32 * 1024  # what tilecore writes by one call of a kernel
SETS = ("scalar", "ssse3", "avx2", "avx512bw", "avx512vbmi", "arm64")  # plainest first

# Every kernel, and the one that would serve its rows if it did not exist.
SIMPLER = {
    "permute": "rotate",
    "rotate": "copies",
    "spread": "copies",
    "join": "copies",
    "expand": "pattern",
    "pattern": "copies",
    "hold": "copies",
    "doubling": "hold",
    "copies": "memcpy",
    "stream": "copies",
}


class Point(NamedTuple):
    row: int
    repeats: int
    rows: int
    pitch: int
    threads: int = 1


def points(full: bool) -> dict[str, list[Point]]:
    """The rows that each kernel is timed on."""

    def dense(repeats_of: dict[int, tuple[int, ...]], nbytes: int) -> list[Point]:
        return [
            Point(row, repeats, max(1, nbytes // (row * repeats)), row)
            for row, counts in repeats_of.items()
            for repeats in counts
        ]

    # Row bytes: repeats.
    expand = {1: (2, 3, 16, 64), 2: (3, 32), 3: (2, 5, 21), 4: (2, 5, 16), 5: (3, 12), 7: (2, 9)}
    expand |= {8: (2, 8), 12: (2, 5), 13: (3,), 16: (2, 4)}
    pattern = {1: (100,), 2: (40,), 3: (100,), 4: (64,), 8: (33,), 12: (16,), 13: (7,), 16: (16,)}
    pattern |= {17: (2,), 24: (3, 16), 31: (3,), 32: (2, 16)}
    hold = {33: (4,), 40: (3,), 48: (8,), 63: (2,), 64: (2, 16), 65: (4,), 80: (4,), 96: (2, 16)}
    hold |= {17: (3,), 24: (4,), 32: (2,), 100: (4,), 127: (3,), 128: (4,), 192: (4,), 256: (4,)}
    copies = {130: (4,), 200: (4,), 256: (4,), 400: (4,), 1000: (4,), 4096: (4,)}
    doubling = {row: (BLOCK // 4 // row, BLOCK // row) for row in (33, 40, 65, 96, 100, 127)}
    permute = expand | {17: (2, 4), 24: (3,), 33: (4,), 48: (2,), 63: (2,)}
    rotate = pattern | {33: (16,), 50: (4,), 64: (4,), 65: (2, 4), 80: (4,), 100: (4,), 127: (4,)}
    join = {65: (4,), 100: (4,), 129: (4,)} | copies
    by_size = {"permute": permute, "rotate": rotate, "expand": expand, "pattern": pattern}
    by_size |= {"hold": hold, "join": join, "doubling": doubling, "copies": copies}
    chosen = {kernel: dense(rows, BLOCK) for kernel, rows in by_size.items()}
    if full:
        for kernel, rows in by_size.items():
            chosen[kernel] += dense(rows, 4 * 2**20)
    apart = (1, 2, 3, 4, 8, 12, 16, 24, 48, 100)
    chosen["spread"] = [Point(row, 1, BLOCK // row, pitch) for row in apart for pitch in (row + 1, 2 * row)]
    chosen["copies"] += chosen["spread"]
    # One hot block to many places, far more than a cache holds.
    counts = [mib * 2**20 // BLOCK for mib in ((64, 256) if full else (64,))]
    chosen["stream"] = [Point(BLOCK, n, 1, BLOCK, threads) for n in counts for threads in (1, 2)]
    return chosen


def rate_points() -> dict[str, list[Point]]:
    """Rows of every length, by the size of the output: in the first-level cache, and beyond it."""
    rows = [*range(1, 101), 128, 160, 200, 256, 300, 512, 1000, 1024, 2048, 4096, 8192]
    return {
        f"{kib} KiB": [Point(row, 4, kib * 256 // row, row) for row in rows if row <= kib * 256]
        for kib in (16, 64, 256, 1024)
    }


class Timing(NamedTuple):
    """One kernel of one instruction set at one point; `ns` holds a time for each round."""

    nbytes: int
    chosen: bool
    ns: list[float]
    ghz: float

    @property
    def bytes_per_ns(self) -> float:
        return self.nbytes / median(self.ns)

    @property
    def bytes_per_cycle(self) -> float:
        return self.bytes_per_ns / self.ghz

    def gain_over(self, other: "Timing") -> float:
        """Speed relative to the other's: the median over rounds, each of which timed both."""
        return median(b / a for a, b in zip(self.ns, other.ns, strict=True))


Timings = dict[tuple[str, str], Timing]  # by instruction set (or "libc") and kernel


def run(wanted: list[Point]) -> dict[Point, Timings]:
    """Compile and time."""
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder, "kernels"))
        core = HERE.parent / "tilecore" / "_core"
        sources = [str(HERE / "kernels.c"), str(core / "kernels" / "kernels.c")]
        flags = ["-O3", "-falign-loops=64", "-pthread", f"-I{core}", *sources, "-o", program]
        subprocess.run([machine.COMPILER, *flags], check=True)
        lines = "".join(",".join(map(str, point)) + "\n" for point in wanted)
        done = subprocess.run([program], input=lines, stdout=subprocess.PIPE, text=True, check=True)
    times: dict[Point, dict[tuple[str, str], list[dict[str, str]]]] = {}
    for line in csv.DictReader(done.stdout.splitlines()):
        point = Point(*(int(line[name]) for name in Point._fields))
        times.setdefault(point, {}).setdefault((line["set"], line["kernel"]), []).append(line)
    found = {}
    for point, by_kernel in times.items():
        # The clock is the same for all; its median ignores moments when the core was taken away.
        ghz = median(float(line["ghz"]) for lines in by_kernel.values() for line in lines)
        found[point] = {}
        for key, of in by_kernel.items():
            ns = [float(line["ns"]) for line in of]
            found[point][key] = Timing(int(of[0]["bytes"]), of[0]["chosen"] == "1", ns, ghz)
    return found


def simpler(kernel: str, isa: str) -> tuple[str, str]:
    other = SIMPLER[kernel]
    return ("libc" if other == "memcpy" else isa, other)


def report_kernel(kernel: str, wanted: list[Point], found: dict[Point, Timings]) -> str:
    """All points of one kernel."""
    sets = [isa for isa in SETS if any((isa, kernel) in found[point] for point in wanted)]
    rows = []
    for point in wanted:
        at = found[point]
        memset = at["libc", "memset"]
        threads = f", {point.threads} threads" if point.threads > 1 else ""
        cells = [f"{point.row} × {point.repeats}{threads}", f"{memset.nbytes // 1024} KiB"]
        for isa in sets:
            this = at.get((isa, kernel))
            cells.append(f"{this.bytes_per_cycle:.1f}" if this else "")
        cells += [f"{memset.bytes_per_cycle:.1f}", f"{memset.bytes_per_ns:.1f}"]
        for isa in sets:
            this, other = at.get((isa, kernel)), at.get(simpler(kernel, isa))
            cells.append(f"{this.gain_over(other):.2f}" if this and other else "")
        rows.append(cells)
    header = ["row × repeats", "output", *(f"{isa} B/cycle" for isa in sets)]
    header += ["memset B/cycle", "memset B/ns"]
    header += [f"{isa} over {SIMPLER[kernel]}" for isa in sets]
    return f"### {kernel}\n\n{table(header, rows)}"


def spread(values: list[float]) -> str:
    """Median (least to most)."""
    if not values:
        return ""
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def report_gains(wanted: dict[str, list[Point]], found: dict[Point, Timings]) -> str:
    """One line for each kernel of each set: over the next simpler kernel, and set."""
    rows = []
    for kernel, its_points in wanted.items():
        last = None
        for isa in SETS:
            timed = [found[p] for p in its_points if (isa, kernel) in found[p]]
            if not timed:
                continue
            other = simpler(kernel, isa)
            over_kernel = [at[isa, kernel].gain_over(at[other]) for at in timed if other in at]
            over_set = [at[isa, kernel].gain_over(at[last, kernel]) for at in timed if (last, kernel) in at]
            of_memset = [1 / at["libc", "memset"].gain_over(at[isa, kernel]) for at in timed]
            row = [isa, kernel, f"{SIMPLER[kernel]}: {spread(over_kernel)}"]
            row += [f"{last}: {spread(over_set)}" if over_set else "", spread(of_memset)]
            rows.append(row)
            last = isa
    header = ["set", "kernel", "speed relative to the simpler kernel", "to the simpler set", "to memset"]
    return f"### What each brings: median (least to most) over its points\n\n{table(header, rows)}"


def report_choices(found: dict[Point, Timings]) -> str:
    """Points at which another kernel of the same set is over 10 % faster than the chosen one."""
    rows = []
    for point, at in found.items():
        for (isa, kernel), this in at.items():
            if not this.chosen:
                continue
            # stream is chosen by the size of the whole output, which is not known here.
            others = {k: t for (s, k), t in at.items() if s == isa and k not in (kernel, "stream")}
            best = min(others, key=lambda k: median(others[k].ns), default=kernel)
            if best != kernel and others[best].gain_over(this) > 1.1:
                row = [isa, f"{point.row} × {point.repeats}", f"{this.nbytes // 1024} KiB"]
                rows.append([*row, kernel, best, f"{others[best].gain_over(this):.2f}"])
    header = ["set", "row × repeats", "output", "chosen", "faster", "speed relative to the chosen"]
    return f"### Where another kernel beats the chosen one\n\n{table(header, rows)}"


def report_rates(wanted: dict[str, list[Point]], found: dict[Point, Timings]) -> str:
    """The chosen kernels' rates relative to memset's."""
    rows = []
    for isa in SETS:
        cells = []
        for its_points in wanted.values():
            rates = {
                point.row: 1 / at["libc", "memset"].gain_over(this)
                for point in its_points
                for at in [found[point]]
                for (its_set, _), this in at.items()
                if its_set == isa and this.chosen
            }
            if rates:
                worst = min(rates, key=lambda row: rates[row])
                cells.append(f"{median(rates.values()):.2f}, {rates[worst]:.2f} ({worst})")
        if cells:
            rows.append([isa, *cells])
    title = "### Rate relative to memset's, four repeats, without preparation: median over rows of 1 "
    title += "to 100 bytes and some longer ones, and the worst row"
    return f"{title}\n\n{table(['set', *wanted], rows)}"


def report(wanted: dict[str, list[Point]], found: dict[Point, Timings]) -> str:
    parts = [report_kernel(kernel, its_points, found) for kernel, its_points in wanted.items()]
    return "\n\n".join([*parts, report_gains(wanted, found), report_choices(found)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--full", action="store_true", help="also outputs beyond one block")
    parser.add_argument("--rates", action="store_true", help="rows of every length instead")
    arguments = parser.parse_args()
    wanted = rate_points() if arguments.rates else points(arguments.full)
    found = run(list(dict.fromkeys(p for its_points in wanted.values() for p in its_points)))
    machine.show()
    print(f"{report_rates(wanted, found) if arguments.rates else report(wanted, found)}")


if __name__ == "__main__":
    main()
