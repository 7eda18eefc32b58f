"""Foreign code in a call: what stands for an array or an integer, raises, changes arrays meanwhile, or dies.

The answer is a result of the input as it was or as it is, an error that names the function, or the object's exception.
"""

import array
import ctypes
import gc
import itertools
import re
import sys
from functools import partial

import numpy as np
import pytest
from public import PUBLIC

import tilecore
from tilecore import onnx
from tilecore._core.request.arguments import read_array

pytestmark = pytest.mark.quick
X = np.arange(6, dtype="f4").reshape(2, 3)
Own, OwnType = type("Own", (Exception,), {}), type("OwnType", (TypeError,), {})
DIALECTS = [(module.DIALECT.version(), module.tile) for module in map(partial(getattr, tilecore), tilecore._DIALECTS)]


class HasArray:
    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        return self.x


class HasInterface:
    def __init__(self, x):
        self.x, self.__array_interface__ = x, x.__array_interface__


class HasDLPack:
    """On another device, if `device` names one."""

    def __init__(self, x, device=None):
        self.x, self.device = x, device

    def __dlpack__(self, **options):
        if self.device:
            raise BufferError(f"no capsule for device {self.device}")
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device or self.x.__dlpack_device__()


class SequenceWithDLPack(HasDLPack):
    """Item by item, NumPy would read Python floats, so float64."""

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i].tolist()


ARRAYS = {
    "tile: a": lambda x: tilecore.tile(x, (2, 2)),
    "tile_region: a": lambda x: tilecore.tile_region(x, (2, 2), (0, 0), (4, 6)),
    "tile_mapped: a": lambda x: tilecore.tile_mapped(x, (2, 2)),
    "TilePlan.tile: a": lambda x: tilecore.TilePlan((2, 3), (2, 2), "f4").tile(x),
    "TilePlan.region: a": lambda x: tilecore.TilePlan((2, 3), (2, 2), "f4").region(x, (0, 0), (4, 6)),
    "TilePlan.batch: arrays[0]": lambda x: tilecore.TilePlan((2, 3), (2, 2), "f4").batch([x])[0],
    "ONNX Tile-6: input": lambda x: onnx.tile_6(x, [2, 2]),
    "ONNX Tile-1: input": lambda x: onnx.tile_1(onnx.tile_1(x, 2, 0), 2, 1),
    **{f"{row.name}: {row.names.get('input', 'input')}": partial(tile, repeats=[2, 2]) for row, tile in DIALECTS},
}


@pytest.mark.parametrize("kind", [memoryview, HasArray, HasInterface, HasDLPack, SequenceWithDLPack])
def test_objects_with_array_protocols(kind, oracle):
    assert np.shares_memory(read_array(kind(X)), X)
    for call in ARRAYS.values():
        result = call(kind(X))
        assert type(result) is np.ndarray and result.flags.writeable and not np.shares_memory(result, X)
        np.testing.assert_array_equal(result, oracle(X, (2, 2)), strict=True)


def at_null(x):
    """For an array of no bytes, libraries give no address. NumPy reads that from 2.4 on."""
    thing = HasInterface(x)
    thing.__array_interface__ = x.__array_interface__ | {"data": (0, True)}
    return thing


@pytest.mark.parametrize("dtype", ["f4", "S0", "U0", "V0", [("a", "S0")]])
@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3), (2, 3)])
def test_views_without_a_byte(shape, dtype):
    x = np.zeros(shape, [("field", dtype)])["field"]  # an array of its own would have items of one byte
    null = not x.size and np.lib.NumpyVersion(np.__version__) >= "2.4.0"
    for kind in [HasArray, HasInterface] + [HasDLPack, memoryview] * (dtype == "f4") + [at_null] * null:
        for reps in (0, 2, (2, 1, 3)):
            np.testing.assert_array_equal(tilecore.tile(kind(x), reps), tilecore.tile(x, reps), strict=True)


def test_buffers_of_other_libraries():
    for x in (array.array("h", [1, 2]), (ctypes.c_int16 * 2)(1, 2)):
        np.testing.assert_array_equal(tilecore.tile(x, 2), np.int16([1, 2, 1, 2]), strict=True)
    assert tilecore.tile(bytearray(b"ab"), 2).tolist() == [97, 98, 97, 98]
    for _, tile in DIALECTS:
        assert tile(X, HasDLPack(np.array([2, 2]))).shape == (4, 6)


