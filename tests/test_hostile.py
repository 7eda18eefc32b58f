"""Requests that no honest caller makes: every argument of every public function given every wrong
kind of thing, objects that lie, raise or change the input while they are read, impossible sizes.

The answer is a result, a TypeError, ValueError or MemoryError that names the function, or the
object's own exception. After an error nothing has been allocated and nothing is changed. Under
AddressSanitizer (`.ci/sanitize address`) the same tests look for bytes out of bounds.
"""

import decimal
import inspect
import itertools
import sys
import tracemalloc
from functools import partial

import numpy as np
import pytest

import tilecore
from tilecore import directml, onnx, openvino

# From NumPy 2.5 on it warns of what these tests do.
pytestmark = pytest.mark.filterwarnings("ignore:Setting the .* on a NumPy array:DeprecationWarning")


def x():
    return np.arange(6, dtype="f4").reshape(2, 3)


def out(*shape):
    return np.full(shape, 9, "f4")


def plan():
    return tilecore.TilePlan((2, 3), (2, 2), "f4")


def enter_num_threads(n):
    with tilecore.num_threads(n):
        pass


# What each function calls itself in errors; the function; good arguments, made anew for each call.
def legal(function):
    """Arguments for a dialect's function: for most names there is one that every dialect takes."""
    names = inspect.signature(function).parameters
    shape = (4, 3) if "tiles" in names else (4, 6)
    known = dict(
        input=x(), data=x(), input_shape=(2, 3), data_shape=(2, 3), sizes=(2, 3), out=out(*shape),
        threads=1, repeats=[2, 2], repeats_shape=(2,), tiles=2, axis=0,
    )  # fmt: skip
    return {
        name: known.get(name, 13 if parameter.default is parameter.empty else parameter.default)
        for name, parameter in names.items()
    }


CALLS = [
    (
        "tile",
        tilecore.tile,
        lambda: dict(a=x(), reps=(2, 2), out=out(4, 6), axis=(0, 1), threads=1),
    ),
    (
        "tile_region",
        tilecore.tile_region,
        lambda: dict(
            a=x(), reps=(2, 2), start=(1, 1), stop=(3, 4), out=out(2, 3), axis=(0, 1), threads=1
        ),
    ),
    ("tile_view", tilecore.tile_view, lambda: dict(a=x(), reps=(1, 1), axis=(0, 1))),
    ("tile_mapped", tilecore.tile_mapped, lambda: dict(a=x(), reps=(2, 2), axis=(0, 1))),
    ("output_shape", tilecore.output_shape, lambda: dict(shape=(2, 3), reps=(2, 2), axis=(0, 1))),
    (
        "TilePlan",
        tilecore.TilePlan,
        lambda: dict(shape=(2, 3), reps=(2, 2), dtype="f4", axis=(0, 1)),
    ),
    ("TilePlan", plan().__call__, lambda: dict(a=x(), out=out(4, 6), threads=1)),
    (
        "TilePlan",
        plan().region,
        lambda: dict(a=x(), start=(1, 1), stop=(3, 4), out=out(2, 3), threads=1),
    ),
    ("TilePlan.batch", plan().batch, lambda: dict(arrays=[x()], out=out(1, 4, 6), threads=1)),
    (
        "tile_region",
        partial(tilecore.tile_region, reps=None),
        lambda: dict(a=x(), start=(-1, -1), stop=(1, 2), out=out(2, 3), axis=None, threads=1),
    ),
    ("set_max_bytes", tilecore.set_max_bytes, lambda: dict(n=tilecore.get_max_bytes())),
    ("set_recycle_limit", tilecore.set_recycle_limit, lambda: dict(n=tilecore.get_recycle_limit())),
    ("set_num_threads", tilecore.set_num_threads, lambda: dict(n=2)),
    ("num_threads", enter_num_threads, lambda: dict(n=2)),
    ("show_config", tilecore.show_config, lambda: dict(mode="dicts")),
    *[
        (module.DIALECT.name, function, partial(legal, function))
        for module in vars(tilecore).values()
        if hasattr(module, "DIALECT")
        for function in {getattr(module, name): None for name in module.__all__}
    ],
]
NO_ARGUMENTS = {
    "get_include", "get_max_bytes", "get_num_threads", "get_recycle_limit", "recycled_bytes",
    "release_memory", "replace_numpy_tile",
}  # fmt: skip


