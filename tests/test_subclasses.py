"""Masked arrays, other subclasses of ndarray, and what has its own `tile`: as by numpy.tile, attribute by attribute."""

import sys
import types

import numpy as np
import pytest
from ways import bfloat16, float8_e4m3fn, int4

import tilecore

pytestmark = pytest.mark.quick


class Plain(np.ndarray):
    pass


class Named(np.ndarray):
    """With an attribute, which views and results take over."""

    def __array_finalize__(self, obj):
        self.name = getattr(obj, "name", None)


class Reshapes(Named):
    """It notes what is done to it: so numpy.tile has to do it."""

    def reshape(self, *shape, **options):
        result = super().reshape(*shape, **options)
        result.name = "reshaped"
        return result


class Asks(Named):
    def __array_function__(self, function, types, args, kwargs):
        result = super().__array_function__(function, types, args, kwargs)
        if isinstance(result, Asks):
            result.name = function.__name__
        return result


class Traced(np.ndarray):
    """Its attribute depends on the shapes on the way from the input to the result."""

    def __array_finalize__(self, obj):
        self.name = [*getattr(obj, "name", ()), self.shape]


class Refuses(np.ndarray):
    """NumPy makes one row of the input."""

    def __array_finalize__(self, obj):
        if self.shape[:1] == (1,):
            raise ValueError("its own")


class Misleads(np.ndarray):
    size = 0


RECORDS = np.rec.array([(1, 2.0), (3, 4.0)], dtype=[("a", "i4"), ("b", "f8")])
VALUES = np.arange(6.0).reshape(2, 3)
INTEGERS, MASK = VALUES.astype(int), [[0, 1, 0], [1, 0, 0]]


class Unit(np.ndarray):
    """A finalizer that is shown arrays of its own class alone, or None, as by `numpy.tile`."""

    def __array_finalize__(self, obj):
        if obj is not None and not hasattr(self, "name"):  # set once
            self.name = obj.name


def unit():
    x = np.ndarray.__new__(Unit, VALUES.shape, VALUES.dtype, VALUES.copy())
    x.name = "m"
    return x


def named(kind, x=VALUES):
    made = x.view(kind)
    made.name = "given"
    return made


def masked(dtype=int, **how):
    return lambda: np.ma.array(INTEGERS.astype(dtype), **{"mask": MASK} | how)


def with_optinfo():
    x = masked()()
    x._optinfo["unit"] = "kg"
    return x


OwnMasked, OTHER = type("OwnMasked", (np.ma.MaskedArray,), {}), masked()()

INPUTS = {
    "matrix": lambda: VALUES.view(np.matrix), "records": lambda: RECORDS, "named": lambda: named(Named),
    "characters": lambda: np.char.array([["a", "bc"]]),
    "plain, strided": lambda: named(Plain, np.arange(24).reshape(4, 6)[::2, ::-2].T),
    "plain, one axis": lambda: named(Plain, VALUES[0]), "plain, no axis": lambda: named(Plain, np.array(5)),
    "plain, empty": lambda: named(Plain, np.zeros((0, 3))),
    "plain, objects": lambda: named(Plain, np.array([[1, "a"]], object)),
    "plain, strings": lambda: named(Plain, np.array([["a" * 99, "b"]], np.dtypes.StringDType())),
    "unit": unit, "reshapes": lambda: named(Reshapes), "asks": lambda: named(Asks),
    "traced": lambda: named(Traced), "refuses": lambda: named(Refuses), "misleads": lambda: named(Misleads),
    "mask": masked(), "no mask": masked(mask=np.ma.nomask), "empty mask": masked(mask=False, shrink=False),
    "mask, fill value": masked(fill_value=77), "hard mask": masked(hard_mask=True), "mask, optinfo": with_optinfo,
    "shared mask": lambda: np.ma.array(OTHER, copy=False), "mask, 0-d": lambda: np.ma.array(5, mask=True),
    "mask, empty": lambda: np.ma.array(np.zeros((0, 3)), mask=np.zeros((0, 3))),
    "mask, read-only": lambda: np.ma.array(np.broadcast_to(np.arange(3), (2, 3))),
    "masked matrix": lambda: np.ma.array(np.asmatrix(INTEGERS), mask=MASK),
    "masked subclass": lambda: masked()().view(OwnMasked),
    "masked structure": lambda: np.ma.array([[(1, 2.5), (3, 4.5)]], "i4, f8", mask=[[(0, 1), (1, 0)]]),
    "masked objects": lambda: np.ma.array(np.array([None, "a"]), mask=[0, 1]),
    "masked texts": lambda: np.ma.array(["a", "bc"], mask=[0, 1]),
    "masked dates": lambda: np.ma.array(["2020-01-01"], dtype="M8[D]", mask=[1]),
    "masked bfloat16": masked(bfloat16), "masked float8": masked(float8_e4m3fn), "masked int4": masked(int4),
}  # fmt: skip
REPS = [1, 2, 3, (), (2,), (1, 1), (3, 1), (2, 2), (1, 3, 1), (2, 1, 2), (2, 0), (0, 2), np.array([2, 1])]


