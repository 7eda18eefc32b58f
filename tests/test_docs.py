"""Every example in the documentation runs, and gives what it shows."""

import doctest
import functools
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import tilecore
from tilecore._cli.commands import parser
from tilecore._profile import measure

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("settings_stay")]

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CONTAINERS = ROOT / "docs/containers.md"
# Pages may import these, though they need not be installed.
LIBRARIES = ("dask", "einops", "numba", "onnx", "openvino", "torch")

# Sizes in headers and C files, and the files that tell readers about them.
SIZES = {
    "SMALL_BYTES": "CHANGELOG.md README.md docs/memory.md docs/performance.md tilecore/_core/arrays.pyx "
    "tilecore/_core/resources/memory.pyx",
    "THREAD_BYTES": "CHANGELOG.md docs/numba.md docs/threads.md include/tilecore/tilecore.h tilecore/_core/arrays.pyx "
    "tilecore/_core/resources/threads.pyx",
    "NEW_THREAD_BYTES": "docs/threads.md tilecore/_core/resources/threads.pyx",
    "BYTES_A_THREAD": "docs/threads.md tilecore/_core/resources/threads.pyx",
    "SPARE_BYTES": "docs/memory.md tilecore/_core/resources/memory.pyx",
    "GRANULE_BYTES": "docs/memory.md",
    "QUERY_BYTES": "tilecore/_core/resources/memory.pyx",
}
WORDS = {" << 10)": " {} KiB", " << 20)": " {} MiB"}


def modules():
    """The package and all in it that is Python or public, as installed."""
    found = pkgutil.walk_packages(tilecore.__path__, "tilecore.")
    return ["tilecore", *sorted(module.name for module in found)]


@functools.cache
def imported():
    """By name: all of them but the integrations whose library is not installed."""
    found = {}
    for name in modules():
        try:
            found[name] = importlib.import_module(name)
        except ImportError:
            if ".integrations." not in name:
                raise
    return found


def functions_and_classes(module):
    """By name: those that were defined in this module, compiled ones and private ones too."""
    for name, value in vars(module).items():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isroutine(value) or inspect.isclass(value):
            yield name, value
        if inspect.isclass(value):
            for member, function in vars(value).items():
                if inspect.isroutine(function) or isinstance(function, property):
                    yield f"{name}.{member}", function


def run_examples(name, text, names, flags=0):
    """Run the examples in a text, and return how many there are; `names` are theirs before and after."""
    if "products=True" in text:
        pytest.importorskip("sympy")
    test = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    report = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=flags)  # None would read pytest's -v
    runner.run(test, out=report.append, clear_globs=False)
    assert not report, "".join(report)
    names.update(test.globs)
    return len(test.examples)


@pytest.mark.parametrize("name", modules())
def test_docstrings(name):
    """Examples give what they show, and every public function and class has one."""
    if name not in imported():
        pytest.skip("its library is not installed")
    module = importlib.import_module(name)
    public = {name for name in getattr(module, "__all__", ()) if callable(getattr(module, name))}
    docstrings = {name: module, **dict(functions_and_classes(module))}
    docstrings |= {name: getattr(module, name) for name in public}
    for where, value in docstrings.items():
        text = getattr(value, "__doc__", None) or ""
        count = run_examples(where, text, dict(vars(module)))
        assert count or where not in public, where
        assert "docs/" not in text, where  # no wheel has these files


def python_blocks(page):
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.tree
@pytest.mark.parametrize("library", ["numpy", "pandas", "xarray", "polars", "pyarrow", "astropy", "scipy"])
def test_containers(library):
    """The first block, and those of one library: most readers have few of them."""
    pytest.importorskip(library)
    start, *others = python_blocks(CONTAINERS)
    blocks = [block for block in others if re.search(rf"(import|from) {library}\b", block) or "import" not in block]
    names = {}
    assert len(blocks) == 1 + (library != "numpy")
    assert all([run_examples(library, block, names, doctest.NORMALIZE_WHITESPACE) for block in [start, *blocks]])


@pytest.mark.tree
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # PyTorch's own
@pytest.mark.parametrize("page", [page for page in PAGES if page != CONTAINERS], ids=lambda page: page.name)
def test_page(page, tmp_path, monkeypatch):
    """All blocks together, one after the other, as a reader would type them."""
    monkeypatch.chdir(tmp_path)  # some write files
    blocks = python_blocks(page)
    # These files are for test_downstream.py and test_torch.py.
    blocks = [block for block in blocks if not block.startswith(("# setup.py\n", "# latents.py\n"))]
    imported = r"^(?:>>> )?(?:import|from) (?:tilecore\.integrations\.)?(\w+)"
    for name in re.findall(imported, "\n".join(blocks), re.MULTILINE):
        for library in filter(name.startswith, LIBRARIES):
            pytest.importorskip(library, exc_type=ImportError)
    names = {}
    for block in blocks:
        if block.startswith(">>>"):
            assert run_examples(page.name, block, names, doctest.NORMALIZE_WHITESPACE)
        else:
            exec(block, names)


@pytest.mark.tree
def test_the_readmes_commands_and_links():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in ("pip install . && tilecore demo", "pip install '.[test]' && pytest"):
        assert f"\n    {command}\n" in text
    links = re.findall(r"\]\(([^)#]+)", text)
    assert len(links) > 10 and not [link for link in links if not (ROOT / link).exists()]


@pytest.mark.tree
@pytest.mark.parametrize(("name", "places"), [(name, paths.split()) for name, paths in SIZES.items()])
def test_sizes_are_those_of_the_code(name, places):
    code = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "tilecore/_core").rglob("*.[ch]")))
    number, unit = re.search(rf"TILECORE_{name} \(\(ptrdiff_t\)(\d+)( << .0\))", code).groups()
    for path in places:
        assert WORDS[unit].format(number) in " ".join((ROOT / path).read_text(encoding="utf-8").split()), path


@pytest.mark.tree
def test_every_option_and_function_is_explained():
    """Options on two pages; functions in the reference; functions and the members of plans in a test of types."""
    text = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("files.md", "profile.md"))
    commands = parser()._actions[-1]
    options = {option for command in commands.choices.values() for option in command._option_string_actions}
    names = {option for option in options if len(option) > 2} | {f"`tilecore {name}" for name in commands.choices}
    assert len(names) > 12 and not [name for name in names - {"--help"} if name not in text]
    (info,) = (action.help for action in commands._choices_actions if action.dest == "info")
    assert info.removeprefix("show ") in text
    text = (ROOT / "docs/reference.rst").read_text(encoding="utf-8")
    modules = {name: getattr(tilecore, name) for name in tilecore._DIALECTS}
    names = {*tilecore.__all__, *(f"{dialect}.{name}" for dialect in modules for name in modules[dialect].__all__)}
    assert not [name for name in names if f"   {name}\n" not in text]
    used = (ROOT / "tests/typing/every_name.py").read_text(encoding="utf-8")
    members = {name for name in vars(tilecore.TilePlan) if not name.startswith("_")}
    assert len(members) > 7
    names |= {f"plan.{name}" for name in members}
    assert not [name for name in names if not re.search(rf"\b{re.escape(name)}\b", used)]


@pytest.mark.tree
def test_every_hint_of_a_profile_is_explained():
    """By its words up to the colon, in the table."""
    hints = re.findall(r'^ {12}f?"([^":]+).*": ', inspect.getsource(measure.Site.choose_hint), re.MULTILINE)
    rows = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs/profile.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(hints) > 7
    for hint in (*hints, measure.VIEW, measure.SHORT):
        assert hint.partition(":")[0] in "\n".join(rows)
