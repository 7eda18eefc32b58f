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

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("settings_stay")]

README = Path(__file__).parent.parent / "README.md"


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
    """Run the examples in a docstring, and return how many there are."""
    test = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    report = []
    doctest.DocTestRunner(optionflags=flags).run(test, out=report.append)
    assert not report, "".join(report)
    return len(test.examples)


@pytest.mark.parametrize("name", modules())
def test_docstrings(name):
    if name not in imported():
        pytest.skip("its library is not installed")
    module = importlib.import_module(name)
    docstrings = {name: module, **dict(functions_and_classes(module))}
    for where, value in docstrings.items():
        run_examples(where, getattr(value, "__doc__", None) or "", dict(vars(module)))


PUBLIC = [
    (module.__name__, name)
    for module in imported().values()
    for name in getattr(module, "__all__", ())
    if callable(getattr(module, name))
]


@pytest.mark.parametrize(("module", "name"), PUBLIC)
def test_every_public_name_has_an_example(module, name):
    value = getattr(importlib.import_module(module), name)
    names = dict(vars(importlib.import_module(module)))
    assert run_examples(f"{module}.{name}", inspect.getdoc(value) or "", names)


@pytest.mark.tree
def test_readme():
    """All blocks together, one after the other, as a reader would type them."""
    for library in ("onnx", "openvino", "dask.array"):
        pytest.importorskip(library)
    blocks = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
    assert run_examples("README.md", "\n".join(blocks), {}, doctest.NORMALIZE_WHITESPACE) >= 10
