"""The C kernels by themselves, between guard pages; the table of instruction sets, and the choice in it."""

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tilecore._core.write.execute import instruction_sets

pytestmark = pytest.mark.compiler

HERE = Path(__file__).parent
CORE = HERE.parent / "tilecore" / "_core"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
# Names that Windows' headers take, as macros: <windows.h> may come before ours.
WINDOWS = ["small=char", "hyper=int", "near=", "far=", "IN=", "OUT=", "OPTIONAL=", "interface=struct"]

# The table, and what Linux calls that which each set needs.
NEEDS = {
    "avx512vbmi": {"avx512f", "avx512bw", "bmi2", "avx512vbmi"},
    "avx512bw": {"avx512f", "avx512bw", "bmi2"},
    "avx2": {"avx2"},
    "ssse3": {"ssse3"},
    "arm64": {"asimd"},
    "scalar": set(),
}


def compiler(language="c"):
    variable = "CC" if language == "c" else "CXX"
    return os.environ.get(variable, sysconfig.get_config_var(variable)).split()


def processor_has(name):
    """Asked of the operating system, not of the kernels; None where it does not tell."""
    try:
        flags = Path("/proc/cpuinfo").read_text().split()
    except OSError:
        return True if name == "scalar" else None
    return NEEDS[name] <= set(flags)


def simde():
    """The folder of SIMDe's headers, or None."""
    try:
        from simde_py import get_include

        return get_include()
    except ImportError:
        return "/usr/include" if os.path.exists("/usr/include/simde") else None


def build(folder, *more):
    program = folder / "kernels"
    sources = [HERE / "kernels.c", CORE / "kernels" / "kernels.c"]
    flags = ["-std=c11", "-O2", f"-I{CORE}", *more, *map(str, sources), "-o", str(program)]
    subprocess.run([*compiler(), *flags], check=True)
    return program


def sets_run(program, *names):
    """What became of each set of the table, in its order."""
    done = subprocess.run([program, *names], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    fates = dict(re.findall(r"^(\w+) (ran|missing|left out)$", done.stdout, re.MULTILINE))
    ran = list(fates.values()).count("ran")
    # MOST_ROWS, which a sanitizer's compiler may set, leaves fewer cases.
    assert int(re.search(r"(\d+) cases, 0 wrong", done.stdout)[1]) > 50_000 * ran
    return fates


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    return sets_run(build(tmp_path_factory.mktemp("native"), *WARNINGS))


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    """The program with every set in plain C, or None."""
    if include := simde():
        flags = ['-DTILECORE_EMULATED="simde.h"', f"-I{HERE}", f"-I{include}", "-w"]
        return build(tmp_path_factory.mktemp("emulated"), *flags, "-DMOST_ROWS=5")


@pytest.mark.tree
@pytest.mark.skipif(sys.platform == "win32", reason="guard pages are made with mmap")
@pytest.mark.parametrize("name", NEEDS)
def test_between_guard_pages(name, native, emulated):
    """Every set of the table: by the processor where it has it, else in plain C."""
    ran = native.get(name) == "ran"
    if (has := processor_has(name)) is not None:
        assert ran == has
    if ran:
        return
    if emulated is None:
        pytest.skip(f"{name} was not tested: the processor lacks it, and there are no SIMDe headers")
    assert sets_run(emulated, name)[name] == "ran"


@pytest.mark.tree
@pytest.mark.skipif(sys.platform == "win32", reason="guard pages are made with mmap")
def test_the_table(native):
    """Best first; and the best is used."""
    assert [*native] == [name for name in NEEDS if name in native]
    assert [*native][-1] == "scalar"
    assert set(native) <= set(NEEDS)
    if platform.machine() == "x86_64":
        assert set(native) == set(NEEDS) - {"arm64"}
    assert instruction_sets()["found"] == next(name for name in native if native[name] == "ran")


@pytest.mark.tree
@pytest.mark.parametrize(("language", "standard"), [("c", "c11"), ("c++", "c++17")])
@pytest.mark.parametrize("name", ["the default", "clang"])
def test_headers_stand_alone(tmp_path, name, language, standard):
    """Each header compiles by itself, twice, and after all others; plain C11 and C++17."""
    command = compiler(language)
    if name == "clang":
        command = ["clang" if language == "c" else "clang++"]
        if not shutil.which(command[0]):
            pytest.skip("there is no clang")
    headers = sorted(path.name for path in CORE.glob("kernels/*.h"))
    assert "kernels.h" in headers
    orders = [[header] * 2 for header in headers] + [headers, headers[::-1]]
    for number, order in enumerate(orders):
        source = tmp_path / f"{number}.{'c' if language == 'c' else 'cpp'}"
        source.write_text(
            "".join(f'#include "kernels/{header}"\n' for header in order) + "int main(void) { return 0; }\n"
        )
        # locks.h, workers.h and pages.h need what Python.h, and so every extension module, asks glibc for.
        python = ["-isystem", sysconfig.get_path("include")]
        flags = [
            f"-std={standard}",
            "-D_GNU_SOURCE",
            "-fsyntax-only",
            *WARNINGS,
            *(f"-D{macro}" for macro in WINDOWS),
            *python,
            f"-I{CORE}",
        ]
        subprocess.run([*command, "-x", language, *flags, str(source)], check=True)


@pytest.mark.tree
@pytest.mark.parametrize(("language", "standard"), [("c", "c11"), ("c++", "c++17")])
@pytest.mark.parametrize("name", ["the default", "clang"])
def test_kernels_are_plain_c(tmp_path, name, language, standard):
    command = compiler(language)
    if name == "clang":
        command = ["clang" if language == "c" else "clang++"]
        if not shutil.which(command[0]):
            pytest.skip("there is no clang")
    flags = [f"-std={standard}", "-O2", *WARNINGS, f"-I{CORE}", "-o", str(tmp_path / "kernels.o")]
    source = str(CORE / "kernels" / "kernels.c")
    subprocess.run([*command, "-x", language, *flags, "-c", source], check=True)


def used(tmp_path, isa):
    """The set that tilecore uses, or the last line of the error at its import."""
    code = """
import numpy, tilecore._core.write.execute, tilecore
print(tilecore._core.write.execute.instruction_sets()['used'])
x = numpy.arange(3000, dtype="u1").reshape(-1, 3)
assert (tilecore.tile(x, (2, 5)) == numpy.tile(x, (2, 5))).all()
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TILECORE_ISA": isa},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    return (done.stderr or done.stdout).strip().splitlines()[-1]


@pytest.mark.process
@pytest.mark.parametrize("name", NEEDS)
def test_any_set_can_be_chosen(tmp_path, name):
    said = used(tmp_path, name)
    if (has := processor_has(name)) is None and said != name:
        has = False
    if has is not False:
        assert said == name
    else:
        refusal = "environment variable TILECORE_ISA: expected one of the instruction sets"
        assert said.startswith(f"ValueError: {refusal}")
        assert said.endswith(f"scalar; got '{name}'")


def test_the_best_set_is_used_where_none_is_named(tmp_path):
    assert used(tmp_path, "") == instruction_sets()["found"]


def test_what_is_not_a_set_is_refused(tmp_path):
    said = "TILECORE_ISA: expected one of the instruction sets that this processor has"
    assert used(tmp_path, "AVX2").startswith(f"ValueError: environment variable {said}")
