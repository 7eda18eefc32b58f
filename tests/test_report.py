"""benchmarks/report.py over small files of pytest-benchmark: what became faster or slower, and the tables."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPORT = Path(__file__).parent.parent / "benchmarks" / "report.py"
pytestmark = [pytest.mark.process, pytest.mark.tree]


def run_report(*arguments):
    command = [sys.executable, "-X", "utf8", REPORT, *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout


def test_comparison_and_tables(tmp_path):
    """A version of which two workloads became slower and faster, and one did not change."""

    def write(version, *scales):
        cases = [
            {"name": "test_warm[x]", "params": {"workload": (workload, [4], [2], "f4"), "case": case}}
            | {"extra_info": {"output bytes": 32}, "stats": {"data": [t * (1 + n / 1000) for n in range(-10, 11)]}}
            for workload, scale in zip(("block", "rows", "pixels"), scales, strict=True)
            for case, t in {"tilecore": 0.1 * scale, "numpy": 0.2, "memset": 0.05, "torch": 0.31}.items()
        ]
        machine = {"processor": "a processor", "other processes": "1% of the time"}
        commit = {"id": "0123456789abcdef", "dirty": True}
        data = {"machine_info": machine, "commit_info": commit, "benchmarks": cases}
        (tmp_path / version).write_text(json.dumps(data))
        return tmp_path / version

    old, new = write("old.json", 1, 1, 1), write("new.json", 3, 0.5, 1)
    rows = [[cell.strip() for cell in line.split("|")] for line in run_report(new, "--against", old).splitlines()]
    verdicts = {row[1].partition(",")[0]: row[3] for row in rows if len(row) == 5}
    assert verdicts["block"] == "slower" and verdicts["rows"] == "faster"
    assert verdicts["pixels"] == "no difference beyond noise"
    report = run_report(new)
    assert "| --- | --- | --: | --: | --: |\n| block | (4) × (2) f4 | 300 ms | **0.67×** | " in report
    loss = "| faster than tilecore |\n| --- | --- | --- | --- |\n| warm | block | (4) × (2) f4 | numpy (in 67% of"
    assert loss in report and "- commit: 0123456789, with changes\n" in report
    keep = "import sys; from pathlib import Path; from runs import keep; keep(*map(Path, sys.argv[1:]))"
    subprocess.run([sys.executable, "-c", keep, new, tmp_path], cwd=REPORT.parent, check=True)
    assert run_report(tmp_path / "new.json.gz") == report


@pytest.mark.package
def test_the_benchmarks_are_collected():
    """Without --full some have no cases."""
    pytest.importorskip("pytest_benchmark")
    command = [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", REPORT.parent]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "test_warm[a few numbers-tilecore]" in done.stdout, done.stdout
