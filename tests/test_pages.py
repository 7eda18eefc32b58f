"""The page code by itself: addresses that get pages and lose them, files in memory that show in several places."""

import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.compiler, pytest.mark.tree]

HERE = Path(__file__).parent
CORE = HERE.parent / "tilecore" / "_core"


@pytest.mark.parametrize(("options", "there"), [([], sys.platform == "linux"), (["-U__linux__"], False)])
def test_addresses_and_files(tmp_path, options, there, compile_c, run):
    """Also as on systems that have neither."""
    compile_c("-O2", f"-I{CORE}", *options, HERE / "pages.c", "-o", tmp_path / "pages")
    found = "there" if there else "missing"
    assert run(tmp_path / "pages").startswith(f"addresses {found}, files {found}, ")
