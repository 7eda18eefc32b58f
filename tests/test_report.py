"""benchmarks/report.py, over small files as pytest-benchmark writes them."""

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

REPORT = Path(__file__).parent.parent / "benchmarks" / "report.py"
RESULTS = REPORT.parent / "results" / "report.md"
README = REPORT.parent.parent / "README.md"
pytestmark = [pytest.mark.process, pytest.mark.tree]
BLOCK, ROWS = ("block", [4], [2], "f4"), ("rows", [2, 3], [1, 5], "u1")


def case(kind, workload, name, seconds, *, threads=None, nbytes=10**9, rounds=20, spread=0.02):
    """One timed case: its median, and quartiles that lie `spread` of it away."""
    params = {"workload": workload, "case": name} | ({"threads": threads} if threads else {})
    low, high = seconds * (1 - spread), seconds * (1 + spread)
    stats = {"min": low * 0.9, "q1": low, "median": seconds, "q3": high, "max": high * 1.1}
    return {
        "group": f"{threads} threads" if threads else workload[0],
        "name": f"test_{kind}[x]",
        "params": params,
        "extra_info": {"output bytes": nbytes},
        "stats": stats | {"rounds": rounds},
    }


@pytest.fixture
def write(tmp_path):
    def write(name, cases, busy=None):
        path = tmp_path / name
        machine = {"processor": "a processor", "memory": "8 GiB", "node": "secret"}
        machine |= {"other processes": busy} if busy else {}
        kernels = {"name": "test_kernels", "params": None, "group": "", "extra_info": {}}
        content = {"machine_info": machine, "benchmarks": [*cases, kernels]}
        path.write_text(json.dumps(content))
        return path

    return write


def run(*arguments, status=0):
    command = [sys.executable, "-X", "utf8", REPORT, *arguments]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def rows_of(markdown):
    """The cells of every table row, by its first cell."""
    lines = [line for line in markdown.splitlines() if line.startswith("| ")]
    return {
        cells[0]: cells[1:] for cells in ([c.strip() for c in x[1:-1].split("|")] for x in lines)
    }


def test_report(write, tmp_path):
    cases = [
        case("warm", BLOCK, "tilecore", 0.1),
        case("warm", BLOCK, "numpy", 0.2),
        case("warm", BLOCK, "jax", 0.101),
        case("warm", BLOCK, "memset", 0.05),
        case("warm", ROWS, "tilecore", 2e-6, nbytes=30),
        case("warm", ROWS, "numpy", 1e-3, nbytes=30),
        case("grid", ROWS, "tilecore", 2e-6),
        case("grid", ROWS, "numpy", 1e-6),
        *(case("size", BLOCK, "tilecore out", n / 1e10, nbytes=n) for n in (2**20, 2**26)),
        *(case("size", BLOCK, "memset", n / 2e10, nbytes=n) for n in (2**20, 2**26)),
        *(case("threads", BLOCK, "tilecore", 0.1 / n, threads=n) for n in (1, 2, 4)),
        *(case("threads", BLOCK, "memset", 0.05 / n, threads=n) for n in (1, 2, 4)),
    ]
    path = write("new.json", cases)
    assert run(path, "--output", tmp_path / "results") == f"{tmp_path / 'results' / 'report.md'}\n"
    text = (tmp_path / "results" / "report.md").read_text(encoding="utf-8")
    assert "- processor: a processor\n- memory: 8 GiB\n" in text
    assert "secret" not in text
    peers = rows_of(text.partition("## Against the peers")[2].partition("## Over a grid")[0])
    assert peers["workload"][3:] == ["GB/s", "numpy", "jax", "memset", "memcpy"]
    assert peers["block"] == [
        *("(4) × (2) f4", "1 GB", "100 ms", "10", "**2.0×**", "1.0×", "*0.50×*", ""),
    ]
    assert peers["rows"][1:6] == ["30 bytes", "2 µs", "0.015", "**500×**", ""]
    headers = [line for line in text.splitlines() if line.startswith(("|  |", "| workload"))]
    for header in headers:
        names = [name.strip() for name in header.split("|")[1:-1]]
        assert len(set(names)) == len(names)
    assert len(headers) == 4
    grid = rows_of(text.partition("## Over a grid")[2].partition("##")[0])
    assert grid["numpy"] == ["1", "0.50×", "0.50×", "rows", "1"]

    shown = {"peers.svg": "500×", "sizes.svg": "64 MiB", "threads.svg": "tilecore, block"}
    for name, expected in shown.items():
        assert f"({name})" in text
        svg = (tmp_path / "results" / name).read_text(encoding="utf-8")
        assert "prefers-color-scheme:dark" in svg and "nan" not in svg
        root = ElementTree.fromstring(svg)
        width, height = float(root.get("width")), float(root.get("height"))
        words = list(root.iter("{http://www.w3.org/2000/svg}text"))
        assert expected in [word.text for word in words]
        assert all(0 <= float(w.get("x")) < width and 0 < float(w.get("y")) < height for w in words)
    # Without a folder there is nothing to show the charts from.
    assert "svg" not in run(path) and "| block |" in run(path)