@pytest.mark.parametrize("x", [
    1.5, 7, True, 2j, 2**63, "abc", b"ab", [], (), [1, 2], (1, 2.5), [[1, 2], [3, 4]], [None, 1], None,
    np.float64(1.5), np.int8(3), np.bool_(True), np.str_("ab"), np.datetime64("2026-01-02"), range(3), 10**30,
    ...,  # anything may be an item of an array of objects
    type("Own", (float,), {})(2.5), type("OwnList", (list,), {})([1, 2]),
], ids=repr)  # fmt: skip
def test_what_numpy_makes_arrays_of(x, oracle):
    for reps in (0, 1, 3, (), (1, 1), (2, 3)):
        for got in (tilecore.tile(x, reps), tilecore.tile_mapped(x, reps)):
            np.testing.assert_array_equal(got, oracle(np.asarray(x), reps), strict=True)


@pytest.mark.parametrize("base", [object, list])
def test_what_gives_a_subclass(base, tmp_path):
    """A mask is never lost: the result is that of numpy.tile, or an error. A list's own class decides too."""
    own = type("Own", (base,), {"__array__": HasArray.__array__})()
    own.x = np.ma.array([[1, 2]], mask=[[1, 0]])
    assert tilecore.tile(own, 2).mask.tolist() == [[True, False] * 2]
    with pytest.raises(TypeError, match="a must be a plain array, got Own, which reads as a subclass"):
        tilecore.tile_region(own, 2, (0, 0), (1, 1))
    with pytest.raises(TypeError, match="input of type Own gives a masked array of shape"):
        onnx.tile(own, [1, 2])
    own.x = np.memmap(tmp_path / "x", "i4", "w+", shape=(2, 3))
    assert type(tilecore.tile(own, 2)) is type(tilecore.TilePlan((2, 3), 2, "i4").tile(own)) is np.ndarray
    own.x = np.rec.array([(1, 2.0)])
    assert type(tilecore.tile(own, 2)) is np.recarray


def fail(error):
    raise error("mine")


def raising(method, error):
    function = lambda *_, **__: fail(error)  # noqa: E731
    function.__code__ = function.__code__.replace(co_name=method)
    return type("Raising", (), {method: function})()


SHAPES = {"reps", "start", "stop", "shape", "axis"}
SIZES = {next(iter(each.parameters)) for each in PUBLIC if "repeats" in each.parameters and not each.traits["tiles"]}
INTEGERS = [
    pytest.param(function, argument, id=f"{function.label} {argument}")
    for function in PUBLIC
    for argument in function.parameters
    if argument in {"threads", "n", "opset", "repeats"} | SIZES | SHAPES
    and (argument != "axis" or "reps" in function.parameters)  # else it is read as a number
]


@pytest.mark.parametrize("error", [Own, OwnType, TypeError, ValueError, KeyboardInterrupt])
@pytest.mark.parametrize(("function", "argument"), INTEGERS)
def test_integers_that_raise(function, argument, error):
    """Their own exception passes unchanged."""
    bad = raising("__index__", error)
    things = [[bad]] if argument in SIZES | {"repeats"} else [bad]
    if argument in SIZES:
        things.append(raising("__iter__", error))
    if argument in SHAPES:
        things += [[bad], raising("__iter__", error), itertools.starmap(fail, [(error,)])]
    for thing in things:
        with pytest.raises(error, match="^mine$") as caught:
            function(function.good() | {argument: thing})
        assert caught.type is error


@pytest.mark.parametrize(("function", "argument"), INTEGERS)
def test_errors_show_no_text_of_python_code(function, argument):
    """Such a text may raise, as that of a Fraction with thousands of digits does, or take long."""
    for thing in (bad := raising("__repr__", Own), [bad]):
        with pytest.raises(TypeError, match=f"^{function.begin.partition('-')[0]}"):
            function(function.good() | {argument: thing})


def test_an_iterable_may_refuse_to_be_an_integer():
    """As arrays of JAX do, in Python code."""
    methods = {"__index__": lambda self: fail(TypeError), "__iter__": lambda self: iter((2, 2))}
    assert tilecore.output_shape(3, type("Own", (), methods)()) == (2, 6)


@pytest.mark.parametrize("base", [tuple, list])
def test_what_a_sequence_iterates_over_counts(base):
    own = type("Own", (base,), {"__iter__": lambda self: iter((2, 2))})((5,))
    assert tilecore.tile(np.ones(3), own).shape == np.tile(np.ones(3), own).shape == (2, 6)


