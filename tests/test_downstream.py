"""The two packages in tests/downstream/, which build upon tilecore: in their own environment, against the wheel."""

import functools
import os
import re
import shutil
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from conftest import PRELUDE

DOWNSTREAM = Path(__file__).parent / "downstream"
PAGE = Path(__file__).parent.parent / "docs" / "c-api.md"
HASTY = {"CFLAGS": "-O0"}  # where it matters that it builds, not how fast it runs
pytestmark = [pytest.mark.package, pytest.mark.tree]


class Environment:
    """A virtual environment that sees the build tools, which were downloaded once; tilecore is installed into it."""

    def __init__(self, folder, run, tools):
        venv.create(folder / "venv", with_pip=False)
        self.command, self.folder, self.tools = run, folder, tools
        self.python = folder / "venv" / tools.relative_to(tools.parent.parent)
        where = "import sysconfig; print(sysconfig.get_path('purelib'))"
        seen, own = (run(python, "-c", where, cwd=folder).strip() for python in (tools, self.python))
        (Path(own) / "tools.pth").write_text(seen)

    def pip(self, *arguments, **environment):
        pip = ("-m", "pip", "--python", self.python, "--disable-pip-version-check", "--quiet")
        env = os.environ | environment
        self.command(sys.executable, *pip, "install", *arguments, cwd=self.folder, env=env)

    def build(self, name, old="", new="", **environment):
        """Install a downstream package from a copy, with `new` in the place of `old`: builds leave files behind."""
        copy = self.folder / name
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(DOWNSTREAM / name, copy)
        for source in [*copy.glob("*.cpp"), copy / "setup.py"] if old else ():
            source.write_text(source.read_text().replace(old, new))
        self.install(copy, **environment)

    def install(self, folder, **environment):
        self.pip("--no-build-isolation", "--no-deps", "--force-reinstall", folder, **environment)

    def run(self, code, cwd=None):
        """What the code printed."""
        return self.command(self.python, "-c", PRELUDE + code, cwd=cwd or self.folder)


@pytest.fixture(scope="module")
def environment(tmp_path_factory, built, run, tools):
    made = Environment(tmp_path_factory.mktemp("downstream"), run, tools)
    made.pip(built.wheel)
    return made


def test_the_cython_package_tiles(environment):
    environment.build("cython_consumer", **HASTY)
    environment.run("""
from cython_consumer import Tiler, tile_any, tile_each
x = np.arange(6, dtype="i4").reshape(2, 3)
tiler = Tiler((2, 3), (4, 2), 4)
assert tiler.output_shape == (8, 6)
want = np.tile(x, (4, 2))
for threads in (0, 1, 3):
    assert tiler.tile(x.tobytes(), threads) == want.tobytes()
assert (tile_any(x.T[::-1], (2, 2)) == np.tile(x.T[::-1], (2, 2))).all()
target = np.zeros((20, 9), "i4")[17:1:-2, 7:1:-1]
tiler.tile_between(x.T.copy().T, target)
assert (target == want).all() and target.base.sum() == want.sum()
part, target[:] = target[2:6, 1:6], -1
tiler.tile_between(np.repeat(x, 2, 1)[:, ::2], part, (1, 0), (5, 5))
assert (part == want[1:5, :5]).all() and (target == -1).sum() == 8 * 6 - 4 * 5
images = np.arange(60, dtype="f4").reshape(5, 3, 4)
out = np.zeros((5, 6, 8), "f4")
tile_each(images[:, ::-1], 2, 2, out[:, :, ::-1])
assert (out[:, :, ::-1] == np.tile(images[:, ::-1], (1, 2, 2))).all()
assert Tiler((0, 3), (2, 2), 4).tile(b"") == b"" and Tiler((), (), 2).tile(b"ab") == b"ab"
refuse(lambda: tile_each(images, 2, -1, out), ValueError, "repeats must not be negative")
refuse(lambda: Tiler((2,), (-1,), 4), ValueError, "tilecore_plan_new: ")
refuse(lambda: Tiler((1,) * 100_000, (1,) * 100_000, 1), ValueError, "at most 64")
refuse(lambda: tiler.tile(b"a"), ValueError, "expected 24 bytes, got 1")
refuse(lambda: tiler.tile_between(x, target, (1, 2), (9, 6)), ValueError, "a part of 8, on axis 0")
""")


