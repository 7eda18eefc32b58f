"""conftest.py: each test is in one tier, the nearest that marks it; a shared fixture that fails is told once."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.process, pytest.mark.tree]

HERE = Path(__file__).parent
MARKED = """
pytestmark = pytest.mark.quick

def test_by_file(): pass
@pytest.mark.process
def test_itself(): pass
@pytest.mark.process
class TestClass:
    def test_by_class(self): pass
    @pytest.mark.package
    def test_in_class(self): pass
@pytest.mark.parametrize("kind", ["a", pytest.param("b", marks=pytest.mark.process)])
def test_parameters(kind): pass
"""
WRONG = """
def test_unmarked(): pass
@pytest.mark.quick
@pytest.mark.process
def test_both(): pass
@pytest.mark.quick
def test_not_quick(program): pass
"""
SHARED = """
pytestmark = pytest.mark.quick

@pytest.fixture(scope="module")
def broken(): raise ValueError("once")
@pytest.fixture
def upon_it(broken): pass

def test_1(broken): pass
def test_2(broken): pass
def test_3(upon_it): pass
"""


@pytest.fixture
def session(tmp_path, monkeypatch):
    """Run pytest over one file of tests, beside a copy of conftest.py; what it printed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    (tmp_path / "tests").mkdir()
    shutil.copy(HERE / "conftest.py", tmp_path / "tests")
    shutil.copy(HERE.parent / "pyproject.toml", tmp_path)

    def run(tests, *options):
        (tmp_path / "tests" / "test_it.py").write_text("import pytest\n" + tests)
        command = [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", *options]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        return done.stdout + done.stderr

    return run


def test_the_nearest_mark_is_the_tier(session):
    printed = session(MARKED, "-m", "process", "--collect-only", "-q")
    assert re.findall(r"^tests/test_it\.py::(\S+)$", printed, re.MULTILINE) == [
        *("test_itself", "TestClass::test_by_class", "test_parameters[b]")
    ]


def test_not_exactly_one_tier(session):
    printed = session(WRONG)
    assert "test_unmarked: expected a mark of one tier, got []" in printed
    assert "test_both: expected a mark of one tier, got ['process', 'quick']" in printed
    assert "test_not_quick: marked as quick, but it uses ['program']" in printed


def test_a_shared_fixture_that_fails_is_one_error(session):
    printed = session(SHARED)
    assert "2 skipped, 1 error in" in printed
    assert len(re.findall(r"^E +ValueError: once$", printed, re.MULTILINE)) == 1
    assert printed.count("see the error of tests/test_it.py::test_1") == 2