def looped():
    loop = []
    loop.append(loop)
    return loop


# Every kind of thing, made anew for each call.
THINGS = [
    *[(lambda value=value: value) for value in [
        None, True, 0, 1, -1, 2**31, 2**63, -(2**63) - 1, 10**5000, -(10**5000), 2.0, 1.5,
        float("nan"), float("inf"), 2j, decimal.Decimal(2), "", "22", "x" * 10**5, b"\2\2",
        b"x" * 10**5, int, len, sys, ..., NotImplemented, slice(2), (), [None, None], ["2", "2"],
        [2.0, 2.0], [[2, 2]], [[1], [2, 3]], [2, -2], [True, True], [2**63, 1], [10**5000, 1],
        [1] * 65, range(2, 4), np.True_, np.uint8(2), np.float16(2), np.datetime64("2001"),
        np.dtype("f4"), ValueError("x"),
    ]],
    object, looped, dict, set, lambda: {2: 3}, lambda: {2}, lambda: bytearray(b"ab"),
    itertools.count, lambda: itertools.repeat(1), lambda: (character for character in "ab"),
    lambda: np.array(2), lambda: np.array(2.0), lambda: np.array([2.0, 2.0]), lambda: np.ones(2, "?"),
    lambda: np.array([[2, 2]]), lambda: np.array([2, None], object), lambda: np.array(["2", "2"]),
    lambda: np.ma.array([2, 2], mask=[0, 1]), lambda: np.zeros(2, "V3"), lambda: np.zeros(1000),
    lambda: np.array(["2001"], "M8[s]"), lambda: np.array([2**63, 2], np.uint64),
    lambda: np.array(["2"], np.dtypes.StringDType()),
]  # fmt: skip


@pytest.fixture(autouse=True)
def settings_stay():
    before = tilecore.get_max_bytes(), tilecore.get_recycle_limit(), tilecore._core.threads._process
    yield
    tilecore.set_max_bytes(before[0])
    tilecore.set_recycle_limit(before[1])
    tilecore._core.threads._process = before[2]


def arrays_in(arguments):
    return [value for value in arguments.values() if isinstance(value, np.ndarray)]


def fingerprint(array):
    return array.shape, array.strides, array.dtype, array.tobytes()


def settings():
    return (
        tilecore.get_max_bytes(), tilecore.get_recycle_limit(), tilecore.get_num_threads(),
    )  # fmt: skip


def test_every_public_function_is_here():
    public = [getattr(tilecore, name) for name in tilecore.__all__]
    modules = [value for value in public if inspect.ismodule(value)]
    public += [getattr(module, name) for module in modules for name in module.__all__]
    called = {function for _, function, _ in CALLS} | {tilecore.num_threads}
    left_out = {value.__name__ for value in public if callable(value) and value not in called}
    assert left_out == NO_ARGUMENTS
    for _, function, make in CALLS:
        if function is not enter_num_threads and not isinstance(function, partial):
            assert list(inspect.signature(function).parameters) == list(make())