@pytest.mark.parametrize("error", [OwnType, ValueError])
def test_dtypes_that_raise(error):
    thing = type("Own", (), {"dtype": property(lambda self: fail(error))})()
    kind, words = error, "^mine$"
    if np.lib.NumpyVersion(np.__version__) < "2.4.0":  # which takes it for a thing without a dtype
        kind, words = TypeError, "^TilePlan: expected a dtype, got "
    with pytest.raises(kind, match=words):
        tilecore.TilePlan(3, 2, thing)


# By DLPack's protocol, a BufferError of `__dlpack__` means that the object is no array here.
ERRORS = [TypeError, ValueError, MemoryError, KeyError, Own, KeyboardInterrupt, OwnType, RuntimeError, BufferError]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("method", ["__array__", "__dlpack__"])
def test_arrays_that_raise(method, error):
    for name, call in ARRAYS.items():
        for thing in (raising(method, error), [raising(method, error)]):
            if method == "__dlpack__" and type(thing) is list:
                continue  # for NumPy, an object like any other
            refuses = error is BufferError and method == "__dlpack__"
            with pytest.raises(TypeError if refuses else error, match="mine") as caught:
                call(thing)
            if refuses:
                assert str(caught.value).startswith(f"{name} of type {type(thing).__name__} cannot be read as an array")
                assert type(caught.value.__cause__) is error
            else:
                assert caught.type is error and caught.value.args == ("mine",)


def test_arrays_on_other_devices_or_beyond_memory():
    for name, call in ARRAYS.items():
        with pytest.raises(TypeError, match=f"^{name} of type HasDLPack cannot be read".replace("[0]", r"\[0\]")) as e:
            call(HasDLPack(X, device=(2, 0)))  # a CUDA device
        assert isinstance(e.value.__cause__, (BufferError, RuntimeError))
    large = type("Large", (), {"__array__": lambda *_, **__: np.empty(2**60, "u1")})()
    with pytest.raises(MemoryError, match="^Unable to allocate"):
        tilecore.tile(large, 2)


