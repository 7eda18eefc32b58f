"""What pytest-benchmark wrote: the times of every case, and the machine that they were made on."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

FEW_ROUNDS = 8  # with fewer, quartiles say little, and the least and the most stand for them
MAKE_ONE = "make it with: pytest benchmarks --benchmark-json={}"


class Key(NamedTuple):
    """One timed case. The kind is the test function's name: warm, fresh, grid, size or threads."""

    group: str
    kind: str
    workload: str
    case: str
    threads: int

    @property
    def ours(self) -> bool:
        return self.case.startswith("tilecore")

    @property
    def words(self) -> str:
        threads = f", threads {self.threads}" if self.threads else ""
        return f"{self.workload}, {self.case}{threads} ({self.kind})"


class Times(NamedTuple):
    """The lower quartile, the median and the upper quartile: seconds, or a ratio of them."""

    low: float
    mid: float
    high: float

    def over(self, other: "Times") -> "Times":
        """The ratio, between the most that the quartiles of both leave open."""
        return Times(self.low / other.high, self.mid / other.mid, self.high / other.low)


class Run(NamedTuple):
    machine: dict[str, str]
    times: dict[Key, Times]
    nbytes: dict[Key, int]
    shapes: dict[str, str]  # by workload


def load(path: Path) -> Run:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        found = data["machine_info"], data["benchmarks"]
    except OSError as error:
        raise SystemExit(f"{path}: {error.strerror}; {MAKE_ONE.format(path)}") from None
    except (ValueError, KeyError, TypeError):
        raise SystemExit(f"{path}: not of pytest-benchmark; {MAKE_ONE.format(path)}") from None
    run = Run(found[0], {}, {}, {})
    for benchmark in found[1]:
        params = benchmark["params"] or {}
        if "workload" not in params:
            continue  # the kernels have a report of their own
        name, shape, reps, dtype = params["workload"]
        kind = benchmark["name"].partition("[")[0].removeprefix("test_")
        case, threads = params["case"], params.get("threads", 0)
        key = Key(benchmark["group"], kind, name, case, threads)
        stats = benchmark["stats"]
        low, high = ("min", "max") if stats["rounds"] < FEW_ROUNDS else ("q1", "q3")
        run.times[key] = Times(stats[low], stats["median"], stats[high])
        run.nbytes[key] = benchmark["extra_info"]["output bytes"]
        run.shapes[name] = " × ".join(f"({','.join(map(str, part))})" for part in (shape, reps))
        run.shapes[name] += f" {dtype}"
    if not run.times:
        raise SystemExit(f"{path}: no case of benchmarks/ in it")
    return run


def pool(several: Iterable[Times]) -> Times:
    """Several runs as one: what any of them leaves open stays open."""
    lows, mids, highs = zip(*several, strict=True)
    return Times(min(lows), median(mids), max(highs))


def merge(runs: Sequence[Run]) -> Run:
    keys = [key for key in runs[0].times if all(key in run.times for run in runs)]
    times = {key: pool(run.times[key] for run in runs) for key in keys}
    busiest = max((run.machine for run in runs), key=others_share)
    return runs[0]._replace(times=times, machine=busiest)


def others_share(machine: dict[str, str]) -> int:
    """What other processes took of the processors' time, in per cent."""
    return int(machine.get("other processes", "0%").partition("%")[0])
