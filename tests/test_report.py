"""benchmarks/report.py --against: what became faster or slower, over small files of pytest-benchmark."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPORT = Path(__file__).parent.parent / "benchmarks" / "report.py"
pytestmark = [pytest.mark.process, pytest.mark.tree]
NAME, SAME = "block, tilecore (warm)", "no difference beyond noise"


def version(scale=1.0, *, clock=1.0, memset=0.05, peers=(), rounds=20, spread=0.02):
    """A run: tilecore takes `scale` times as long; its samples lie up to 2 * `spread` apart."""
    times = {"tilecore": 0.1 * scale, "numpy": 0.2, "memset": memset, "torch": 0.3, **dict(peers)}
    steps = [1 + spread * (2 * n / (rounds - 1) - 1) for n in range(rounds)]
    return [
        {
            "name": "test_warm[x]",
            "params": {"workload": ("block", [4], [2], "f4"), "case": name},
            "extra_info": {"output bytes": 32},
            # Only tilecore's samples are spread: those of one round would otherwise vary alike.
            "stats": {"data": [clock * t * s if name == "tilecore" else clock * t for s in steps]},
        }
        for name, t in times.items()
    ]


@pytest.fixture
def write(tmp_path):
    def write(name, cases, busy="1%"):
        machine = {"processor": "a processor", "other processes": f"{busy} of the time"}
        no_workload = {"name": "test_dask", "params": {"case": "dask"}}
        content = {"machine_info": machine, "benchmarks": [*cases, no_workload]}
        (tmp_path / name).write_text(json.dumps(content))
        return tmp_path / name

    return write


def compare(*arguments, status=0):
    command = [sys.executable, "-X", "utf8", REPORT, *arguments]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def verdict(new, old):
    """Of tilecore's case; the verdicts are on nothing else."""
    text = compare(*new, "--against", *old)
    rows = {tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in text.splitlines()}
    found = {row[0]: row[2] for row in rows if len(row) == 3 and row[0] not in ("case", "---")}
    assert list(found) == [NAME]
    return found[NAME]


MANY = {f"peer {n}": 0.3 for n in range(40)}  # so that one that moves is no noise
STEADY = dict.fromkeys(("torch", "jax", "openvino", "onnxruntime"), 0.3)
MOVED = {"torch": 0.45, "jax": 0.2, "openvino": 0.42, "onnxruntime": 0.21}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        *[(version(), version(1.3), "slower"), (version(), version(0.7), "faster"), (version(), version(), SAME)],
        # The machine is slower, not tilecore; and the other way round.
        *[(version(), version(clock=3), SAME), (version(), version(1.3, clock=0.5), "slower")],
        # Quartiles that overlap; few rounds, so that the least and the most count; a small change.
        *[(version(**how), version(1.3, **how), SAME) for how in ({"spread": 0.3}, {"rounds": 5, "spread": 0.15})],
        (version(spread=0.15), version(1.3, spread=0.15), "slower"),
        (version(spread=0.001), version(1.03, spread=0.001), SAME),
        # Against numpy it is slower, against memset it is not.
        *[(version(peers=peers), version(1.3, memset=0.065, peers=peers), SAME) for peers in ({}, MANY)],
        # What cannot have changed moves as much as tilecore does.
        *[(version(peers=STEADY), version(1.3, peers=p), e) for p, e in ((STEADY, "slower"), (MOVED, SAME))],
    ],
)
def test_verdicts(write, old, new, expected):
    files = write("new.json", new), "--against", write("old.json", old)
    assert verdict(files[:1], files[2:]) == expected
    compare(*files, "--fail", status=int(expected == "slower"))


def test_several_runs(write):
    """Runs of one version that disagree leave open what they disagree about."""
    new = [write("1.json", version(1.3)), write("2.json", version(1.35))]
    old = [write("3.json", version()), write("4.json", version(1.05))]
    assert verdict(new, old) == "slower"
    old[1] = write("4.json", version(1.3))
    assert verdict(new, old) == SAME


def test_rounds_are_paired(write):
    """A machine that slows down and recovers changes no ratio within a round."""
    drift = [1 + (n % 7) for n in range(20)]
    cases = {scale: version(scale) for scale in (1.0, 1.3)}
    for case in (case for of_version in cases.values() for case in of_version):
        case["stats"]["data"] = [t * d for t, d in zip(case["stats"]["data"], drift, strict=True)]
    old, new = write("old.json", cases[1.0]), write("new.json", cases[1.3])
    assert verdict([new], [old]) == "slower"


def test_a_loaded_machine_is_told(write):
    quiet, busy = write("quiet.json", version()), write("busy.json", version(), "31%")
    text = compare(quiet, busy, "--against", quiet)  # the busiest of several runs
    assert text.splitlines()[2].startswith("**Made on a loaded machine: other processes took 31%")
    assert "loaded" not in compare(quiet, "--against", busy)


def test_nothing_to_judge(write):
    new, other = write("new.json", version()), version()
    for case in other:
        case["params"]["workload"] = ("rows", [2, 3], [1, 5], "u1")
    compare(new, "--fail", status=2)  # against what?
    compare(new, "--against", write("other.json", other), status=1)
    compare(new, "--against", write("empty.json", []), status=1)


def test_parts_make_one_report(write):
    """And nothing in which tilecore is slower is left out of its short table."""
    rows = version(4)
    for case in rows:
        case["params"]["workload"] = ("rows", [2, 3], [1, 5], "u1")
    text = compare(write("one.json", version()), write("other.json", rows))
    short = text.partition("## In short")[2].partition("## All workloads")[0]
    assert "| rows | (2,3) × (1,5) u1 | 400 ms | **0.50×** | **0.75×** |" in short
    assert "clearly slower at: rows (numpy 0.50×, torch 0.75×)" in short
    assert "| block |" not in short and "| block |" in text


def test_the_benchmarks_are_collected():
    """Without --full some have no cases."""
    pytest.importorskip("pytest_benchmark")
    command = [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", REPORT.parent]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "test_warm[a few numbers-tilecore]" in done.stdout, done.stdout
