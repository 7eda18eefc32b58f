"""The package as a whole: which module imports which, and what is in the sdist and the wheel."""

import collections
import graphlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import tilecore

ROOT = Path(__file__).parent.parent
pytestmark = [pytest.mark.package, pytest.mark.tree]

# A module imports from its own layer, or from earlier layers. A folder stands for all that is in it.
LAYERS = [
    {"_version", "_units", "_core.atomic", "_core.config", "_core.numpy_api"},
    {"_core.strided_arrays", "_core.numpy_own"},
    {"_core.request"},
    {"_core.plan"},
    {"_core.resources"},
    {"_core.write"},
    {"_core.arrays", "_core.tileplan"},
    {"_core.installation", "_core.replacement", "capi", "_process", "_profile"},
    {"_dialects"},
    {*tilecore._DIALECTS},
    {"integrations"},
    {"__init__"},
    {"_cli"},
    {"__main__"},
]
FROM = re.compile(r"^\s*from\s+(tilecore|\.)([\w.]*)\s+c?import\s+(\([^)]*\)|.*)", re.MULTILINE)
BY_NAME = re.compile(r"""import_module\(["']tilecore\.([\w.]+)""")
PLAIN = re.compile(r"^\s*c?import\s[^#\n]*\btilecore\b", re.MULTILINE)
CODE = "import numpy, tilecore; print(tilecore.openvino.tile(numpy.arange(3), (2, 2)).tolist())"


def module_of(path):
    parts = path.relative_to(ROOT / "tilecore").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def row_of(module):
    """The number of the layer that a module is in; None for a package's __init__, which imports nothing."""
    while module:
        for row, layers in enumerate(LAYERS):
            if module in layers:
                return row
        module = module.rpartition(".")[0]


def arrows():
    """(module, imported module, imported name), read from the source files."""
    for path in sorted((ROOT / "tilecore").rglob("*.p*")):
        if path.suffix not in {".py", ".pyx", ".pxd", ".pyi"}:
            continue
        module = module_of(path)
        text = path.read_text()
        if PLAIN.search(text):
            yield module, "__init__", "tilecore"
        for name in BY_NAME.findall(text):
            yield module, name, ""
        for package, submodule, names in FROM.findall(text):
            assert package == "tilecore", f"{path.name}: an import that is not written out"
            for name in names.strip("()\n ").split(","):
                if name := name.partition("#")[0].strip():
                    name = name.split()[0]  # of "name as other"
                    yield module, submodule.strip(".") or name, name


@pytest.mark.quick
def test_imports_point_one_way():
    seen = {arrow for arrow in arrows() if arrow[0] != arrow[1]}
    assert {
        ("_core.write.tiling", "_core.write.blocks", "choose_blocks"),
        ("_dialects.version", "_core.arrays", "tile_or_none"),
        ("_cli.commands", "_cli.demo", ""),
    } <= seen
    assert not {arrow for arrow in seen if None in map(row_of, arrow[:2])}, "a new layer needs its place in LAYERS"
    # The exception: the package loads these, and they import it.
    loaded = {*tilecore._DIALECTS, "integrations"}
    assert {("__init__", name, name) for name in loaded} <= seen  # as type checkers read it
    rows = set(map(row_of, loaded))
    seen -= {arrow for arrow in seen if row_of(arrow[0]) in rows and arrow[1:] == ("__init__", "tilecore")}
    assert not {arrow for arrow in seen if row_of(arrow[0]) < row_of(arrow[1])}
    by_module = collections.defaultdict(set)
    for module, imported, _ in seen:
        by_module[module].add(imported)
    graphlib.TopologicalSorter(by_module).prepare()  # within a folder too; a CycleError names the modules
    # A dialect reads arguments and calls `arrays.pyx`; it knows nothing about memory.
    rows = row_of("_dialects"), row_of("onnx")
    known = {row_of(imported) for module, imported, _ in seen if row_of(module) in rows}
    assert known <= {*rows, *map(row_of, ["_core.numpy_api", "_core.request", "_core.arrays"])}


@pytest.mark.quick
def test_a_star_import_hides_no_other_library():
    names = {name: None for name in tilecore._DIALECTS}
    exec("from tilecore import *", names)
    assert {names[name] for name in tilecore._DIALECTS} == {None} and names["tile"] is tilecore.tile
    assert tilecore.onnx is sys.modules["tilecore.onnx"]


@pytest.mark.quick
def test_python_code_imports_every_compiled_module():
    """Programs that freeze others read import statements, which are not to be seen in compiled modules."""
    imported, found = set(), {"__init__"}
    while found - imported:
        imported.add(module := min(found - imported))
        path = ROOT / "tilecore" / module.replace(".", "/")
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        for _, package, names in FROM.findall(path.read_text()) if path.exists() else ():
            for name in re.findall(r"\w+", names):
                parts = f"{package}.{name}".strip(".").split(".")
                found |= {".".join(parts[:n]) for n in range(1, len(parts) + 1)}
    assert {module_of(path) for path in (ROOT / "tilecore").rglob("*.pyx")} - imported == {"capi"}  # for C