def test_the_cpp_package_tiles(environment):
    environment.build("cpp_consumer")
    environment.run("""
import cpp_consumer
assert cpp_consumer.tile_rows(b"abcxyz", 2, 3) == b"abcabcabcxyzxyzxyz"
x = np.arange(6).reshape(2, 3)[:, ::-1]
assert (cpp_consumer.tile_any(x, 2) == np.tile(x, 2)).all()
import tracemalloc
tracemalloc.start()                     # whose own allocations take the GIL, which is held meanwhile
parts = [bytes([65 + i]) * (i * 1000) for i in range(8)]
assert cpp_consumer.tile_in_threads(parts, 3) == [part * 3 for part in parts]
tracemalloc.stop()
refuse(lambda: cpp_consumer.tile_rows(b"ab", 1, 2**62), ValueError, "overflows")
for given in (parts[:1], parts):        # a plan's, and without one
    refuse(lambda: cpp_consumer.tile_in_threads(given, -1), ValueError, "negative")
refuse(lambda: cpp_consumer.tile_any(x, -1), ValueError, "negative")
refuse(lambda: cpp_consumer.tile_any(x, 1.5), TypeError, "integer")
""")


def pages_files():
    """The page's blocks that begin with a file's name, in order: (name, text)."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    first = re.compile(r"(?:# cython: .*\n)?(?:#|//) (\w+\.\w+)\n")
    return [(match[1], block) for block in blocks if (match := first.match(block))]


def write_files(folder, files):
    folder.mkdir()
    for name, text in files:
        (folder / name).write_text(text, encoding="utf-8")
    return folder


USE_TWICE = 'import twice; assert twice.twice(b"ab") == b"abab" and twice.twice(b"") == b""'


def test_modules_of_the_docs_build(environment):
    files = pages_files()
    names = "pyproject.toml rows.pyx setup.py twice.c setup.py CMakeLists.txt meson.build grow.cpp in_ctypes.py"
    assert [name for name, _ in files] == names.split()
    for package in (files[:3], files[3:5]):
        environment.install(write_files(environment.folder / f"page_{package[0][0]}", package), **HASTY)
    environment.run(USE_TWICE)
    environment.run("""
import rows
x = np.arange(6, dtype="f4").reshape(2, 3)
assert rows.repeat_rows(x, 3) == np.tile(x, (3, 1)).tobytes()
assert rows.repeat_rows(x, 0) == b""
rows.repeat_into(x.T, 2, y := np.ones((6, 4), "f4")[:, ::2])
assert (y == np.tile(x.T, (2, 1))).all()
""")


def test_cmake_meson_and_pybind11_build_as_the_docs_say(environment):
    """pybind11 by the changes to CMake's file that the page describes."""
    environment.pip("cmake>=3.18", "meson", "ninja", "pybind11")
    files = dict(pages_files())
    twice, cmake = ("twice.c", files["twice.c"]), ("CMakeLists.txt", files["CMakeLists.txt"])
    grow = files["CMakeLists.txt"].replace("Python_add_library(twice MODULE WITH_SOABI twice.c)", "")
    grow = grow.replace("LANGUAGES C)", "LANGUAGES CXX)").replace("c_std_11", "cxx_std_17")
    grow = grow.replace("target_link", "find_package(pybind11 REQUIRED)\ntarget_link", 1)
    grow = grow.replace("pybind11 REQUIRED)\n", "pybind11 REQUIRED)\npybind11_add_module(grow grow.cpp)\n", 1)
    grow = grow.replace("(twice PRIVATE", "(grow PRIVATE")
    scripts = environment.python.parent

    def installed(option):
        return environment.command(scripts / "tilecore", "info", option).strip()

    found = "import pybind11; print(pybind11.get_cmake_dir())"
    use_grow = "import grow; assert grow.grow(np.arange(2), (2, 1)).tolist() == [[0, 1], [0, 1]]"
    for name, sources, use in [
        ("cmake", [twice, cmake], USE_TWICE),
        ("meson", [twice, ("meson.build", files["meson.build"])], USE_TWICE),
        ("pybind11", [("grow.cpp", files["grow.cpp"]), ("CMakeLists.txt", grow)], use_grow),
    ]:
        folder = write_files(environment.folder / f"page_{name}", sources)
        path = os.pathsep.join([str(scripts), os.environ["PATH"]])  # ninja, and the interpreter
        env = os.environ | {"PATH": path, "PKG_CONFIG_PATH": installed("--pkgconfig")}
        run = functools.partial(environment.command, cwd=folder, env=env)
        if name == "meson" and not shutil.which("pkg-config"):
            continue
        if name == "meson":
            run(scripts / "meson", "setup", "build")
            run(scripts / "meson", "compile", "-C", "build")
        else:
            config = [f"-DPython_EXECUTABLE={environment.python}", "-G", "Ninja"]
            config += [f"-Dpybind11_DIR={environment.run(found).strip()}", f"-Dtilecore_DIR={installed('--cmake')}"]
            run(scripts / "cmake", "-S", folder, "-B", folder / "build", *config)
            run(scripts / "cmake", "--build", folder / "build")
        environment.run(use, cwd=folder / "build")


