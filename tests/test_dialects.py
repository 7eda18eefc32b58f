"""What every dialect must have: its row, its names, its errors."""

import inspect
import pkgutil
import re
import typing
from pathlib import Path

import numpy as np
import pytest

import tilecore
from tilecore import integrations
from tilecore._core.request.errors import RequestError, format_error
from tilecore._dialects.tensors import as_repeats
from tilecore._dialects.version import Version

pytestmark = pytest.mark.quick

DIALECTS = [getattr(tilecore, name) for name in tilecore._DIALECTS]
INTEGRATIONS = [f"tilecore.integrations.{m.name}" for m in pkgutil.iter_modules(integrations.__path__)]
X = np.ones((1, 1, 2, 3), np.float32)
INTS = [np.array([3, 0, 2]).astype(code) for code in "bBhHiIlLqQ"]
ROOT = Path(__file__).parent.parent


@pytest.fixture(params=DIALECTS, ids=lambda module: module.__name__)
def dialect(request):
    return request.param


@pytest.mark.tree
def test_every_default_is_the_default_version(dialect):
    """In all signatures, overloads, docstrings, and the dialect's page."""
    row = dialect.DIALECT
    number = re.search(r"\d\w*$", row.version().name)[0]
    page = ROOT / "docs" / f"{dialect.__name__.removeprefix('tilecore.')}.md"
    defaults = {name: inspect.signature(row.version).parameters[name].default for name in row.options}
    assert all(str(default) == number for default in defaults.values())
    for text in (dialect.tile.__doc__, *(file.read_text(encoding="utf-8") for file in [page] if page.exists())):
        assert re.search(rf"[-_]{number}\b", text)
        versions = [int(version) for version in re.findall(r"Tile-(\d+)", text)]
        assert not versions or max(versions) == int(number)
    for function in {getattr(dialect, name) for name in dialect.__all__}:
        for each in (function, *typing.get_overloads(function)):
            parameters = inspect.signature(each).parameters
            for name in defaults.keys() & parameters.keys():
                assert parameters[name].default in (defaults[name], inspect.Parameter.empty)


def test_the_types_of_repeats(dialect):
    """Those that the dialect names, and no other."""
    for code in "?bBhHiIlLqQefdO":
        repeats = np.ones(4, code)
        if repeats.dtype.name in dialect.DIALECT.version().count_types.names:
            assert dialect.tile(X, repeats).shape == X.shape
        else:
            with pytest.raises(TypeError, match="repeats has dtype "):
                dialect.tile(X, repeats)


@pytest.mark.process  # importing OpenVINO starts some
@pytest.mark.parametrize("name", [module.__name__ for module in DIALECTS] + INTEGRATIONS)
def test_names_and_signatures_are_readable(name):
    """`dir` shows public names alone. Aliases stay: `ArrayLike` is not expanded."""
    module = pytest.importorskip(name)
    assert dir(module) == sorted(module.__all__)
    for public in map(vars(module).get, module.__all__):
        if callable(public):
            signature = str(inspect.signature(public))
            assert len(signature) < 240 and "typing" not in signature and "<class" not in signature


@pytest.mark.parametrize("repeats", [[1, 1, 1.5, 1], "1", None, [[1]], np.ones((1, 4), int), [True]])
def test_the_version_refuses_what_tile_refuses(dialect, repeats):
    version = dialect.DIALECT.version()
    with pytest.raises(RequestError) as refused:
        version.read_counts(X, repeats)
    assert version.name.startswith(dialect.DIALECT.name)
    expected = format_error(refused.value, version.name, X, version.names, repeats=repeats)
    with pytest.raises(type(expected)) as raised:
        dialect.tile(X, repeats)
    assert (type(raised.value), str(raised.value)) == (type(expected), str(expected))


@pytest.mark.parametrize("value", [
    *INTS, *[-x for x in INTS if x.dtype.kind == "i"], [2, -3], (), [], (2**70,), np.array([], int),
    np.arange(12)[::-5], np.array([-(2**63), 2**63 - 1]), np.array([2**63], "u8"), np.array([1, 2], ">i4"),
    np.array([2, 3], ">i8"), [np.int64(2), 3], (1,) * 64,
], ids=repr)  # fmt: skip
def test_repeats_are_read_at_once_as_the_dialect_reads_them(value):
    """Legal ones are not checked in Python, and the result is the same."""
    x, counts, checked = np.ones((1,) * len(value), "u1"), as_repeats(value), []
    version = Version("Tile", check=lambda _, shape, repeats: checked.append(shape) or repeats)
    if all(count >= 0 for count in counts) and max(counts, default=0) < 2**63:
        assert version.tile(x, value, None, None).shape == counts and not checked
    else:
        with pytest.raises(ValueError, match=r"^Tile: "):
            version.tile(x, value, None, None)
        assert checked == [x.shape]


@pytest.mark.parametrize("value", [
    2, None, "12", [True], [1.0], np.ones(2), np.ones((1, 2), int), np.array(3), np.array([True]), (1,) * 65,
    np.ones(65, int), {1, 2}, np.ma.array([1, 2]), np.array([1, 2]).view(np.recarray),
], ids=lambda value: repr(value)[:30])  # fmt: skip
def test_odd_repeats_are_read_by_the_dialect(value):
    checked = []
    version = Version("Tile", any_length=True, check=lambda _, shape, repeats: checked.append(shape) or repeats)
    try:
        version.tile(np.ones(1), value, None, None)
    except (TypeError, ValueError) as error:
        assert str(error).startswith("Tile: ")
    else:
        assert checked
