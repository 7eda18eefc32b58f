"""The demonstration, whose numbers are timed here but not read."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from tilecore._cli import demo
from tilecore._cli import main as cli

pytestmark = pytest.mark.quick


@pytest.fixture
def quick(monkeypatch):
    """Times that are not worth reading, but soon there."""
    monkeypatch.setattr(demo, "SECONDS", 0)
    monkeypatch.setattr(demo, "SAMPLE_SECONDS", 1e-6)


def run_demo(cwd, **environment):
    return subprocess.run(
        [sys.executable, "-m", "tilecore", "demo"],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.process
def test_demo_of_the_installed_package(tmp_path):
    done = run_demo(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    ratios = re.findall(r" ([\d.]+)x$", done.stdout, re.MULTILINE)
    assert len(ratios) == len(demo.WORKLOADS)


@pytest.mark.process
def test_an_error_of_the_package_is_one_line(tmp_path):
    done = run_demo(tmp_path, TILECORE_MAX_BYTES="1M")
    assert done.returncode == 2
    assert done.stderr.startswith("tilecore: tile: the result would take ")
    assert done.stderr.count("\n") == 1


def test_each_dialect_and_each_error_is_shown(quick, capsys):
    assert cli.main(["demo"]) == 0
    shown = capsys.readouterr().out
    for call in [*demo.EXAMPLES.values(), *demo.MISTAKES.values()]:
        assert f">>> {call}" in shown
    assert re.findall(r"(\w+Error): ", shown) == [
        "ValueError", "TypeError", "ValueError", "TypeError", "MemoryError"
    ]  # fmt: skip
    assert max(map(len, shown.splitlines())) <= 100


def test_a_wrong_result_is_refused():
    with pytest.raises(ValueError, match="wrong result"):
        demo.verify(np.array([1, 2, 2, 1]), np.array([1, 2]), (2,))
    with pytest.raises(ValueError, match="wrong result"):
        demo.verify(np.array([1, 2, 1, 2], "int32"), np.array([1, 2], "int64"), (2,))


def test_compare_tells_which_is_slower():
    work = list(range(100_000))
    ours, theirs, ratio = demo.compare(lambda: sum(work[:1000]), lambda: sum(work))
    assert ours < theirs and ratio > 1