@pytest.mark.parametrize("which", ["MAJOR", "MINOR"])
def test_another_abi_version_fails_at_import(environment, which):
    installed = Path(environment.run("import tilecore; print(tilecore.get_include())").strip())
    include = environment.folder / f"include-{which}"
    shutil.copytree(installed, include)
    header = include / "tilecore" / "tilecore.h"
    text = header.read_text()
    now = {name: int(n) for name, n in re.findall(r"#define TILECORE_ABI_(\w+) (\d+)", text)}
    other = now | {which: now[which] + 1}
    header.write_text(text.replace(f"ABI_{which} {now[which]}\n", f"ABI_{which} {other[which]}\n"))
    environment.build("cpp_consumer", "tilecore.get_include()", repr(str(include)), **HASTY)
    built, provided = ("{MAJOR}.{MINOR}".format(**version) for version in (other, now))
    environment.run(f"""
refused = "this module was built for tilecore's C ABI {built}, but the installed tilecore provides {provided}"
refuse(lambda: __import__("cpp_consumer"), ImportError, refused)
import tilecore
assert tilecore.tile(np.arange(2), 2).tolist() == [0, 1, 0, 1]
""")


def test_a_forgotten_import_is_an_error(environment):
    environment.build("cpp_consumer", "if (import_tilecore() < 0) return nullptr;")
    environment.run("""
import cpp_consumer
forgotten = ": import_tilecore() must be called first"
refuse(lambda: cpp_consumer.tile_rows(b"ab", 1, 2), RuntimeError, "tilecore_plan_new" + forgotten)
refuse(lambda: cpp_consumer.tile_any([1], 2), RuntimeError, "tilecore_array_tile" + forgotten)
for parts in ([b"a"], [b"a", b"b"]):    # by a plan, and without one
    refuse(lambda: cpp_consumer.tile_in_threads(parts, 2), ValueError, "import_tilecore() was not called")
""")


def test_an_editable_install_can_be_built_upon(tmp_path, built, run, tools):
    """With the wheel's modules in the place of those that it would compile."""
    tree = tmp_path / "tree"
    shutil.copytree(built.unpacked, tree, ignore=shutil.ignore_patterns("build"))
    setup = tree / "setup.py"
    assert (found := 'Path("tilecore").rglob("*.pyx")') in (text := setup.read_text())
    setup.write_text(text.replace(found, "()"))
    with zipfile.ZipFile(built.wheel) as wheel:
        wheel.extractall(tree, [name for name in wheel.namelist() if name.endswith((".so", ".pyd"))])
    environment = Environment(tmp_path, run, tools)
    environment.pip("--no-build-isolation", "--no-deps", "--editable", tree)
    environment.build("cython_consumer", **HASTY)
    environment.run("import cython_consumer; assert cython_consumer.tile_any([1, 2], 2).tolist() == [1, 2, 1, 2]")
    environment.build("cpp_consumer")
    environment.run("import cpp_consumer; assert cpp_consumer.tile_rows(b'ab', 1, 2) == b'abab'")
