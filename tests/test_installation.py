"""get_include and show_config."""

import os
import platform
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import tilecore
from tilecore._core.resources import machine

pytestmark = pytest.mark.quick


def test_other_builds_see_the_version_of_the_package():
    for file in ("tilecore.pc", "tilecoreConfigVersion.cmake"):
        text = Path(tilecore.get_include(), file).read_text()
        assert text.count(tilecore.__version__) == 1, f"{file}: expected version {tilecore.__version__}"


@pytest.mark.skipif(os.name != "posix", reason="Windows seldom allows links")
def test_the_headers_of_an_editable_install_of_links(tmp_path, monkeypatch):
    for folder in ("clone/include", "clone/tilecore/_core", "links/tilecore/_core"):
        (tmp_path / folder).mkdir(parents=True)
    (link := tmp_path / "links/tilecore/_core/file.py").symlink_to(tmp_path / "clone/tilecore/_core/file.py")
    monkeypatch.setattr("tilecore._core.installation.__file__", str(link))
    assert tilecore.get_include() == str(tmp_path / "clone/include")


@pytest.mark.skipif(not hasattr(os, "sysconf"), reason="the memory is known otherwise")
@pytest.mark.parametrize(("memory", "overcommit"), [(2**28, "0"), (2**50, "1"), (2**50, "2")])
def test_the_recycle_limit_follows_from_the_memory(memory, overcommit, run, monkeypatch):
    """A sixteenth of it, or of a lower limit of the control group; at most 1 GiB. 0 if addresses count as memory."""
    monkeypatch.delenv("TILECORE_RECYCLE_BYTES", raising=False)
    limit = run(sys.executable, "-P", "-c", f"""
import importlib.util, os, sys
spec = importlib.util.spec_from_file_location("tilecore._core.resources.machine", {machine.__file__!r})
sys.modules[spec.name] = machine = importlib.util.module_from_spec(spec)  # before the package, which imports it
spec.loader.exec_module(machine)
known, read = os.sysconf, machine.read_text
machine.read_text = lambda path: "{overcommit}\\n" if path == "/proc/sys/vm/overcommit_memory" else read(path)
os.sysconf = lambda name: {{"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": {memory}}}.get(name) or known(name)
import tilecore
print(tilecore.get_recycle_limit())""")  # fmt: skip
    most = min(memory // 16, machine.physical_memory() // 16 if memory > 2**40 else memory, 2**30)
    assert int(limit) == (0 if overcommit == "2" else most)


@pytest.mark.parametrize("env", [{}, {"TILECORE_MAX_BYTES": "1G", "TILECORE_RECYCLE_BYTES": "3M"}], ids=str)
def test_none_restores_the_defaults(env, program):
    program("""
for name in ("max_bytes", "recycle_limit"):
    get, change = (getattr(tilecore, f"{verb}_{name}") for verb in ("get", "set"))
    default = get()
    change(5)
    assert get() == 5
    change(None)
    assert get() == default
""", **env)  # fmt: skip


@pytest.mark.skipif(platform.machine() != "x86_64", reason="read by CPUID, and elsewhere assumed")
def test_the_last_cache_is_read(run):
    """No other test sees a wrong size: large results are only written more slowly."""
    files = Path("/sys/devices/system/cpu").glob("cpu*/cache/index3/size")  # of which some have more than others
    sizes = {int(file.read_text().strip().removesuffix("K")) << 10 for file in files}
    if shutil.which("getconf") and platform.libc_ver()[0] == "glibc":  # of an emulated processor too
        sizes.add(int(run("getconf", "LEVEL3_CACHE_SIZE").strip() or 0))
    if not sizes - {0}:
        pytest.skip("the system does not know the size")
    kernels = tilecore.show_config(mode="dicts")["Kernels"]
    assert (last := kernels["last_cache"]) in sizes
    assert last // 12 <= kernels["bypassed_from"] <= last


def test_config_printed(capsys, settings_stay, monkeypatch):
    monkeypatch.setenv("TILECORE_RECYCLE", "0")  # misspelt
    tilecore.set_max_bytes(" 1536 MiB ")  # sizes are read with units too
    tilecore.set_recycle_limit("256M")
    assert tilecore.show_config() is None
    printed = capsys.readouterr().out
    config = tilecore.show_config(mode="dicts")
    assert config["Versions"] | {"tilecore": tilecore.__version__, "numpy": np.__version__} == config["Versions"]
    assert config["Threads"]["most"] == tilecore.get_num_threads()
    for heading, entries in config.items():
        assert f"{heading}:\n" in printed and all(f"  {name}: " in printed for name in entries)
    assert "{" not in printed and "  TILECORE_RECYCLE: 0 (not a variable of tilecore)\n" in printed
    assert re.search("  bypassed_from: .*B\\): larger results usually bypass the caches\n", printed)
    assert "  max_bytes: 1610612736 (1.5 GiB)\n" in printed and "  recycle_limit: 268435456 (256 MiB)\n" in printed