def outcome(call, *arguments):
    try:
        return call(*arguments)
    except Exception as error:
        return type(error)


def shown(array):
    """All that there is to see of an array, or the type of an error."""
    if not isinstance(array, np.ndarray):
        return array
    found = [type(array), array.shape, array.dtype, np.asarray(array).tolist(), getattr(array, "name", None)]
    if isinstance(array, np.ma.MaskedArray):
        mask, fill = np.ma.getmaskarray(array), array._fill_value
        found += [array._mask is np.ma.nomask, mask.dtype, mask.tolist(), fill is None or (fill.dtype, fill.tobytes())]
        found += [array._baseclass, array._hardmask, array._isfield, array._optinfo, array._basedict]
    return found


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.filterwarnings("ignore:The chararray class is deprecated:DeprecationWarning")
@pytest.mark.parametrize("reps", REPS, ids=str)
@pytest.mark.parametrize("name", INPUTS)
def test_as_numpy(name, reps):
    if name == "plain, strings" and np.lib.NumpyVersion(np.__version__) < "2.2.0":
        pytest.skip("NumPy's own repeat breaks strings before 2.2, and tilecore leaves these to NumPy")
    x = INPUTS[name]()
    before, mask_before = shown(x), getattr(x, "_mask", None)
    got, want = outcome(tilecore.tile, x, reps), outcome(np.tile, INPUTS[name](), reps)
    assert shown(got) == shown(outcome(tilecore.tile_mapped, x, reps)) == shown(want)
    assert shown(x) == before and getattr(x, "_mask", None) is mask_before
    if want is ValueError:  # a matrix of three axes, for example
        return
    assert got.flags.writeable
    if got.size:
        assert got.flags.forc and not np.shares_memory(np.asarray(got), np.asarray(x))
    if isinstance(x, np.ma.MaskedArray):
        assert got._mask is np.ma.nomask or not np.shares_memory(got._mask, x._mask)
        assert got._optinfo is not x._optinfo and (got._fill_value is None or got._fill_value is not x._fill_value)