@pytest.mark.quick
def test_architecture_has_a_sentence_for_each_file():
    """In tables: a folder, then its files, each with its sentence. A `.pyx` file stands for its `.pxd` and `.pyi`."""
    folder, named = None, set()
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for cell in re.findall(r"^\| (.*?) \| .", text, re.MULTILINE):
        names = re.findall(r"`([\w./]+)`", cell)
        if names and names[0].endswith("/"):
            folder = ROOT / names[0]
        else:
            named |= {folder / name for name in names}
    files = {path for part in ("tilecore", "include") for path in (ROOT / part).rglob("*") if path.is_file()}
    files = {path for path in files if path.suffix in {".py", ".pyx", ".pxd", ".c", ".h", ".in", ".cmake"}}
    files -= {path for path in files if path.with_suffix(".pyx") in files and path.suffix != ".pyx"}  # generated C, too
    files -= {path for path in files if path.with_name(path.name + ".in") in files}
    files -= {path for path in files - named if path.name == "__init__.py"}
    assert named >= files, "a file without a sentence"
    assert named <= files, "a file that is not there"
    mentioned = set(re.findall(r"`([\w.]+\.(?:py|pyx|pxd|h|c))`", text))
    assert mentioned <= {path.name for path in ROOT.rglob("*.*")}


@pytest.mark.process
def test_other_libraries_are_imported_by_their_integration_alone(run, tmp_path):
    libraries = {"dask", "numba", "onnx", "openvino", "torch"}
    code = f"import sys, tilecore.integrations; print({libraries} & set(sys.modules))"
    assert run(sys.executable, "-c", code, cwd=tmp_path) == "set()\n"
    outside = {path for path in (ROOT / "tilecore").rglob("*") if path.suffix in (".py", ".pyx", ".pxd", ".pyi")}
    outside -= set((ROOT / "tilecore/integrations").iterdir())
    imports = re.compile(rf"^\s*(?:import|from)\s+({'|'.join(libraries)})\b", re.MULTILINE)
    assert not [path.name for path in outside if imports.search(path.read_text())]


@pytest.mark.process
def test_the_tests_run_where_nothing_can_be_written(run, tmp_path):
    """pytest and Hypothesis would keep notes in the source tree."""
    (file := tmp_path / "file").touch()
    one = "test_dims.py::test_any_text_is_a_symbol"
    env = {"HYPOTHESIS_STORAGE_DIRECTORY": f"{file}/hypothesis", "PYTEST_ADDOPTS": ""}  # .ci/run chooses another tier
    command = (sys.executable, "-m", "pytest", "-o", f"cache_dir={file}/cache", ROOT / "tests" / one)
    assert "1 passed" in run(*command, cwd=tmp_path, env=os.environ | env)


@pytest.mark.process
def test_numpy_1_is_refused_in_a_sentence(run, tmp_path):
    code = """
import numpy
numpy.__version__ = "1.26.4"
try: import tilecore
except ImportError as error: print(error)"""
    said = "tilecore needs NumPy 2.0 or later, found 1.26.4 in "
    assert run(sys.executable, "-c", code, cwd=tmp_path).startswith(said)


@pytest.mark.process
def test_the_source_folder_says_what_it_is(tmp_path):
    """A newcomer who imports tilecore inside the clone reads this error."""
    shutil.copytree(ROOT / "tilecore", tmp_path / "tilecore", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__py*"))
    command = [sys.executable, "-c", "import tilecore"]
    errors = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stderr
    last = errors.splitlines()[-1]
    assert last.startswith(f"ImportError: tilecore's modules in {tmp_path / 'tilecore'} are not")
    assert "leave the clone" in last and "pip install" in last
    assert "During handling" not in errors and "ModuleNotFoundError" not in errors


def sources(tree, folder, *suffixes):
    """The files of these kinds in a folder of the tree, as paths from the tree's root."""
    found = (path.relative_to(tree) for path in (tree / folder).rglob("*") if path.is_file())
    return {path.as_posix() for path in found if path.suffix in suffixes or not suffixes}


def test_the_sdist_holds_all_sources(built):
    tree = built.tree
    with tarfile.open(built.sdist) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}
    expected = {"pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "CHANGELOG.md"}
    expected |= {"ARCHITECTURE.md", "CONTRIBUTING.md", "LICENSE", "tilecore/py.typed"}
    expected |= sources(tree, "tilecore", ".py", ".pyx", ".pxd", ".pyi", ".h")
    expected |= sources(tree, "include")
    expected |= sources(tree, "tests") | sources(tree, "docs")
    assert expected - files == set()
    generated = {name for name in files if re.match(r"(tilecore|build)/.*\.(c|cpp|so|pyd)$", name)}
    assert generated == sources(tree, "tilecore/_core/kernels", ".c") | sources(tree, "tilecore/_core/runtime", ".c")


def test_the_wheel_holds_the_package_alone(built):
    tree = built.tree
    files = set(zipfile.ZipFile(built.wheel).namelist())
    modules = {name for name in files if name.endswith((".so", ".pyd"))}
    stems = [{name.partition(".")[0] for name in names} for names in (modules, sources(tree, "tilecore", ".pyx"))]
    assert stems[0] == stems[1]
    information = {name for name in files if ".dist-info/" in name}
    assert {"LICENSE", "METADATA", "entry_points.txt"} <= {Path(name).name for name in information}
    # Nothing else is in it: no tests, no .pyx, no generated C.
    private = sources(tree, "tilecore/_core", ".pxd")
    expected = sources(tree, "tilecore", ".py", ".pxd", ".pyi") - private | {"tilecore/py.typed"}
    expected |= {f"tilecore/{name}" for name in sources(tree, "include") if not name.endswith(".in")}
    assert files - modules - information == expected


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("nm"), reason="reads Linux's modules with nm")
def test_compiler_options(built, run):
    modules = list((built.unpacked / "build").rglob("*.so"))
    assert len(modules) == len(sources(built.tree, "tilecore", ".pyx"))
    for module in modules:
        # Each exports one function, so that C functions of two packages may have the same name.
        symbols = run("nm", "--dynamic", "--defined-only", module).split()
        assert symbols[1:] == ["T", "PyInit_" + module.name.partition(".")[0]]
        assert b".debug_info" in module.read_bytes()  # -g1 in build.py's CFLAGS wins over -g0 in setup.py


