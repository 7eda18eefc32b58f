"""The package as a whole: which module imports which, and what is in the sdist and the wheel."""

import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import tilecore

ROOT = Path(__file__).parent.parent
pytestmark = [pytest.mark.package, pytest.mark.tree]

DIALECTS = [name for name, module in vars(tilecore).items() if hasattr(module, "DIALECT")]

# A module imports only from the rows above its own; a folder named alone stands for all that is in it.
OF_DIALECTS = [{"_dialects.row", "_dialects.tensors"}, {"_dialects.dims"}, {*DIALECTS}]
LAYERS = [
    {"_core", "_dialects", "_cli", "_version"},  # their __init__ alone, which import nothing
    {"_cli.units"},
    {"_core.counting", "_core.counts", "_core.dtypes", "_core.numpy_api"},
    {"_core.limits", "_core.refusals", "_core.subclasses"},
    {"_core.inputs", "_core.plan", "_core.recycle"},
    {"_core.execute", "_core.integers", "_core.memory"},
    {"_core.arguments", "_core.regions", "_core.threads"},
    {"_core.tiling"},
    {"_core.walk"},
    {"_core.mapped", "_core.strings"},
    {"_core.references"},
    {"_core.results"},
    {"_core.batch"},
    {"_core.arrays", "_core.tileplan"},
    {"capi", "_core.config", "_core.numpy_tile"},
    *OF_DIALECTS,
    {"__init__"},
    {"_cli.output", "integrations"},
    {"_cli.npy"},
    {"_cli.demo", "_cli.files"},
    {"_cli.main"},
    {"__main__"},
]
FROM = re.compile(r"^\s*from\s+(tilecore|\.)([\w.]*)\s+c?import\s+(\([^)]*\)|.*)", re.MULTILINE)
PLAIN = re.compile(r"^\s*c?import\s[^#\n]*\btilecore\b", re.MULTILINE)


def module_of(path):
    parts = path.relative_to(ROOT / "tilecore").with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts
    return "integrations" if parts[0] == "integrations" else ".".join(parts)


def arrows():
    """(module, imported module, imported name), read from the source files."""
    for path in sorted((ROOT / "tilecore").rglob("*.p*")):
        if path.suffix not in {".py", ".pyx", ".pxd", ".pyi"}:
            continue
        module = module_of(path)
        text = path.read_text()
        if PLAIN.search(text):
            yield module, "__init__", "tilecore"
        for package, submodule, names in FROM.findall(text):
            assert package == "tilecore", f"{path.name}: an import that is not written out"
            for name in names.strip("()\n ").split(","):
                if name := name.partition("#")[0].strip():
                    name = name.split()[0]  # of "name as other"
                    imported = submodule.strip(".") or name
                    yield (
                        module,
                        imported.partition(".")[0] if "integ" in imported else imported,
                        name,
                    )


@pytest.mark.quick
def test_imports_point_one_way():
    row = {module: number for number, layer in enumerate(LAYERS) for module in layer}
    seen = {arrow for arrow in arrows() if arrow[0] != arrow[1]}
    assert {("_core.tiling", "_core.execute", "execute"), ("onnx", "_core.arrays", "tiled")} <= seen
    new = {module for arrow in seen for module in arrow[:2]} - row.keys()
    assert not new, "a new module needs its place in LAYERS"
    upward = [arrow for arrow in seen if row[arrow[0]] <= row[arrow[1]]]
    assert not upward
    # Of what is compiled, the dialects know `tile` alone, and how it refuses.
    dialects = set().union(*OF_DIALECTS)
    compiled = {module_of(path) for path in (ROOT / "tilecore").rglob("*.pyx")}
    known = {arrow[1:] for arrow in seen if arrow[0] in dialects and arrow[1] in compiled}
    assert {module for module, _ in known} <= {"_core.arrays", "_core.refusals"}


