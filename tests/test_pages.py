"""The page code by itself: blocks that the system may take back, files in memory that show in several places."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytestmark = [pytest.mark.compiler, pytest.mark.tree]

HERE = Path(__file__).parent
CORE = HERE.parent / "tilecore" / "_core"


@pytest.mark.parametrize(("options", "there"), [([], sys.platform == "linux"), (["-U__linux__"], False)])
def test_blocks_and_files(tmp_path, options, there):
    """Also as on systems that have neither."""
    compiler = os.environ.get("CC", sysconfig.get_config_var("CC") or "cc").split()
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{CORE}", *options]
    subprocess.run([*compiler, *flags, HERE / "pages.c", "-o", tmp_path / "pages"], check=True)
    done = subprocess.run([tmp_path / "pages"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = "there" if there else "missing"
    assert done.stdout.startswith(f"blocks {found}, files {found}, "), done.stdout