@pytest.mark.parametrize(
    ("name", "function", "make", "argument"),
    [
        pytest.param(name, function, make, argument, id=f"{name}-{argument}-{number}")
        for number, (name, function, make) in enumerate(CALLS)
        for argument in make()
    ],
)
def test_every_wrong_kind(name, function, make, argument):
    refused = 0
    tracemalloc.start()
    try:
        for thing in THINGS:
            arguments = {**make(), argument: thing()}
            before = [fingerprint(array) for array in arrays_in(arguments)]
            were = settings()
            positional = name.startswith(("set_max", "set_recycle"))
            tracemalloc.reset_peak()
            used = tracemalloc.get_traced_memory()[0]
            try:
                if positional:
                    function(*arguments.values())
                else:
                    function(**arguments)
            except (TypeError, ValueError, MemoryError) as error:
                # A memoryview that was released says so itself.
                assert str(error).startswith(name) or "released memoryview" in str(error), repr(
                    error
                )
                assert len(str(error)) < 2000
                assert tracemalloc.get_traced_memory()[1] - used < 1 << 20
                assert [fingerprint(array) for array in arrays_in(arguments)] == before
                assert settings() == were
                refused += 1
            else:
                tilecore.set_max_bytes(were[0])
                tilecore.set_recycle_limit(were[1])
    finally:
        tracemalloc.stop()
    # Whatever the argument, most things are wrong; only as an input is nearly everything an array.
    most = name in ("tile_view", "tile_mapped") and argument == "a"
    assert refused >= (2 if most else len(THINGS) // 2)


# ---------------------------------------------------------------- objects with a will of their own


class Own(Exception):
    """Not an error of Python's: what an object raises must come out as it is."""


class OwnValue(ValueError):
    pass


class OwnType(TypeError):
    pass


def fail(error):
    raise error("mine")


def raising(method, error):
    return type("Raising", (), {method: lambda *_, **__: fail(error)})()


INTEGERS = [
    (tilecore.tile, {"a": x()}, "reps"), (tilecore.tile, {"a": x(), "reps": 2}, "threads"),
    (tilecore.tile_region, {"a": x(), "reps": 2, "stop": (1, 1)}, "start"),
    (tilecore.tile_region, {"a": x(), "reps": 2, "start": (0, 0)}, "stop"),
    (tilecore.tile_region, {"a": x(), "reps": None, "stop": (1, 1)}, "start"),
    (plan().batch, {"arrays": [x()]}, "threads"),
    (tilecore.output_shape, {"reps": 2}, "shape"), (tilecore.output_shape, {"shape": 2}, "reps"),
    (tilecore.TilePlan, {"reps": 2, "dtype": "u1"}, "shape"), (tilecore.set_num_threads, {}, "n"),
    (onnx.tile, {"input": np.ones(1), "repeats": [2]}, "threads"),
    (onnx.tile_1, {"input": np.ones(1), "tiles": 2, "axis": 0}, "threads"),
    (openvino.tile, {"data": np.ones(1), "repeats": [2]}, "threads"),
    (directml.tile, {"input": np.ones(1, "f4"), "repeats": [2]}, "threads"),
    (onnx.tile, {"input": np.ones(1)}, "repeats"), (onnx.supported_types, {}, "opset"),
]  # fmt: skip


@pytest.mark.parametrize("error", [Own, OwnValue, OwnType, KeyboardInterrupt])
@pytest.mark.parametrize(("function", "others", "argument"), INTEGERS)
def test_own_exceptions_of_integers(function, others, argument, error):
    bad = raising("__index__", error)
    with pytest.raises(error, match="mine"):
        function(**others, **{argument: [bad] if argument == "repeats" else bad})
    if argument in ("reps", "start", "stop", "shape"):
        for worse in (raising("__iter__", error), [bad], itertools.starmap(fail, [(error,)])):
            with pytest.raises(error, match="mine"):
                function(**others, **{argument: worse})


@pytest.mark.parametrize("error", [Own, OwnType, KeyboardInterrupt])
def test_own_exceptions_of_axes(error):
    bad = raising("__index__", error)
    for axis in (bad, (bad,), raising("__iter__", error)):
        with pytest.raises(error, match="mine"):
            tilecore.tile(x(), 2, axis=axis)


@pytest.mark.parametrize("name", ["ndarray", "array", "int", "dict", "bytes", "deque"])
def test_types_named_as_others(name):
    """How an argument is shown in an error must not go by the name of its type."""
    thing = type(name, (), {})()
    for call in (
        lambda: tilecore.tile(x(), thing),
        lambda: tilecore.tile(x(), [1, thing]),
        lambda: tilecore.tile(x(), 2, threads=thing),
        lambda: tilecore.tile(x(), 2, axis=thing),
        lambda: tilecore.set_num_threads(thing),
        lambda: onnx.tile(np.ones(1), thing),
    ):
        with pytest.raises(TypeError, match=name):
            call()


@pytest.mark.parametrize("error", [Own, OwnValue, KeyboardInterrupt])
@pytest.mark.parametrize(
    "function", [tilecore.tile, tilecore.tile_view, tilecore.tile_mapped, onnx.tile, openvino.tile]
)
def test_own_exceptions_of_arrays(function, error):
    with pytest.raises(error, match="mine"):
        function(raising("__array__", error), [2])
    with pytest.raises(error, match="mine"):
        tilecore.TilePlan(2, 2, "f4")(raising("__array__", error))


class Pretender:
    """Says of itself that it is an array, and is none."""

    def __array_function__(self, *_):
        raise AssertionError("nobody should ask")

    def __init__(self, what):
        self.what = what

    @property
    def __class__(self):
        return self.what


@pytest.mark.parametrize("what", [np.ndarray, np.ma.MaskedArray, np.memmap])
def test_who_pretends_to_be_an_array(what):
    with pytest.raises(TypeError, match="^tile: out must be a NumPy array, got Pretender"):
        tilecore.tile(x(), 2, Pretender(what))
    with pytest.raises(TypeError, match="^tile_region: input must be a plain array, got Pretender"):
        tilecore.tile_region(Pretender(what), 2, (0,), (1,))
    with pytest.raises(AssertionError, match="nobody"):  # its own, from numpy.tile
        tilecore.tile(Pretender(what), 2)
    with pytest.raises(TypeError, match="^ONNX Tile-13: input is of type object"):
        onnx.tile(Pretender(what), [])


CHANGES = {
    "shape": lambda a: setattr(a, "shape", (a.size,)),
    "more axes": lambda a: setattr(a, "shape", (a.size // 2, 1, 2, 1)),
    "narrower items": lambda a: setattr(a, "dtype", "u1"),
    "wider items": lambda a: setattr(a, "dtype", "f8"),
    "less memory": lambda a: a.resize(2, refcheck=False),
    "no memory": lambda a: a.resize(0, refcheck=False),
}


class Changing:
    """The integer 1, that changes an array while it is read."""

    def __init__(self, array, change):
        self.array, self.change = array, change

    def __index__(self):
        self.change(self.array)
        return 1


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_input_that_changes_while_arguments_are_read(oracle, change):
    def fresh():
        a = np.arange(100_000, dtype="f4")
        a.shape = 2, 50_000
        return a, Changing(a, change)

    def check(call):
        a, evil = fresh()
        try:
            got = call(a, evil)
        except (TypeError, ValueError) as error:
            assert ": " in str(error)
        else:
            want = oracle(a, (1,) * got.ndim)[
                tuple(slice(n) for n in got.shape)
            ]  # a region is its first part
            assert got.dtype == a.dtype and got.tobytes() == want.tobytes()

    ready = tilecore.TilePlan((2, 50_000), 1, "f4")
    check(lambda a, evil: tilecore.tile(a, evil))
    check(lambda a, evil: tilecore.tile(a, 1, threads=evil))
    check(lambda a, evil: tilecore.tile_view(a, evil))
    check(lambda a, evil: tilecore.tile_mapped(a, evil))
    check(lambda a, evil: tilecore.tile_region(a, evil, (0,) * a.ndim, a.shape))
    check(lambda a, evil: tilecore.tile_region(a, 1, (0, 0), (evil, 50_000)))
    check(lambda a, evil: tilecore.tile_region(a, 1, (0, 0), (2, 50_000), threads=evil))
    check(lambda a, evil: ready(a, threads=evil))
    check(lambda a, evil: ready.region(a, (0, 0), (2, 50_000), threads=evil))
    check(lambda a, evil: ready.region(a, (0, 0), (evil, 50_000)))
    check(lambda a, evil: ready.batch([a], threads=evil)[0])
    check(lambda a, evil: tilecore.TilePlan(50_000, 1, "f4").batch(a, threads=evil))
    check(lambda a, evil: tilecore.tile_region(a, None, (0, 0), (evil, 25_000)))
    check(lambda a, evil: onnx.tile(a, [evil, 1]))
    check(lambda a, evil: openvino.tile(a, [evil]))


def changing_out(a, change, shape):
    """An `out` of a class of its own that changes `a` when somebody asks what it is."""

    class Out(np.ndarray):
        armed = False

        @property
        def __class__(self):
            if self.armed:
                change(a)
            return Out

        def __array_function__(self, function, *_):
            change(a)
            return False

    result = np.zeros(shape, "f4").view(Out)
    result.armed = True
    return result


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_input_that_changes_while_out_is_looked_at(oracle, change):
    """Between plan and writing: the plan would no longer be true."""
    whole = tilecore.TilePlan(100_000, 2, "f4")
    for call in (
        lambda a, out: tilecore.tile(a, 2, out),
        lambda a, out: tilecore.tile_region(a, 2, (0,), (200_000,), out),
        lambda a, out: whole(a, out),
        lambda a, out: whole.region(a, (0,), (200_000,), out),
        lambda a, out: tilecore.tile_region(a, None, (-100_000,), (100_000,), out),
    ):
        a = np.arange(100_000, dtype="f4")
        want = oracle(a, 2)
        out = changing_out(a, change, 200_000)
        assert call(a, out) is out
        assert a.shape == (100_000,)  # nobody asked
        assert out.view(np.ndarray).tobytes() == want.tobytes()


@pytest.mark.parametrize("change", ["fewer axes", "narrower steps"])
def test_input_that_changes_while_memory_is_sought(program, change):
    """Its strides are then no longer those that were planned for, nor as many. A function of tilecore's
    own, in which the interpreter lets signal handlers and other threads run, stands for those."""
    program(
        f"""
change = {change!r}
N = 2**23
v = numpy.zeros(2 * N, "i4")[::2]
v[:] = numpy.arange(N)
want = v.tobytes()
shape = (2,) * 16 + (N >> 16,)

def changing(answer):
    def function():
        if change == "fewer axes":
            v.shape = N
        else:
            v.shape = N
            v.strides = 4
        return answer
    return function

import tilecore._core.recycle, tilecore._core.tiling
tilecore._core.recycle.in_multiprocessing_child = changing(False)
tilecore._core.tiling.get_num_threads = changing(1)
plan = tilecore.TilePlan(shape, (2,) + (1,) * 16, "i4")
start, stop = (0,) * 17, plan.output_shape
out = numpy.empty(stop, "i4")
for call in (
    lambda: tilecore.tile(v, plan.reps),
    lambda: tilecore.tile(v, plan.reps, out),
    lambda: tilecore.tile_region(v, plan.reps, start, stop),
    lambda: tilecore.tile_region(v, plan.reps, start, stop, out),
    lambda: tilecore.tile_mapped(v, plan.reps),
    lambda: plan(v),
    lambda: plan.region(v, start, stop),
):
    if v.ndim == 1:
        v.strides = 8
    v.shape = shape
    assert call().tobytes() == want * 2
    assert v.ndim == 1                  # it did change
""",
        "-W",
        "ignore::DeprecationWarning",
    )


def test_out_that_lies_about_sharing():
    a = np.arange(8, dtype="f4")

    class Out(np.ndarray):
        def __array_function__(self, function, *_):
            return False

    with pytest.raises(ValueError, match="must not share memory"):
        tilecore.tile(a[:4], 2, a.view(Out))


# ---------------------------------------------------------------- sizes and strides


@pytest.mark.parametrize(
    ("shape", "reps", "what"),
    [
        ((2,), (2**62,), "axis 0 overflows"),
        ((1, 1), (2**32, 2**31), "more than 9223372036854775807 elements"),
        ((1, 1), (2**31, 2**31), "more than 9223372036854775807 bytes"),
    ],
)
def test_products_that_overflow(shape, reps, what):
    a = np.ones(shape)
    for call in (
        lambda: tilecore.tile(a, reps),
        lambda: tilecore.tile_mapped(a, reps),
        lambda: tilecore.tile_region(a, reps, (0,) * a.ndim, (1,) * a.ndim),
        lambda: tilecore.TilePlan(shape, reps, a.dtype),
        lambda: onnx.tile(a, reps),
        lambda: openvino.tile(a, reps),
    ):
        with pytest.raises(ValueError, match=what) as caught:
            call()
        assert str(reps[0]) in str(caught.value)
    assert tilecore.TilePlan((1, 0), (2**62, 2**62), "u1").nbytes == 0


@pytest.mark.parametrize("dtype", ["f4", object, "U3"])
@pytest.mark.parametrize("repeats", [[10**9], [2**40], [2**59 - 1], [2**62]])
def test_repeats_bomb(dtype, repeats):
    """A model's repeats tensor that asks for petabytes."""
    a = np.full(4, "a").astype(dtype) if dtype != "f4" else np.ones(4, "f4")
    repeats = np.array(repeats, np.int64)
    tilecore.set_max_bytes(min(tilecore.get_max_bytes(), 10**9))
    for call in (onnx.tile_6, onnx.tile_13, openvino.tile, tilecore.tile):
        tracemalloc.start()
        try:
            with pytest.raises((MemoryError, ValueError), match="bytes|overflows") as caught:
                call(a, repeats)
            assert tracemalloc.get_traced_memory()[1] < 1 << 20
        finally:
            tracemalloc.stop()
        overflows = a.itemsize * 4 * int(repeats[0]) >= 2**63
        assert caught.type is (ValueError if overflows else MemoryError)
        assert str(repeats[0]) in str(caught.value)


@pytest.mark.parametrize("stride", [0, -8, 2**62, -(2**62), 3])
def test_strides_of_every_kind(oracle, stride):
    """An axis of one element may have any stride, and an empty array too."""
    data = np.arange(64, dtype="u1")
    one = np.lib.stride_tricks.as_strided(data, (1, 8, 1), (stride, 3, stride))
    for a in (one, one[:, ::-1], one[:, :0]):
        want = oracle(a, (3, 2, 5))
        assert tilecore.tile(a, (3, 2, 5)).tobytes() == want.tobytes()
        assert tilecore.tile(a, (3, 2, 5), np.empty_like(want)).tobytes() == want.tobytes()
        part = tilecore.tile_region(a, (3, 2, 5), (1, 0, 1), (3, want.shape[1], 4))
        assert part.tobytes() == want[1:3, :, 1:4].tobytes()


def test_as_many_threads_as_one_can_say(oracle):
    tilecore.set_num_threads(10**30)
    a = np.arange(1 << 14, dtype="u1")
    assert tilecore.get_num_threads() == 2**31 - 1
    result = tilecore.tile(a, (1 << 12, 1))  # 64 MiB: several threads
    assert (result == a).all()


# ---------------------------------------------------------------- titles of fields


class Title:
    """NumPy compares the titles of two structures' fields by their __eq__."""

    def __init__(self, act=None):
        self.act = act

    def __hash__(self):
        return 1

    def __eq__(self, other):
        act = self.act or (other.act if isinstance(other, Title) else None)
        return True if act is None else act()


def titled(title):
    return np.dtype({"names": ["a"], "formats": ["u8"], "titles": [title]})


def titled_calls(make):
    """By name: a call that compares dtypes, and the input that it is given."""
    for name in ("tile", "tile_region", "plan", "plan, out", "plan.region"):
        title = Title()
        x, out = np.zeros(6, titled(title)), np.zeros(12, titled(Title()))
        x["a"] = np.arange(6)
        plan = tilecore.TilePlan((6,), 2, titled(Title()) if "plan" in name else "u8")
        title.act = make(x, out)
        yield {
            "tile": partial(tilecore.tile, x, 2, out),
            "tile_region": partial(tilecore.tile_region, x, 2, (0,), (12,), out),
            "plan": partial(plan, x),
            "plan, out": partial(plan, x, out),
            "plan.region": partial(plan.region, x, (0,), (12,), out),
        }[name]


def test_titles_that_raise():
    for call in titled_calls(lambda x, out: lambda: fail(Own)):
        with pytest.raises(Own, match="mine"):
            call()


def test_titles_that_differ():
    for call in titled_calls(lambda x, out: lambda: False):
        with pytest.raises(TypeError, match="dtype"):
            call()


@pytest.mark.parametrize("change", ["shape", "dtype", "items", "out"])
def test_titles_that_change_the_input(change):
    """What is read lies in the input, and what is written in `out`, whatever the comparison does."""

    def make(x, out):
        def act():
            if change == "shape":
                x.shape = (2, 3)
            elif change == "dtype":
                x.dtype = np.dtype(("V1", (8,))) if x.ndim == 0 else np.dtype("V1")
            elif change == "items":
                x.dtype = np.dtype([("b", "u4"), ("c", "u4")])
            else:
                out.shape = (3, 4)
            return True

        return act

    for call in titled_calls(make):
        try:
            result = call()
        except (TypeError, ValueError) as error:
            assert "shape" in str(error) or "dtype" in str(error)
        else:
            assert result.nbytes == 96  # bytes of the input alone
            assert set(result.view("u8").ravel().tolist()) == set(range(6))
