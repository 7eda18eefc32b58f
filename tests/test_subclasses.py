"""Subclasses of ndarray: what numpy.tile makes of them, by whichever of the two ways."""

import sys

import numpy as np
import pytest

import tilecore

pytestmark = pytest.mark.quick


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


class Looks(Named):
    def __getattribute__(self, name):
        return "seen" if name == "name" else super().__getattribute__(name)


RECORDS = np.rec.array([(1, 2.0), (3, 4.0)], dtype=[("a", "i4"), ("b", "f8")])
VALUES = np.arange(6.0).reshape(2, 3)


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


INPUTS = {
    "matrix": lambda: VALUES.view(np.matrix),
    "records": lambda: RECORDS,
    "characters": lambda: np.char.array([["a", "bc"]]),
    "named": lambda: named(Named),
    "named, strided": lambda: named(Named, np.arange(24).reshape(4, 6)[::2, ::-2].T),
    "named, one axis": lambda: named(Named, VALUES[0]),
    "named, no axis": lambda: named(Named, np.array(5)),
    "named, empty": lambda: named(Named, np.zeros((0, 3))),
    "named, objects": lambda: named(Named, np.array([[1, "a"]], object)),
    "named, strings": lambda: named(Named, np.array([["a" * 99, "b"]], np.dtypes.StringDType())),
    "unit": unit,
    "reshapes": lambda: named(Reshapes),
    "asks": lambda: named(Asks),
    "looks": lambda: VALUES.view(Looks),
}
REPS = [1, 2, (), (2,), (1, 1), (3, 1), (2, 2), (1, 3, 1), (2, 1, 2), (2, 0), np.array([2, 1])]


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.filterwarnings("ignore:The chararray class is deprecated:DeprecationWarning")
@pytest.mark.parametrize("reps", REPS, ids=str)
@pytest.mark.parametrize("name", INPUTS)
def test_as_numpy(name, reps):
    if name == "named, strings" and np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("NumPy 2.0's own repeat breaks strings, and tilecore leaves these to NumPy")
    x = INPUTS[name]()
    try:
        want = np.tile(x, reps)
    except ValueError:  # a matrix of three axes
        with pytest.raises(ValueError):
            tilecore.tile(x, reps)
        return
    for call in (tilecore.tile, tilecore.tile_mapped):
        got = call(x, reps)
        assert type(got) is type(want)
        assert got.shape == want.shape and got.dtype == want.dtype
        assert got.tolist() == want.tolist()
        assert getattr(got, "name", None) == getattr(want, "name", None)
        assert got.flags.writeable
        if want.size:
            assert got.flags.c_contiguous and not np.shares_memory(got, x)


def test_the_result_keeps_its_memory():
    x = named(Named, np.arange(2**17))
    results = [tilecore.tile(x, (4, 1)) for _ in range(20)]
    for result in results:
        assert (np.asarray(result) == np.arange(2**17)).all()
        result[:] = 0
    assert x[5] == 5


def test_a_finalizer_that_raises_or_keeps_what_it_is_given():
    kept = []

    class Keeps(np.ndarray):
        def __array_finalize__(self, obj):
            kept.append(self)
            if len(kept) > 2:
                raise RuntimeError("its own")

    x = np.arange(1000).view(Keeps)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="its own"):
            tilecore.tile(tilecore.tile(x, 2), 2)
    assert all(part.size in (1000, 2000, 4000) and np.asarray(part).sum() >= 0 for part in kept)


def test_a_metaclass_that_changes_the_array():
    class Meta(type):
        def __getattribute__(cls, name):
            if shapes and name == "reshape":
                x.resize(shapes.pop(), refcheck=False)
            return super().__getattribute__(name)

    class Own(np.ndarray, metaclass=Meta):
        pass

    shapes = []
    x = np.ones(4).view(np.ndarray).copy().view(Own).copy()
    shapes = [(100_000,)]
    got = tilecore.tile(x, 2)
    assert type(got) is Own and got.shape == (200_000,)


@pytest.mark.whole_process
def test_references_stay_exact():
    item = object()
    x = named(Named, np.array([item, None], object))
    held = sys.getrefcount(item)
    got = tilecore.tile(x, 5)
    assert sys.getrefcount(item) == held + 5
    del got
    assert sys.getrefcount(item) == held


def test_limits_and_errors_come_first():
    x = named(Named)
    with pytest.raises(MemoryError, match="limit"):
        tilecore.tile(x, 2**50)
    with pytest.raises(ValueError, match=r"negative, got -1 for axis 1; input shape \(2, 3\)"):
        tilecore.tile(x, -1)
    with pytest.raises(TypeError, match="plain arrays"):
        tilecore.tile(x, 2, out=np.zeros((2, 6)))