@pytest.mark.process
def test_other_libraries_are_imported_by_their_integration_alone(run, tmp_path):
    libraries = {"onnx", "openvino", "dask", "torch"}
    code = f"import sys, tilecore.integrations; print({libraries} & set(sys.modules))"
    assert run(sys.executable, "-c", code, cwd=tmp_path) == "set()\n"
    outside = {
        path
        for path in (ROOT / "tilecore").rglob("*")
        if path.suffix in (".py", ".pyx", ".pxd", ".pyi")
    }
    outside -= set((ROOT / "tilecore/integrations").iterdir())
    imports = re.compile(rf"^\s*(?:import|from)\s+({'|'.join(libraries)})\b", re.MULTILINE)
    assert not [path.name for path in outside if imports.search(path.read_text())]


@pytest.mark.process
def test_the_source_folder_says_what_it_is(tmp_path):
    """As a newcomer meets it who imports tilecore inside the clone."""
    ignored = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(ROOT / "tilecore", tmp_path / "tilecore", ignore=ignored)
    command = [sys.executable, "-c", "import tilecore"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: tilecore: the modules in {tmp_path / 'tilecore'} are not")
    assert "leave the clone" in last and "pip install" in last
    assert "During handling" not in done.stderr and "ModuleNotFoundError" not in done.stderr


# ---------------------------------------------------------------- sdist and wheel


def sources(tree, folder, *suffixes):
    """The files of these kinds in a folder of the tree, as paths from the tree's root."""
    found = (path.relative_to(tree) for path in (tree / folder).rglob("*") if path.is_file())
    return {path.as_posix() for path in found if path.suffix in suffixes or not suffixes}


def test_sdist(built):
    tree = built.tree
    with tarfile.open(built.sdist) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}
    expected = {"pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "CHANGELOG.md"}
    expected |= {"CONTRIBUTING.md", "LICENSE", "tilecore/py.typed"}
    expected |= sources(tree, "tilecore", ".py", ".pyx", ".pxd", ".pyi", ".h")
    expected |= sources(tree, "include")
    expected |= sources(tree, "tests")
    assert expected - files == set()
    generated = {name for name in files if re.match(r"(tilecore|build)/.*\.(c|cpp|so|pyd)$", name)}
    assert generated == sources(tree, "tilecore/_core/kernels", ".c")  # which are no such


def test_wheel(built):
    tree = built.tree
    files = set(zipfile.ZipFile(built.wheel).namelist())
    modules = {name for name in files if name.endswith((".so", ".pyd"))}
    assert {name.partition(".")[0] for name in modules} == {
        name.partition(".")[0] for name in sources(tree, "tilecore", ".pyx")
    }
    information = {name for name in files if ".dist-info/" in name}
    assert {"LICENSE", "METADATA", "entry_points.txt"} <= {Path(name).name for name in information}
    # Nothing else is in it: no tests, no .pyx, no generated C.
    private = sources(tree, "tilecore/_core", ".pxd")
    expected = sources(tree, "tilecore", ".py", ".pxd", ".pyi") - private | {"tilecore/py.typed"}
    expected |= {"tilecore/include/tilecore/tilecore.h"}
    assert files - modules - information == expected


def test_wheel_in_a_fresh_environment(built, run, tmp_path):
    """Installed from the wheel alone, NumPy from the index; no source tree within reach."""
    venv.create(tmp_path / "venv", with_pip=False)
    scripts = tmp_path / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    python = scripts / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
    run(*pip, "install", built.wheel, cwd=tmp_path)
    code = "import numpy, tilecore; print(tilecore.tile(numpy.arange(3), (2, 2)).tolist())"
    assert (
        run(python, "-I", "-c", code, cwd=tmp_path) == "[[0, 1, 2, 0, 1, 2], [0, 1, 2, 0, 1, 2]]\n"
    )
    assert "demo" in run(scripts / "tilecore", "--help", cwd=tmp_path)
