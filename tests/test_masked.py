"""Masked arrays and other subclasses: what numpy.tile makes of them, attribute by attribute."""

import sys
import types

import ml_dtypes
import numpy as np
import pytest

import tilecore

pytestmark = pytest.mark.quick

ATTRIBUTES = ("_fill_value", "_hardmask", "_isfield", "_baseclass", "_optinfo", "_basedict")
REPS = [(), 1, 3, (2, 2), (1, 1), (2, 1, 2), (0, 2)]


def shared(x):
    """With a mask that another array shows too."""
    shared.other = np.ma.array(x.data, mask=x.mask, copy=False)
    return np.ma.array(x, copy=False)


def with_optinfo(x):
    x._optinfo["unit"] = "kg"
    return x


def structured(mask):
    return np.ma.array(
        [[(1, 2.5), (3, 4.5)]],
        dtype=[("a", "i4"), ("b", "f8")],
        mask=mask,
    )


MASK = [[0, 1, 0], [1, 0, 0]]
VALUES = np.arange(6).reshape(2, 3)
INPUTS = {
    "mask": lambda: np.ma.array(VALUES, mask=MASK),
    "no mask": lambda: np.ma.array(VALUES),
    "no mask, float": lambda: np.ma.array(VALUES, dtype="f4"),
    "empty mask": lambda: np.ma.array(VALUES, mask=False, shrink=False),
    "fill value": lambda: np.ma.array(VALUES, mask=MASK, fill_value=77),
    "fill value, float": lambda: np.ma.array(VALUES, dtype="f4", mask=MASK, fill_value=1e20),
    "hard mask": lambda: np.ma.array(VALUES, mask=MASK, hard_mask=True),
    "shared mask": lambda: shared(np.ma.array(VALUES, mask=MASK)),
    "a row": lambda: np.ma.array(VALUES, mask=MASK)[1],
    "reversed": lambda: np.ma.array(VALUES, mask=MASK)[::-1, ::-1],
    "transposed": lambda: np.ma.array(VALUES, mask=MASK).T,
    "0-d": lambda: np.ma.array(5, mask=True),
    "empty": lambda: np.ma.array(np.zeros((0, 3)), mask=np.zeros((0, 3))),
    "read-only": lambda: np.ma.array(np.broadcast_to(np.arange(3), (2, 3))),
    "optinfo": lambda: with_optinfo(np.ma.array(VALUES, mask=MASK)),
    "matrix": lambda: np.ma.array(np.asmatrix(VALUES), mask=MASK),
    "matrix, no mask": lambda: np.ma.array(np.asmatrix(VALUES)),
    "structure": lambda: structured([[(0, 1), (1, 0)]]),
    "structure, no mask": lambda: structured(np.ma.nomask),
    "objects": lambda: np.ma.array(np.array([None, "a"]), mask=[0, 1]),
    "texts": lambda: np.ma.array(["a", "bc"], mask=[0, 1]),
    "dates": lambda: np.ma.array(["2020-01-01"], dtype="M8[D]", mask=[1]),
    **{
        name: lambda dtype=dtype: np.ma.array(VALUES.astype(dtype), mask=MASK)
        for name, dtype in {
            "bfloat16": ml_dtypes.bfloat16,
            "float8": ml_dtypes.float8_e4m3fn,
            "int4": ml_dtypes.int4,
        }.items()
    },
}


def attributes(array):
    found = {name: getattr(array, name) for name in ATTRIBUTES}
    fill = found["_fill_value"]
    found["_fill_value"] = None if fill is None else (fill.dtype, fill.tobytes())
    return found


def outcome(call, *arguments):
    try:
        return call(*arguments)
    except Exception as error:
        return type(error)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("reps", REPS, ids=str)
@pytest.mark.parametrize("name", INPUTS)
def test_as_numpy(name, reps):
    x = INPUTS[name]()
    before, mask_before = attributes(x), x._mask
    want = outcome(np.tile, INPUTS[name](), reps)
    got = outcome(tilecore.tile, x, reps)
    assert attributes(x) == before and x._mask is mask_before
    if isinstance(want, type):
        assert got is want
        return
    assert type(got) is type(want)
    assert got.shape == want.shape and got.dtype == want.dtype
    assert attributes(got) == attributes(want)
    assert (got._mask is np.ma.nomask) == (want._mask is np.ma.nomask)
    assert np.ma.getmaskarray(got).dtype == np.ma.getmaskarray(want).dtype
    assert np.ma.getmaskarray(got).tolist() == np.ma.getmaskarray(want).tolist()
    assert type(got.data) is type(want.data)
    assert got.data.tolist() == want.data.tolist()
    assert not np.shares_memory(got.data, x.data)
    if got._mask is not np.ma.nomask:
        assert not np.shares_memory(got._mask, x._mask)


def test_changes_stay_where_they_are_made():
    x = np.ma.array(VALUES, mask=MASK, fill_value=7)
    y = tilecore.tile(x, 2)
    y.fill_value = 9
    y[0, 0] = np.ma.masked
    y.mask[1] = True
    y._optinfo["unit"] = "m"
    assert x.fill_value == 7 and x.mask.tolist() == np.array(MASK, bool).tolist()
    assert x._optinfo == {} and x.data[0, 0] == 0


def test_a_subclass_of_masked_arrays():
    class Own(np.ma.MaskedArray):
        pass

    got = tilecore.tile(np.ma.array(VALUES, mask=MASK).view(Own), 2)
    assert type(got) is Own and got.mask.tolist() == np.tile(np.array(MASK, bool), 2).tolist()


def test_numpy_ma_that_another_thread_imports(monkeypatch):
    """It stands in sys.modules long before it has its class."""

    class Own(np.ndarray):
        pass

    x = VALUES.view(Own)
    for core in (None, types.ModuleType("numpy.ma.core")):
        monkeypatch.setitem(sys.modules, "numpy.ma", types.ModuleType("numpy.ma"))
        monkeypatch.setitem(sys.modules, "numpy.ma.core", core)
        assert type(tilecore.tile(x, 2)) is Own
        assert (
            tilecore.tile(VALUES, 1, out=np.empty_like(VALUES).view(Own)).tolist()
            == VALUES.tolist()
        )


@pytest.mark.process
def test_in_the_place_of_numpys(program):
    program(
        """
numpy.tile = tilecore.tile
class Own(numpy.ndarray): pass
x = numpy.arange(3)
assert type(numpy.tile(x.view(Own), 2)) is Own
assert numpy.tile(numpy.ma.array(x, mask=[0, 1, 0]), 2).mask.tolist() == [False, True, False] * 2
class Matrix(numpy.ma.MaskedArray): pass
assert numpy.tile(numpy.ma.array(x).view(Matrix), (2, 1)).shape == (2, 3)
"""
    )
