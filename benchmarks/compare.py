"""tilecore's default call against every installed peer, paired and interleaved in one process.

    python benchmarks/compare.py [--grid] [--seconds 3] [--only "short rows"] [--peers numpy jax]

Prints a Markdown table. A ratio is the peer's time over tilecore's: above 1, tilecore is faster.
Each is the median of many pairs, measured one directly after the other, with its quartiles.
"""

import argparse
import time
from statistics import median, quantiles
from timeit import Timer

import machine
import numpy as np
from peers import BOUNDS, PEERS, TILECORE
from workloads import WORKLOADS, Workload, grid, verify

SAMPLE_SECONDS = 0.002  # the least that one sample lasts
SETTLE_SECONDS = 0.01  # some libraries' threads go on spinning for milliseconds after a call
LEAST_PAIRS = 5

# Bounds, each beside the call that it bounds, for outputs of so many bytes.
BOUND_PAIRS = [
    ("empty", "tilecore", 0, 2**10),
    ("memset", "tilecore out 1 thread", 2**12, None),
    ("memset 2 threads", "tilecore out 2 threads", 2**20, None),
]


class Side:
    """One call, and how often to make it so that a sample is long enough."""

    def __init__(self, call):
        self.timer = Timer(call)
        self.call = call
        self.times = 1
        while (taken := self.timer.timeit(self.times)) < SAMPLE_SECONDS:
            # Never more than tenfold, for the first calls of anything are slow.
            wanted = 1.2 * self.times * SAMPLE_SECONDS / taken
            self.times = int(min(10 * self.times, wanted)) + 1

    def sample(self) -> float:
        """Seconds a call; each result is dropped before the next call."""
        time.sleep(SETTLE_SECONDS)
        self.call()
        return self.timer.timeit(self.times) / self.times


def prepare(case: str, x: np.ndarray, reps: tuple[int, ...]) -> Side | None:
    """A case whose result is right; None where it is not installed."""
    try:
        call = (TILECORE | PEERS | BOUNDS)[case](x, reps)
    except ImportError:
        return None
    if case not in BOUNDS:
        verify(np.asarray(call()), x, reps)
    return Side(call)


def compare(workload: Workload, peers: list[str], seconds: float) -> dict[str, list[float]]:
    """Paired ratios by peer and bound; under "tilecore", its default call's own seconds."""
    x = workload.input()
    sides: dict[str, Side | None] = {}
    pairs = [(peer, "tilecore") for peer in peers]
    for bound, case, least, most in BOUND_PAIRS:
        if workload.nbytes >= least and (most is None or workload.nbytes < most):
            pairs.append((bound, case))
    for case in dict.fromkeys(name for pair in pairs for name in pair):
        sides[case] = prepare(case, x, workload.reps)
    found: dict[str, list[float]] = {"tilecore": []}
    end = time.perf_counter() + seconds
    count = 0
    while count < LEAST_PAIRS or time.perf_counter() < end:
        for rival, case in pairs:
            a, b = sides[rival], sides[case]
            if a is None or b is None:
                continue
            if count % 2:
                theirs, ours = a.sample(), b.sample()
            else:
                ours, theirs = b.sample(), a.sample()
            found.setdefault(rival, []).append(theirs / ours)
            if case == "tilecore":
                found["tilecore"].append(ours)
        count += 1
    return found


def cell(ratios: list[float] | None) -> str:
    if not ratios:
        return ""
    low, _, high = quantiles(ratios, n=4)
    return f"**{median(ratios):.2f}** {low:.2f}–{high:.2f}"


def row(workload: Workload, found: dict[str, list[float]], columns: list[str]) -> list[str]:
    def numbers(values):
        return "(" + ",".join(map(str, values)) + ")"

    return [
        workload.name,
        f"{numbers(workload.shape)} × {numbers(workload.reps)} {workload.dtype}",
        f"{workload.nbytes / 1e6:.3g}",
        f"{1e6 * median(found['tilecore']):.4g}" if found["tilecore"] else "",
        *(cell(found.get(column)) for column in columns),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--grid", action="store_true", help="the grid instead of the table")
    parser.add_argument("--seconds", type=float, default=3, help="for each workload, about")
    parser.add_argument("--only", nargs="+", help="these workloads")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    arguments = parser.parse_args()
    workloads = grid() if arguments.grid else WORKLOADS
    if arguments.only:
        unknown = set(arguments.only) - {workload.name for workload in workloads}
        if unknown:
            parser.error(f"unknown: {', '.join(sorted(unknown))}")
        workloads = [workload for workload in workloads if workload.name in arguments.only]
    for what, said in machine.describe().items():
        print(f"- {what}: {said}")
    columns = arguments.peers + [bound for bound, *_ in BOUND_PAIRS]
    titles = arguments.peers + [f"{bound} ÷ {case}" for bound, case, *_ in BOUND_PAIRS]
    print(f"\n| workload | input × repeats | MB | tilecore µs | {' | '.join(titles)} |")
    print("| --- " * (4 + len(titles)) + "|")
    behind = []
    for workload in workloads:
        found = compare(workload, arguments.peers, arguments.seconds)
        print(f"| {' | '.join(row(workload, found, columns))} |", flush=True)
        for peer in arguments.peers:
            # Beyond noise: three pairs of four say so.
            if peer in found and quantiles(found[peer], n=4)[2] < 1:
                behind.append(f"{workload.name}: {peer} takes {median(found[peer]):.2f}")
    print("\nBehind a peer: " + ("; ".join(behind) or "nowhere") + ".")


if __name__ == "__main__":
    main()
