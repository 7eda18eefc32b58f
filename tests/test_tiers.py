"""conftest.py: the tier of a test is found by what it uses; a shared fixture that fails is told once."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
pytestmark = pytest.mark.tree
TESTS = """
import multiprocessing, os, subprocess, sys, sysconfig
import pytest

def starts():
    return subprocess.run([sys.executable, "-c", ""])

class Pools:
    def test_of_processes(self):
        multiprocessing.get_context("spawn")

@pytest.fixture
def child():
    return starts()

def test_alone(): pass
def test_itself(): starts()
def test_by_fixture(child): pass
def test_inside():
    def inner(): return [starts() for _ in "a"]
@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_by_parameter(kind): pass
def test_packages(built): pass
def test_compiles(): sysconfig
def test_settings(monkeypatch): pass
def test_unseen(): getattr(subprocess_of(), "run")([sys.executable, "-c", ""])
def subprocess_of(): return sys.modules["".join(("sub", "process"))]
"""
SHARED = """
import pytest

@pytest.fixture(scope="module")
def broken(): raise ValueError("once")
@pytest.fixture
def upon_it(broken): pass

def test_1(broken): pass
def test_2(broken): pass
def test_3(upon_it): pass
"""


TOLD = """

def pytest_collection_finish(session):
    for item in session.items:
        print("MARKS", item.originalname, *sorted({mark.name for mark in item.iter_markers()}))
"""


@pytest.fixture
def session(tmp_path, monkeypatch):
    """Run pytest over one file of tests, beside a copy of conftest.py; what it printed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "conftest.py").write_text((HERE / "conftest.py").read_text() + TOLD)
    (tmp_path / "pyproject.toml").write_text((HERE.parent / "pyproject.toml").read_text())

    def run(tests, *options):
        (tmp_path / "tests" / "test_it.py").write_text(tests)
        command = [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", *options]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout

    return run


def test_tiers(session):
    tests = TESTS.replace("class Pools", "class TestPools")
    printed = session(tests, "-m", "quick or not quick", "--co")
    assert sorted(re.findall("^MARKS (.*)$", printed, re.MULTILINE)) == [
        "test_alone quick",
        "test_by_fixture process",
        "test_by_parameter parametrize process",
        "test_by_parameter parametrize quick",
        "test_compiles compiler",
        "test_inside process",
        "test_itself process",
        "test_of_processes process",
        "test_packages package tree",
        "test_settings quick whole_process",
        "test_unseen quick",
    ]
    printed = session(tests, "-m", "quick")
    assert "in the quick tier, but it started subprocess.Popen" in printed
    assert "1 failed, 3 passed" in printed


def test_a_shared_fixture_that_fails_is_one_error(session):
    printed = session(SHARED)
    assert "2 skipped, 1 error in" in printed
    assert len(re.findall(r"^E +ValueError: once$", printed, re.MULTILINE)) == 1
    assert printed.count("see the error of tests/test_it.py::test_1") == 2
