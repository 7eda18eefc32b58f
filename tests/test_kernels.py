"""The C code by itself: the kernels between guard pages, the table of instruction sets and the choice in it, pages."""

import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tilecore._core.resources.processor import instruction_sets

pytestmark = [pytest.mark.compiler, pytest.mark.tree]

HERE = Path(__file__).parent
CORE = HERE.parent / "tilecore" / "_core"
KERNELS = CORE / "kernels" / "kernels.c"
# Names that Windows' headers take, as macros: <windows.h> may come before ours.
WINDOWS = ["small=char", "hyper=int", "near=", "far=", "IN=", "OUT=", "OPTIONAL=", "interface=struct"]

# The table, and the words of /proc/cpuinfo for what each set needs.
NEEDS = {
    "avx512amd": {"avx512f", "avx512bw", "bmi2", "avx512vbmi", "AuthenticAMD"},
    "avx512vbmi": {"avx512f", "avx512bw", "bmi2", "avx512vbmi"},
    "avx2": {"avx2"},
    "ssse3": {"ssse3"},
    "arm64": {"asimd"},
    "scalar": set(),
}

STRICT = ["-Wundef", "-Wconversion"]  # for packages that compile with them


def processor_has(name):
    """Whether the operating system lists what the set needs; None if it does not tell."""
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


def check_sets(program, *names):
    """Run these sets, or all. The failure tells the first cases: set, kernel, row, repeats, rows."""
    done = subprocess.run([program, *names], capture_output=True, text=True)
    faults = re.findall(r"^\w+ .+: row .+$", done.stdout, re.MULTILINE)
    if done.returncode:
        pytest.fail("\n".join([*faults[:10], *faults[10:][-1:], f"exit status {done.returncode}", done.stderr]), False)
    ran, cases = done.stdout.count(" ran\n"), int(re.search(r"(\d+) cases, 0 wrong", done.stdout)[1])
    assert ran and cases > 50_000 * ran  # MAX_ROWS, which a sanitizer's compiler may set, leaves fewer


@pytest.fixture(scope="module")
def build(tmp_path_factory, compile_c):
    """Compile kernels.c with the kernels; the program."""
    if sys.platform == "win32":
        pytest.skip(".ci/platform runs kernels.c for Windows")

    def run(*flags):
        program = tmp_path_factory.mktemp("kernels") / "kernels"
        compile_c("-O2", "-DTILECORE_CHECKED", f"-I{CORE}", *flags, HERE / "kernels.c", KERNELS, "-o", program)
        return program

    return run


@pytest.fixture(scope="module")
def program(build):
    return build("-DMAX_ROWS=5")


@pytest.fixture(scope="module")
def native(program):
    """Each set of the table, in its order: whether the processor has it."""
    done = subprocess.run([program, "no set"], capture_output=True, text=True)
    return {name: fate == "left out" for name, fate in re.findall(r"(\w+) (missing|left out)\n", done.stdout)}


@pytest.fixture(scope="module")
def emulated(build, request):
    """The program with every set in plain C, or None. pytest's cache keeps it until its sources change."""
    if include := simde():
        flags = ['-DTILECORE_EMULATED="simde.h"', f"-I{HERE}", f"-I{include}", "-w", "-O1", "-DMAX_ROWS=5"]
        sources = [HERE / "kernels.c", HERE / "simde.h", *sorted(path for path in CORE.rglob("*.[ch]"))]
        made_of = [repr((flags, os.environ.get("CC"))).encode(), *(path.read_bytes() for path in sources)]
        try:
            folder = request.config.cache.mkdir("simde")
        except (AttributeError, OSError):  # without pytest's cache, or where nothing can be written
            return build(*flags)
        program = folder / hashlib.sha256(b"".join(made_of)).hexdigest()
        if not program.exists():
            shutil.copy(build(*flags), made := program.with_suffix(f".{os.getpid()}"))
            made.rename(program)
        return program


@pytest.mark.parametrize("name", NEEDS)
def test_between_guard_pages(name, native, program, emulated):
    """Every set of the table: by the processor where it has it, else in plain C."""
    found = native.get(name, False)
    if (has := processor_has(name)) is not None:
        assert found == has
    if not found and emulated is None:
        pytest.skip(f"{name} was not tested: the processor lacks it, and there are no SIMDe headers")
    check_sets(program if found else emulated, name)


@pytest.mark.package
def test_many_rows_between_guard_pages(build):
    check_sets(build())


@pytest.mark.parametrize(("how", "fault"), [("astray", "a forbidden access"), ("unasked", "called wrongly")])
def test_a_crash_tells_its_case(program, how, fault):
    """It also tells what the kernel needs, if the call was wrong."""
    done = subprocess.run([program, "scalar", how], capture_output=True, text=True)
    assert done.returncode in (-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT)
    assert re.fullmatch(rf"scalar \w+: row \d+, repeats \d+, rows \d+: {fault}", done.stdout.splitlines()[-1])
    need = r"\S+register_rows\.h:\d+: tilecore_register_rows_scalar needs row > 16 && row <= TILECORE_REGISTERS_ROW\n"
    assert re.fullmatch(need if how == "unasked" else "", done.stderr)


@pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64", reason="asked by CPUID")
def test_every_processors_set(tmp_path, compile_c, run):
    compile_c("-O0", "-w", f"-I{CORE}", HERE / "features.c", "-o", tmp_path / "features")
    run(tmp_path / "features")


def test_the_table_of_instruction_sets(native):
    """The sets are listed from the best on, here and in the guide, and the best that the processor has is used."""
    assert f"`{' '.join(NEEDS)}`" in (HERE.parent / "docs" / "guide.md").read_text(encoding="utf-8")
    assert [*native] == [name for name in NEEDS if name in native]
    assert [*native][-1] == "scalar"
    if platform.machine() == "x86_64":
        assert set(native) == set(NEEDS) - {"arm64"}
    assert instruction_sets()["found"] == next(name for name in native if native[name])


@pytest.fixture(params=["the default", "clang"])
def compiler(request):
    if request.param == "clang":
        return shutil.which("clang") or pytest.skip("there is no clang")


@pytest.mark.parametrize("standard", ["c11", "c++17"])
def test_headers_stand_alone(tmp_path, compiler, standard, compile_c):
    """Each header compiles by itself, twice, and after all others; plain C11 and C++17."""
    headers = sorted(path.relative_to(CORE).as_posix() for path in [*CORE.glob("*.h"), *CORE.glob("*/*.h")])
    assert "kernels/kernels.h" in headers
    orders = [[header] * 2 for header in headers] + [headers, headers[::-1]]
    flags = [*STRICT, "-fsyntax-only", *(f"-D{macro}" for macro in WINDOWS), f"-I{CORE}"]
    flags += ["-isystem", sysconfig.get_path("include")]
    for order in orders:
        source = tmp_path / "source"
        source.write_text("".join(f'#include "{name}"\n' for name in order) + "int main(void) { return 0; }\n")
        compile_c(*flags, source, standard=standard, compiler=compiler)


@pytest.mark.parametrize("standard", ["c11", "c++17"])
def test_all_c_is_plain(tmp_path, compiler, standard, compile_c):
    for source in CORE.glob("*/*.c"):
        flags = [*STRICT, "-O1", f"-I{CORE}", "-c", source, "-o", tmp_path / "object.o"]
        compile_c(*flags, standard=standard, compiler=compiler)


@pytest.mark.parametrize(("options", "there"), [([], sys.platform == "linux"), (["-U__linux__"], False)])
def test_pages_of_addresses_and_files(tmp_path, options, there, compile_c, run):
    """Compiled for a system that has neither, the functions say so."""
    compile_c("-O2", f"-I{CORE}", *options, HERE / "pages.c", "-o", tmp_path / "pages")
    found = "there" if there else "missing"
    assert run(tmp_path / "pages").startswith(f"addresses {found}, populated {found}, files {found}, ")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux recycles")
def test_a_use_after_free_is_seen(tmp_path, compiler, compile_c):
    """AddressSanitizer does, because arena.c tells it what is free. It reports neither of the two uses before."""
    flags = ["-fsanitize=address", "-pthread", f"-I{CORE}", "-o", tmp_path / "arena"]
    (tmp_path / "asan.c").write_text("#include <sanitizer/asan_interface.h>\nint main(void) { return 0; }\n")
    if compiler and subprocess.run([compiler, *flags, tmp_path / "asan.c"], capture_output=True).returncode:
        pytest.skip("this clang comes without AddressSanitizer's header and library")
    compile_c(*flags, HERE / "arena.c", compiler=compiler)
    done = subprocess.run([tmp_path / "arena"], capture_output=True, text=True)
    assert done.stdout == "1\n" and "use-after-poison" in done.stderr


def test_stores_into_memory_that_is_in_the_caches(tmp_path, compile_c, run):
    """Loops of 300 calls: each kind of stores in eight calls, then the faster kind; again after 256."""
    compile_c("-O2", f"-I{CORE}", HERE / "learn_stores.c", "-o", tmp_path / "hot")
    memory, *loops = run(tmp_path / "hot").splitlines()
    assert memory.split() == "1 learns1 1 learns1 0 0 1 1 1 1".split()
    assert loops == ["9s 8o 248s 8o 27s", "221s 79o", "9o 8s 248o 8s 27o"]


@pytest.mark.process
@pytest.mark.parametrize("name", [*NEEDS, "AVX2", ""])
def test_the_named_instruction_set_is_used(tmp_path, name):
    """If none is named, the best one is used."""
    code = """
import numpy, tilecore
x = numpy.arange(3000, dtype="u1").reshape(-1, 3)
assert (tilecore.tile(x, (2, 5)) == numpy.tile(x, (2, 5))).all()
print(tilecore.show_config("dicts")["Kernels"]["used"])
"""
    env = os.environ | {"TILECORE_ISA": name}
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True)
    said = (done.stderr or done.stdout).strip().splitlines()[-1]
    has = not name or (name in NEEDS and processor_has(name))
    if has or (has is None and said == name):
        assert said == (name or instruction_sets()["found"])
    else:
        expected = "expected one of the instruction sets that this processor has"
        assert said.startswith(f"ValueError: environment variable TILECORE_ISA: {expected}")
        assert said.endswith(f"scalar; got '{name}'")
