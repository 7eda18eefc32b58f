"""What pytest-benchmark wrote: the times of every case, and the machine that they were made on."""

import gzip
import json
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from machine import others_share
from peers import PEERS

FEW_ROUNDS = 8  # with fewer, quartiles say little, and the least and the most stand for them
MAKE_ONE = "make it with: pytest benchmarks --benchmark-json={}"


class Key(NamedTuple):
    """One timed case. The kind is the test function's name: warm, size, fresh, work and so on."""

    kind: str
    workload: str
    case: str

    @property
    def group(self) -> tuple[str, str]:
        """The cases of one group took turns."""
        return self.kind, self.workload

    @property
    def ours(self) -> bool:
        return self.case.startswith("tilecore")

    @property
    def words(self) -> str:
        return f"{self.workload}, {self.case} ({self.kind})"


class Times(NamedTuple):
    """The lower quartile, the median and the upper quartile: seconds, or a ratio of them."""

    low: float
    mid: float
    high: float


class Run(NamedTuple):
    machine: dict[str, str]
    samples: dict[Key, list[float]]  # seconds, by round
    nbytes: dict[tuple[str, str], int]  # of the output, by kind and workload
    shapes: dict[tuple[str, str], str]  # by kind and workload

    def times(self, key: Key) -> Times:
        return spread(self.samples[key])

    def calls(self, kind: str, case: str = "tilecore") -> list[Key]:
        return [key for key in self.samples if (key.kind, key.case) == (kind, case)]

    def others(self, kind: str) -> list[str]:
        return list(dict.fromkeys(key.case for key in self.samples if key.kind == kind and not key.ours))

    def ratios(self, keys: Iterable[Key], cases: Iterable[str] = PEERS) -> list[tuple[Key, str, Times]]:
        """Each key, with each of the cases that took turns with it."""
        pairs = ((key, case, self.ratio(key, case)) for key in keys for case in cases)
        return [(key, case, ratio) for key, case, ratio in pairs if ratio]

    def ratio(self, key: Key, case: str) -> Times | None:
        """The other case's time over the key's, round by round: they took turns."""
        other = self.samples.get(key._replace(case=case))
        pairs = zip(other or (), self.samples[key], strict=False)
        return spread([theirs / ours for theirs, ours in pairs]) if other else None


def spread(values: Sequence[float]) -> Times:
    if len(values) < FEW_ROUNDS:
        return Times(min(values), median(values), max(values))
    return Times(*quantiles(values, n=4))


def read(path: Path) -> dict:
    content = path.read_bytes()
    return json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)


def keep(path: Path, folder: Path) -> None:
    """What `load` reads of the file, compressed into the folder: every table can be made again from it."""
    data = read(path)
    data["benchmarks"] = [
        {what: it[what] for what in ("name", "params", "extra_info")}
        | {"stats": {"data": [float(f"{seconds:.6g}") for seconds in it["stats"]["data"]]}}
        for it in data["benchmarks"]
    ]
    text = json.dumps({what: data.get(what) for what in ("machine_info", "commit_info", "datetime", "benchmarks")})
    (folder / f"{path.name.partition('.')[0]}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def load(path: Path) -> Run:
    try:
        data = read(path)
        found = data["machine_info"], data["benchmarks"]
    except OSError as error:
        raise SystemExit(f"{path}: {error.strerror}; {MAKE_ONE.format(path)}") from None
    except (ValueError, KeyError, TypeError):
        raise SystemExit(f"{path}: not of pytest-benchmark; {MAKE_ONE.format(path)}") from None
    commit = data.get("commit_info") or {}
    changed = ", with changes" if commit.get("dirty") else ""
    about = {"commit": (commit.get("id") or "unknown")[:10] + changed, "date": (data.get("datetime") or "")[:10]}
    run = Run(found[0] | about, {}, {}, {})
    for benchmark in found[1]:
        params = benchmark["params"] or {}
        if "workload" not in params:
            continue  # of another project
        name, shape, reps, dtype = params["workload"]
        kind = benchmark["name"].partition("[")[0].removeprefix("test_")
        key = Key(kind, name, ", ".join(str(params[what]) for what in params if what != "workload"))
        run.samples[key] = benchmark["stats"]["data"]
        run.nbytes[key.group] = benchmark["extra_info"]["output bytes"]
        run.shapes[key.group] = " × ".join(f"({','.join(map(str, part))})" for part in (shape, reps)) + f" {dtype}"
    if not run.samples:
        raise SystemExit(f"{path}: no case of benchmarks/ in it")
    return run


def pool(several: Iterable[Times]) -> Times:
    """The outermost quartiles of several runs, and the median of their medians."""
    lows, mids, highs = zip(*several, strict=True)
    return Times(min(lows), median(mids), max(highs))


def merge(runs: Sequence[Run]) -> Run:
    """One run of several, of the same cases or of different ones. The cases of a group took turns, so a case stays
    only if every run with its group has it."""
    merged = Run(busiest(runs), {}, {}, {})
    for run in runs:
        merged.nbytes.update(run.nbytes)
        merged.shapes.update(run.shapes)
    for key in dict.fromkeys(key for run in runs for key in run.samples):
        parts = [run.samples.get(key, []) for run in runs if key.group in run.nbytes]
        if all(parts):
            merged.samples[key] = list(chain(*parts))
    return merged


def busiest(runs: Sequence[Run]) -> dict[str, str]:
    return max((run.machine for run in runs), key=others_share)
