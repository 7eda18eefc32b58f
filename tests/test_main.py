"""The command line."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from tilecore import __main__ as cli


def run(*arguments, cwd, **environment):
    return subprocess.run(
        [sys.executable, "-m", "tilecore", *arguments],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def quick(monkeypatch):
    """Times that are not worth reading, but soon there."""
    monkeypatch.setattr(cli, "SECONDS", 0)
    monkeypatch.setattr(cli, "SAMPLE_SECONDS", 1e-6)


def test_demo_of_the_installed_package(tmp_path):
    done = run("demo", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    ratios = re.findall(r" ([\d.]+)x$", done.stdout, re.MULTILINE)
    assert len(ratios) == len(cli.WORKLOADS)


def test_demo_shows_each_dialect_and_each_error(quick, capsys):
    assert cli.main(["demo"]) == 0
    shown = capsys.readouterr().out
    for call in [*cli.EXAMPLES.values(), *cli.MISTAKES.values()]:
        assert f">>> {call}" in shown
    assert re.findall(r"(\w+Error): ", shown) == [
        "ValueError", "TypeError", "ValueError", "TypeError", "MemoryError"
    ]  # fmt: skip
    assert max(map(len, shown.splitlines())) <= 100


def test_demo_refuses_a_wrong_result():
    with pytest.raises(ValueError, match="wrong result"):
        cli.verify(np.array([1, 2, 2, 1]), np.array([1, 2]), (2,))
    with pytest.raises(ValueError, match="wrong result"):
        cli.verify(np.array([1, 2, 1, 2], "int32"), np.array([1, 2], "int64"), (2,))


def test_compare_tells_which_is_slower():
    work = list(range(100_000))
    ours, theirs, ratio = cli.compare(lambda: sum(work[:1000]), lambda: sum(work))
    assert ours < theirs and ratio > 1


@pytest.mark.parametrize("arguments", [(), ("no-such-command",), ("demo", "--no-such-option")])
def test_errors_are_one_line(arguments, tmp_path, capsys):
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("tilecore: ") and err.count("\n") == 1
    done = run(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, out, err)


def test_an_error_of_the_package_is_one_line_too(tmp_path):
    done = run("demo", cwd=tmp_path, TILECORE_MAX_BYTES="1M")
    assert done.returncode == 2
    assert done.stderr.startswith("tilecore: tile: the result would take ")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_leaves_early(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "tilecore", "demo"],
        cwd=tmp_path,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_version_and_help(capsys):
    for option in ("--version", "--help"):
        with pytest.raises(SystemExit) as stopped:
            cli.main([option])
        assert stopped.value.code == 0
        assert "tilecore" in capsys.readouterr().out
