"""The types that the package tells: strict, complete, and those of the modules as they are."""

import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import tilecore

HERE = Path(__file__).parent
pytestmark = [pytest.mark.package, pytest.mark.tree]


def check(*command, cwd):
    """Run Python so; it must succeed."""
    done = subprocess.run([sys.executable, "-m", *command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_strict(tmp_path):
    """All that is installed, and a file that uses every public name."""
    used = (HERE / "typing" / "every_name.py").read_text()
    for name in tilecore.__all__:
        dialect = hasattr(getattr(tilecore, name), "DIALECT")
        assert dialect or f".{name}" in used or f" {name}" in used, name
    seen = ["import tilecore"]  # by `import tilecore` alone
    for module in vars(tilecore).values():
        if hasattr(module, "DIALECT"):
            seen += [f"{module.__name__}.{name}" for name in module.__all__]
    (tmp_path / "every_name.py").write_text(used)
    (tmp_path / "visible.py").write_text("\n".join(seen))
    check("mypy", "--strict", "-p", "tilecore", "-m", "every_name", "-m", "visible", cwd=tmp_path)


@pytest.mark.quick
def test_signatures_of_what_is_compiled():
    for function, text in {
        tilecore.tile: "(a, reps, out=None, *, axis=None, threads=None)",
        tilecore.tile_region: "(a, reps, start, stop, out=None, *, axis=None, threads=None)",
        tilecore.output_shape: "(shape, reps, *, axis=None)",
        tilecore.TilePlan: "(shape, reps, dtype, *, axis=None)",
        tilecore.TilePlan.tile: "(self, /, a, out=None, *, threads=None)",
        tilecore.TilePlan.region: "(self, /, a, start, stop, out=None, *, threads=None)",
        tilecore.TilePlan.batch: "(self, /, arrays, out=None, *, threads=None)",
        tilecore.set_max_bytes: "(n, /)",
    }.items():
        assert str(inspect.signature(function)) == text
    assert inspect.isbuiltin(tilecore.tile)  # with no Python frame in between


def test_stubs_are_those_of_the_modules(tmp_path):
    allowed = tmp_path / "allowed"  # what Cython adds to every module, no part of the interface
    allowed.write_text(
        "tilecore.*__pyx_capi__\ntilecore.*__test__\n"
        "tilecore.capi\ntilecore._core.plan.(nest|sizes)\ntilecore._core.request.(arguments|integers)\n"  # for C alone
        "tilecore._core.resources.blocks\ntilecore._core.write.(batch|pack|references|regions|results|signals|strings|walk)\n"
        "tilecore.integrations.(numba.on_stack|openvino_op.Tile)\n"  # what makes them has no types
    )
    if not importlib.util.find_spec("torch"):  # no part of the extra "test"
        with allowed.open("a") as file:
            file.write("tilecore.integrations.torch\n")
    check("mypy.stubtest", "--allowlist", allowed, "tilecore", cwd=tmp_path)