@pytest.mark.parametrize("name", [n for n in INPUTS if "mask" in n and n not in ("masked matrix", "masked subclass")])
def test_a_region_of_a_masked_array(name):
    """As cut out of the whole, attribute by attribute. Iterators are read once."""
    x = INPUTS[name]()
    whole = tilecore.tile(x, (2, 3))
    start = tuple(n // 3 for n in whole.shape)
    part = whole[tuple(slice(first, None) for first in start)]
    got = tilecore.tile_region(x, iter((2, 3)), iter(start), iter(whole.shape), threads=1)
    assert shown(got) == shown(part)
    assert got._mask is np.ma.nomask or not np.shares_memory(got._mask, x._mask)
    if x.ndim:
        assert shown(tilecore.tile_region(x, 1, (0,) * x.ndim, x.shape, axis=0)) == shown(tilecore.tile(x, 1))


def test_padding_that_wraps_keeps_the_mask():
    x = np.ma.array([1, 2, 3], mask=[0, 0, 1])
    assert tilecore.tile_region(x, None, -2, 5).tolist() == [2, None, 1, 2, None, 1, 2]
    for wrong, kind, words in [
        ({"out": np.zeros(7, int)}, TypeError, "out is not supported for an input of type MaskedArray"),
        ({"axis": 0}, ValueError, "axis must be None if reps is None"),
        ({"a": x.view(OwnMasked)}, TypeError, "a must be a plain array, got OwnMasked"),
        ({"stop": -3}, ValueError, r"start -2, stop -3; input shape \(3,\)"),
        ({"stop": 2**58}, MemoryError, "limit"),
    ]:
        with pytest.raises(kind, match=f"^tile_region: .*{words}"):
            tilecore.tile_region(**{"a": x, "reps": None, "start": -2, "stop": 5} | wrong)


@pytest.mark.whole_process
def test_the_result_owns_what_it_holds():
    x = named(Plain, np.arange(2**17))
    for result in [tilecore.tile(x, (4, 1)) for _ in range(20)]:
        assert (np.asarray(result) == np.arange(2**17)).all()
        result[:] = 0
    assert x[5] == 5
    item = object()
    x = named(Plain, np.array([item, None], object))
    held = sys.getrefcount(item)
    got = tilecore.tile(x, 5)
    assert sys.getrefcount(item) == held + 5
    del got
    assert sys.getrefcount(item) == held


@pytest.mark.parametrize("x", [named(Named), np.ma.zeros((2, 3))], ids=["named", "masked"])
@pytest.mark.parametrize(("reps", "out", "kind", "words"), [
    (2**50, None, MemoryError, "limit"), ((2**62, 2), None, ValueError, "overflow"),
    (-1, None, ValueError, r"negative, got -1 for axis 1; input shape \(2, 3\)"),
    (2, np.zeros((2, 6)), TypeError, "out is not supported"),
])  # fmt: skip
def test_limits_and_errors_come_first(x, reps, out, kind, words):
    with pytest.raises(kind, match=words):
        tilecore.tile(x, reps, out=out)


def test_a_memory_map_gives_a_plain_array(tmp_path, oracle):
    x = np.memmap(tmp_path / "x", "i4", "w+", shape=(3, 4))
    x[:] = np.arange(12).reshape(3, 4)
    want = oracle(x, (2, 2))
    np.testing.assert_array_equal(tilecore.tile(x, (2, 2)), want, strict=True)
    assert type(tilecore.tile(x, (2, 2))) is np.ndarray
    out = np.memmap(tmp_path / "out", "i4", "w+", shape=(6, 8))
    assert tilecore.tile(x, (2, 2), out) is out
    assert (np.asarray(out) == want).all()


def test_array_function_is_asked_after_our_checks():
    asked = []

    class Duck:
        def __array_function__(self, function, types, args, kwargs):
            asked.append((function, args[1]))
            return "tiled"

    assert tilecore.tile(Duck(), [2, np.int8(3)]) == "tiled"
    assert asked == [(np.tile, (2, 3))]
    with pytest.raises(ValueError, match="negative"):
        tilecore.tile(Duck(), (1, -1))
    with pytest.raises(TypeError, match="out is not supported"):
        tilecore.tile(Duck(), 2, out=np.zeros(2))
    assert len(asked) == 1


def test_numpy_ma_that_another_thread_imports(monkeypatch):
    """numpy.ma is in sys.modules long before it defines its class."""

    x = INTEGERS.view(Own := type("Own", (np.ndarray,), {}))
    for core in (None, types.ModuleType("numpy.ma.core")):
        monkeypatch.setitem(sys.modules, "numpy.ma", types.ModuleType("numpy.ma"))
        monkeypatch.setitem(sys.modules, "numpy.ma.core", core)
        assert type(tilecore.tile(x, 2)) is Own
        assert tilecore.tile(INTEGERS, 1, out=np.empty_like(INTEGERS).view(Own)).tolist() == INTEGERS.tolist()


def test_where_numpy_tile_is_ours(monkeypatch):
    monkeypatch.setattr(np, "tile", tilecore.tile)
    with tilecore.replace_numpy_tile():
        assert type(np.tile(named(Named), 2)) is Named
        assert np.tile(masked()(), 2).mask.tolist() == [row * 2 for row in np.array(MASK, bool).tolist()]
        assert np.tile(masked()().view(OwnMasked), (2, 1)).shape == (4, 3)
        assert np.tile(named(Asks), 2).name == "tile"
