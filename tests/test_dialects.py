"""What every dialect must have: its row, its names, its errors."""

import inspect
import pkgutil

import numpy as np
import pytest

import tilecore
from tilecore import integrations
from tilecore._core.request.errors import RequestError, format_error
from tilecore._core.request.integers import repeats_of
from tilecore._dialects.tensors import INTEGERS, read_any_repeats

pytestmark = pytest.mark.quick

DIALECTS = [module for module in vars(tilecore).values() if hasattr(module, "DIALECT")]
X = np.ones((1, 1, 2, 3), np.float32)


@pytest.fixture(params=DIALECTS, ids=lambda module: module.__name__)
def dialect(request):
    return request.param


def test_the_package_offers_every_dialect():
    names = {module.__name__ for module in DIALECTS}
    assert names >= {"tilecore.directml", "tilecore.onnx", "tilecore.openvino"}
    assert {name.removeprefix("tilecore.") for name in names} <= set(tilecore.__all__)


INTEGRATIONS = [f"tilecore.integrations.{m.name}" for m in pkgutil.iter_modules(integrations.__path__)]


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


def test_the_row_describes_the_dialect(dialect):
    """`tile` follows the rule of the newest version; options are the rule's keyword arguments."""
    row = dialect.DIALECT
    rule = row.rule()
    assert rule.name.startswith(row.name)
    assert rule.counts(X, [1, 1, 2, 2]) == (1, 1, 2, 2)
    assert dialect.tile(X, [1, 1, 2, 2]).shape == (1, 1, 4, 6)
    assert set(row.options) <= set(inspect.signature(row.rule).parameters)


@pytest.mark.parametrize("repeats", [[1, 1, 1.5, 1], "1", None, [[1]], np.ones((1, 4), int), [True]])
def test_the_rule_refuses_what_tile_refuses(dialect, repeats):
    rule = dialect.DIALECT.rule()
    with pytest.raises(RequestError) as refused:
        rule.counts(X, repeats)
    expected = format_error(refused.value, rule.name, X, rule.names, repeats=repeats)
    with pytest.raises(type(expected)) as raised:
        dialect.tile(X, repeats)
    assert str(raised.value) == str(expected)
    assert type(raised.value) is type(expected)


INTS = [np.array([3, 0, 2]).astype(code) for code in "bBhHiIlLqQ"]


@pytest.mark.parametrize(
    "value",
    [
        *INTS, *[-x for x in INTS if x.dtype.kind == "i"], [2, -3], (), [], (2**70,), np.array([], int),
        np.arange(12)[::-5], np.array([-(2**63), 2**63 - 1]), np.array([2**63], "u8"), np.array([1, 2], ">i4"),
        [np.int64(2), 3], (1,) * 64,
    ],
    ids=repr,
)  # fmt: skip
def test_the_fast_path_reads_repeats_as_the_slow_one(value):
    """The fast path gives the same integers, or None."""
    short, long = repeats_of(value, INTEGERS.type_mask), read_any_repeats(value)
    assert short in (long, None)
    assert short is None or all(type(item) is int for item in short)
    rare = isinstance(value, list) and any(type(item) is not int for item in value)
    assert (short is None) == rare


@pytest.mark.parametrize(
    "value",
    [
        2, None, "12", [True], [1.0], np.ones(2), np.ones((1, 2), int), np.array(3), np.array([True]), (1,) * 65,
        np.ones(65, int), {1, 2}, np.ma.array([1, 2]), np.array([1, 2]).view(np.recarray),
    ],
    ids=lambda value: repr(value)[:30],
)  # fmt: skip
def test_the_fast_path_leaves_odd_repeats_to_the_slow_one(value):
    assert repeats_of(value, INTEGERS.type_mask) is None