def test_links_of_distributions(built, run, tools, tmp_path):
    """Made from the repository's address, once setup.py holds it."""
    tree = tmp_path / "tree"
    shutil.copytree(built.unpacked, tree, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    setup, text = tree / "setup.py", (tree / "setup.py").read_text()
    changes = {'REPOSITORY = ""': 'REPOSITORY = "https://example.org/we/tilecore"', '.rglob("*.pyx")': ".glob('none')"}
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    setup.write_text(text)
    run(tools, "setup.py", "-q", "egg_info", cwd=tree)
    metadata = (tree / "tilecore.egg-info" / "PKG-INFO").read_text(encoding="utf-8")
    assert "\nProject-URL: Documentation, https://we.github.io/tilecore/\n" in metadata
    at = "https://example.org/we/tilecore/{}/v" + tilecore.__version__
    assert f"]({at.format('raw')}/docs/images/repeats.svg)" in metadata
    assert f"]({at.format('blob')}/docs/guide.md)" in metadata
    assert not re.search(r"\]\((?!https:)", metadata)


def test_a_build_compiles_what_a_change_concerns(built, run, tools, tmp_path):
    """By as many processes as a packager allows."""
    tree = tmp_path / "tree"
    shutil.copytree(built.unpacked, tree)
    written = {path: path.stat().st_mtime_ns for path in tree.rglob("*" + sysconfig.get_config_var("EXT_SUFFIX"))}
    for header in ("include/tilecore/tilecore", "tilecore/_core/runtime/bitmap", "tilecore/_core/kernels/isa/copy"):
        (tree / f"{header}.h").touch()
    run(tools, "setup.py", "-q", "build_ext", cwd=tree, env=os.environ | {"CFLAGS": "-O0"})
    compiled = {path.name.partition(".")[0] for path, then in written.items() if path.stat().st_mtime_ns != then}
    assert compiled == {"capi", "memory", "processor"}
    code = """if True:
        import setuptools, distutils.core
        for line in (["build_ext"], ["build", "--parallel=3"], ["build_ext", "--parallel=5"]):
            command = distutils.core.run_setup("setup.py", line, "commandline").get_command_obj("build_ext")
            command.ensure_finalized()
            print(command.parallel)"""
    printed = run(tools, "-c", code, cwd=tree, env=os.environ | {"MAKEFLAGS": " -j2 --jobserver-auth=3,4"})
    assert printed.split()[-3:] == ["2", "3", "5"]


def install(run, folder, *packages):
    """In an environment with nothing else, NumPy from the index; return its folder of programs."""
    venv.create(folder / "venv", with_pip=False)
    scripts = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    pip = (sys.executable, "-m", "pip", "--python", scripts / "python", "--disable-pip-version-check")
    run(*pip, "install", *packages, cwd=folder)
    return scripts


def test_wheel_in_a_fresh_environment(built, run, tmp_path):
    """Installed from the wheel alone; no source tree within reach."""
    scripts = install(run, tmp_path, built.wheel)
    assert run(scripts / "python", "-I", "-c", CODE, cwd=tmp_path) == "[[0, 1, 2, 0, 1, 2], [0, 1, 2, 0, 1, 2]]\n"
    assert "demo" in run(scripts / "tilecore", "--help", cwd=tmp_path)


def test_a_frozen_program(built, run, tmp_path):
    scripts = install(run, tmp_path, built.wheel, "pyinstaller")
    (tmp_path / "program.py").write_text(CODE)
    run(scripts / "python", "-m", "PyInstaller", "--log-level=ERROR", "program.py", cwd=tmp_path)
    assert run(tmp_path / "dist/program/program", cwd=tmp_path) == "[[0, 1, 2, 0, 1, 2], [0, 1, 2, 0, 1, 2]]\n"