CHANGES = {
    "shape": lambda a: setattr(a, "shape", (a.size,)),
    "more axes": lambda a: setattr(a, "shape", (a.size // 2, 1, 2, 1)),
    "other items": lambda a: setattr(a, "dtype", "i4"),
    "narrower items": lambda a: setattr(a, "dtype", "u1"),
}


class Changing:
    """The integer 1, or an array, that changes another array while it is read."""

    def __init__(self, array, change):
        self.array, self.change = array, change

    def __index__(self):
        self.change(self.array)
        return 1

    def __array__(self, dtype=None, copy=None):
        self.change(self.array)
        return np.zeros((2, 50_000), "f4")


PLAN, ROWS = tilecore.TilePlan((2, 50_000), 1, "f4"), tilecore.TilePlan(50_000, 1, "f4")
READING = [
    ("tile", lambda a, evil: tilecore.tile(a, evil)),
    ("tile", lambda a, evil: tilecore.tile(a, 1, threads=evil)),
    ("tile_view", lambda a, evil: tilecore.tile_view(a, evil)),
    ("tile_mapped", lambda a, evil: tilecore.tile_mapped(a, evil)),
    ("tile_region", lambda a, evil: tilecore.tile_region(a, evil, (0,) * a.ndim, a.shape)),
    ("tile_region", lambda a, evil: tilecore.tile_region(a, 1, (0, 0), (evil, 50_000))),
    ("tile_region", lambda a, evil: tilecore.tile_region(a, 1, (0, 0), (2, 50_000), threads=evil)),
    ("tile_region", lambda a, evil: tilecore.tile_region(a, None, (0, 0), (evil, 25_000))),
    ("TilePlan.tile", lambda a, evil: PLAN.tile(a, threads=evil)),
    ("TilePlan.region", lambda a, evil: PLAN.region(a, (0, 0), (2, 50_000), threads=evil)),
    ("TilePlan.region", lambda a, evil: PLAN.region(a, (0, 0), (evil, 50_000))),
    ("TilePlan.batch", lambda a, evil: PLAN.batch([a], threads=evil)[0]),
    ("TilePlan.batch", lambda a, evil: PLAN.batch([a, evil])[0]),
    ("TilePlan.batch", lambda a, evil: PLAN.batch([a, evil], np.empty((2, 2, 50_000), "f4"))[0]),
    ("TilePlan.batch", lambda a, evil: ROWS.batch(a, threads=evil)),
    *[(row.name, lambda a, evil, tile=tile: tile(a, [evil, 1])) for row, tile in DIALECTS],
]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_input_that_changes_while_arguments_are_read(change):
    for name, call in READING:
        a = np.arange(100_000, dtype="f4").reshape(2, 50_000).copy()
        try:
            got = call(a, Changing(a, change))
        except (TypeError, ValueError) as error:
            assert str(error).startswith(f"{name}: ")
        else:
            assert got.itemsize == a.itemsize
            a = a.reshape((1,) * (got.ndim - a.ndim) + a.shape)
            index = [np.arange(n) % max(m, 1) for n, m in zip(got.shape, a.shape, strict=True)]
            assert got.tobytes() == a[np.ix_(*index)].tobytes()


def test_a_rank_that_changes_while_repeats_are_read():
    """The repeats that were read are for other axes."""

    def more_axes(array):
        array.shape = (1, *array.shape)

    region = partial(tilecore.tile_region, start=(0, 0), stop=(1, 1))
    calls = [(tilecore.tile, kind) for kind in (np.ndarray, np.recarray, np.ma.MaskedArray)]
    calls += [(region, np.ndarray), (region, np.ma.MaskedArray), (tilecore.tile_mapped, np.ndarray)]
    for call, kind in calls:
        a = np.ones((2, 3)).view(kind)
        with pytest.raises(ValueError, match="^tile.*: a changed its shape during the call; "):
            call(a, 2, axis=Changing(a, more_axes))
    x = np.ones((2, 3))
    with pytest.raises(ValueError, match="^ONNX Tile-13: input changed its shape during the call; "):
        tilecore.onnx.tile(x, [Changing(x, more_axes), 1])


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_out_that_changes_while_arguments_are_read(change):
    for function in (each for each in PUBLIC if "out" in each.parameters):
        good = function.good()  # and threads are read last
        with pytest.raises((TypeError, ValueError), match=f"^{function.begin}: out must have "):
            function(good | {"threads": Changing(good["out"], change)})


def test_arrays_that_change_while_memory_is_sought(while_threads_are_asked, calls_of):
    """Garbage collection and signal handlers may run meanwhile; the code that is run here stands for them."""
    x, out = np.arange(2**21, dtype="i4"), np.empty(2**22, "i4")  # large enough for several threads
    text = "changed its shape|must have shape"
    for changing, not_of, words in ((x, "stack", text), (out, "batch", "out must have shape")):
        while_threads_are_asked(lambda array=changing: setattr(array, "shape", (2, -1)))
        for name, call in calls_of(x, 2).items():
            for arguments in ((out,),) if changing is out else ((), (out,)):
                x.shape = out.shape = -1
                if not_of not in name:  # they are given a view of it
                    try:
                        got = call(*arguments)
                    except ValueError as error:
                        assert re.search(words, str(error))
                    else:  # the fast path found the change, and the slow one began anew
                        assert name == "tile" and np.array_equal(got, np.tile(x, 2))


@pytest.mark.whole_process
def test_overlaps_are_found_without_python_code():
    """In NumPy's Python code a signal handler could raise, after the arrays were located and before the write."""
    room, called = np.arange(40, dtype="u1"), set()
    x, out = (np.lib.stride_tricks.as_strided(room[at:], (3, 2), (6, 10)) for at in (0, 1))  # too near to be told apart
    want = x.copy()
    sys.setprofile(lambda frame, event, _: called.add(frame.f_code.co_name) if event == "call" else None)
    try:
        tilecore.tile(x, 1, out)
    finally:
        sys.setprofile(None)
    assert (out == want).all() and "shares_memory" not in called


NEW, OTHER = object(), object()


class Dying:
    def __init__(self, last_words):
        self.last_words = last_words

    def __del__(self):
        self.last_words()


@pytest.mark.whole_process
def test_objects_that_die_while_they_are_replaced():
    """They see what replaces them, collect garbage, and tile into the same place; every count is exact at the end."""
    out, seen = np.full(2000, None), []
    source = np.array([NEW, OTHER], object)
    before = [sys.getrefcount(NEW), sys.getrefcount(OTHER)]

    def last_words():
        seen.append(out[0] is NEW)
        gc.collect(0)
        tilecore.tile(source[::-1], 1000, out)

    for k in range(0, 2000, 100):
        cycle = [Dying(last_words)]
        cycle.append(cycle)
        out[k], out[k + 1] = cycle, Dying(last_words)
    del cycle
    tilecore.tile(source, 1000, out)
    gc.collect()
    held = [sum(1 for item in out if item is which) for which in (NEW, OTHER)]
    assert seen[0] and sum(held) == 2000
    assert [sys.getrefcount(NEW), sys.getrefcount(OTHER)] == [a + b for a, b in zip(before, held, strict=True)]
