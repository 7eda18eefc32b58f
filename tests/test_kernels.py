"""The C kernels by themselves, between guard pages; and the choice among them."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CORE = HERE.parent / "tilecore" / "_core"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def compiler(language="c"):
    variable = "CC" if language == "c" else "CXX"
    return os.environ.get(variable, sysconfig.get_config_var(variable)).split()


@pytest.mark.skipif(sys.platform == "win32", reason="guard pages are made with mmap")
def test_between_guard_pages(tmp_path):
    program = tmp_path / "kernels"
    flags = [
        "-std=c11",
        "-O2",
        *WARNINGS,
        f"-I{CORE}",
        str(HERE / "kernels.c"),
        "-o",
        str(program),
    ]
    subprocess.run([*compiler(), *flags], check=True)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    sets = done.stdout.split("\n")[:-2]
    assert sets[0] == "scalar"
    assert int(re.search(r"(\d+) cases, 0 wrong", done.stdout)[1]) > 50_000 * len(sets)


@pytest.mark.parametrize(("language", "standard"), [("c", "c11"), ("c++", "c++17")])
@pytest.mark.parametrize("name", ["the default", "clang"])
def test_headers_stand_alone(tmp_path, name, language, standard):
    """Each header compiles by itself, twice, and after all others; plain C11 and C++17."""
    command = compiler(language)
    if name == "clang":
        command = ["clang" if language == "c" else "clang++"]
        if not shutil.which(command[0]):
            pytest.skip("there is no clang")
    headers = sorted(path.name for path in CORE.glob("kernels/*.h") if path.name != "kernels_isa.h")
    assert "kernels.h" in headers
    orders = [[header] * 2 for header in headers] + [headers, headers[::-1]]
    for number, order in enumerate(orders):
        source = tmp_path / f"{number}.{'c' if language == 'c' else 'cpp'}"
        source.write_text(
            "".join(f'#include "kernels/{header}"\n' for header in order)
            + "int main(void) { return 0; }\n"
        )
        # locks.h, workers.h and pages.h need what Python.h, and so every extension module, asks glibc for.
        python = ["-isystem", sysconfig.get_path("include")]
        flags = [
            f"-std={standard}",
            "-D_GNU_SOURCE",
            "-fsyntax-only",
            *WARNINGS,
            *python,
            f"-I{CORE}",
        ]
        subprocess.run([*command, "-x", language, *flags, str(source)], check=True)


def test_scalar_can_be_forced(tmp_path):
    code = """
import numpy, tilecore._core.execute, tilecore
print(tilecore._core.execute.instruction_sets()['used'])
x = numpy.arange(3000, dtype="u1").reshape(-1, 3)
assert (tilecore.tile(x, (2, 5)) == numpy.tile(x, (2, 5))).all()
"""
    for forced in ("1", "0"):
        env = {**os.environ, "TILECORE_FORCE_SCALAR": forced}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert (done.stdout.strip() == "scalar") == (forced == "1") or os.uname().machine not in (
            "x86_64",
            "aarch64",
        )