def version(scale=1.0, *, clock=1.0, memset=0.05, peers=(), **other):
    """A run in which tilecore's case takes `scale` times as long, by a clock of some speed."""
    times = {"tilecore": 0.1 * scale, "numpy": 0.2, "memset": memset, "torch": 0.3, **dict(peers)}
    return [case("warm", BLOCK, name, clock * t, **other) for name, t in times.items()]


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        (version(), version(1.3), "slower"),
        (version(), version(0.7), "faster"),
        (version(), version(), "no difference beyond noise"),
        # The machine is slower, not tilecore; and the other way round.
        (version(), version(clock=3), "no difference beyond noise"),
        (version(), version(1.3, clock=0.5), "slower"),
        # Quartiles that overlap; few rounds, whose least and most do; a difference too small.
        (version(spread=0.1), version(1.3, spread=0.1), "no difference beyond noise"),
        (version(rounds=3), version(1.3, rounds=3), "no difference beyond noise"),
        (version(spread=0.001), version(1.03, spread=0.001), "no difference beyond noise"),
        # Against numpy it is slower, against memset it is not.
        (version(), version(1.3, memset=0.065), "no difference beyond noise"),
    ],
)
def test_verdicts(write, old, new, verdict):
    arguments = write("new.json", new), "--against", write("old.json", old)
    found = rows_of(run(*arguments))
    assert found["block, tilecore (warm)"][1] == verdict
    assert not any(name.startswith("block, numpy") for name in found)
    run(*arguments, "--fail", status=int(verdict == "slower"))


def test_noise_of_the_peers(write):
    """What cannot have changed moves as much as tilecore does: nothing is told."""
    steady = {"torch": 0.3, "jax": 0.3, "openvino": 0.3, "onnxruntime": 0.3}
    moved = {"torch": 0.45, "jax": 0.2, "openvino": 0.42, "onnxruntime": 0.21}
    old = write("old.json", version(peers=steady))
    for peers, verdict in ((steady, "slower"), (moved, "no difference beyond noise")):
        found = rows_of(run(write("new.json", version(1.3, peers=peers)), "--against", old))
        assert found["block, tilecore (warm)"][1] == verdict


def test_several_runs(write):
    """Runs of one version that disagree leave open what they disagree about."""
    new = [write("1.json", version(1.3)), write("2.json", version(1.35))]
    old = [write("3.json", version()), write("4.json", version(1.05))]
    name = "block, tilecore (warm)"
    assert rows_of(run(*new, "--against", *old))[name][1] == "slower"
    old[1] = write("4.json", version(1.3))
    assert rows_of(run(*new, "--against", *old))[name][1] == "no difference beyond noise"


@pytest.mark.quick
def test_the_readme_shows_the_report():
    """Its table and its picture come from one run."""
    short = RESULTS.read_text(encoding="utf-8").partition("## In short\n")[2].partition("##")[0]
    assert short.count("\n| ") >= 8
    assert short in README.read_text(encoding="utf-8")
    assert (RESULTS.parent / "peers.svg").exists()


def test_a_loaded_machine_is_told_at_the_head(write):
    warning = "**Made on a loaded machine: other processes took 31% of the processors' time."
    quiet = write("quiet.json", version(), "2% of the processors' time")
    busy = write("busy.json", version(), "31% of the processors' time")
    assert run(quiet, busy).splitlines()[2].startswith(warning)  # the busiest of several runs
    assert run(busy, "--against", quiet).splitlines()[2].startswith(warning)
    assert "loaded" not in run(quiet) and "other processes: 2%" in run(quiet)


@pytest.mark.quick
def test_one_name_for_each_workload(tmp_path):
    """In table, picture and report; what the README shows is measured."""
    source = (REPORT.parent / "workloads.py").read_text(encoding="utf-8")
    names = re.findall(r'^    Workload\("(.*?)"', source, re.MULTILINE)
    assert len(names) >= 14
    shown = rows_of(README.read_text(encoding="utf-8").partition("## What there is")[0])
    assert set(shown) - {"", "---"} <= set(names)
    words = ElementTree.parse(RESULTS.parent / "peers.svg").iter("{http://www.w3.org/2000/svg}text")
    assert set(names) <= {word.text for word in words}
    assert set(names) <= set(rows_of(RESULTS.read_text(encoding="utf-8")))


def test_without_a_file_it_measures(tmp_path):
    pytest.importorskip("pytest_benchmark")
    only = "test_warm and gray and (tilecore or numpy) and not out and not thread"
    printed = run("--output", tmp_path, "--only", only)
    assert printed.endswith(f"\n{tmp_path / 'report.md'}\n")
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "gray to RGB" in rows_of(text) and (tmp_path / "peers.svg").exists()


def test_what_is_missing_is_one_line(tmp_path):
    (tmp_path / "other.json").write_text("[]")
    for file, reason in {
        "none.json": "No such file",
        "other.json": "not of pytest-benchmark",
    }.items():
        command = [sys.executable, REPORT, file]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and done.stderr.count("\n") == 1
        assert done.stderr.startswith(f"{file}: {reason}")
        assert f"pytest benchmarks --benchmark-json={file}" in done.stderr
    # An interpreter that has neither tilecore nor pytest-benchmark.
    done = subprocess.run(
        [sys.executable, "-S", REPORT], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "is not installed; in the clone: pip install '.[bench]'" in done.stderr


def test_refusals(write):
    path = write("new.json", version())
    run(path, "--fail", status=2)
    run(path, "--full", status=2)
    run(path, "--output", path, status=2)
    run(write("empty.json", []), status=1)
    run(path, "--against", write("other.json", [case("warm", ROWS, "tilecore", 1.0)]), status=1)
