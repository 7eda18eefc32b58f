"""Code of the caller's that runs in a call: objects that raise, lie, or change the input while they are read.

The answer is a result of the input as it was or as it is, a TypeError, ValueError or MemoryError that
names the function, or the object's own exception. Under AddressSanitizer (`.ci/sanitize address`) the
same tests look for bytes out of bounds.
"""

import gc
import itertools
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

import tilecore
from tilecore import directml, onnx, openvino

# From NumPy 2.5 on it warns of what these tests do.
pytestmark = [
    pytest.mark.quick,
    pytest.mark.filterwarnings("ignore:Setting the .* on a NumPy array:DeprecationWarning"),
]


def x():
    return np.arange(6, dtype="f4").reshape(2, 3)


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
    (tilecore.tile, {"a": x(), "reps": 2}, "axis"),
    (tilecore.tile_region, {"a": x(), "reps": 2, "stop": (1, 1)}, "start"),
    (tilecore.tile_region, {"a": x(), "reps": 2, "start": (0, 0)}, "stop"),
    (tilecore.tile_region, {"a": x(), "reps": None, "stop": (1, 1)}, "start"),
    (tilecore.TilePlan((2, 3), (2, 2), "f4").batch, {"arrays": [x()]}, "threads"),
    (tilecore.output_shape, {"reps": 2}, "shape"), (tilecore.output_shape, {"shape": 2}, "reps"),
    (tilecore.TilePlan, {"reps": 2, "dtype": "u1"}, "shape"), (tilecore.set_num_threads, {}, "n"),
    (onnx.tile, {"input": np.ones(1), "repeats": [2]}, "threads"),
    (onnx.tile_1, {"input": np.ones(1), "tiles": 2, "axis": 0}, "threads"),
    (openvino.tile, {"data": np.ones(1), "repeats": [2]}, "threads"),
    (directml.tile, {"input": np.ones(1, "f4"), "repeats": [2]}, "threads"),
    (onnx.tile, {"input": np.ones(1)}, "repeats"), (onnx.supported_types, {}, "opset"),
    *[(openvino.tile, {"data": np.ones(1)}, "repeats"), (directml.tile, {"input": np.ones(1, "f4")}, "repeats")],
    *[(partial(module.infer_shape, (1,)), {}, "repeats") for module in (onnx, openvino, directml)],
    *[(lambda repeats, module=module: module.infer_shape(repeats, [1]), {}, "repeats")
      for module in (onnx, openvino, directml)],
]  # fmt: skip


@pytest.mark.parametrize("error", [Own, OwnValue, OwnType, TypeError, KeyboardInterrupt])
@pytest.mark.parametrize(("function", "others", "argument"), INTEGERS)
def test_own_exceptions_of_integers(function, others, argument, error):
    bad = raising("__index__", error)
    with pytest.raises(error, match="mine"):
        function(**others, **{argument: [bad] if argument == "repeats" else bad})
    if argument in ("reps", "start", "stop", "shape", "axis"):
        for worse in (raising("__iter__", error), [bad], itertools.starmap(fail, [(error,)])):
            with pytest.raises(error, match="mine"):
                function(**others, **{argument: worse})


NAMED = [type(name, (), {})() for name in ("ndarray", "array", "int", "dict", "bytes", "deque")]
HASHLESS = type("Meta", (type,), {"__eq__": lambda *_: True})("Hashless", (), {})()


@pytest.mark.whole_process
@pytest.mark.parametrize("thing", [*NAMED, HASHLESS], ids=lambda thing: type(thing).__name__)
def test_how_things_are_shown(thing):
    """In an error: not by the name of their type, which may be another's; and their class may have no hash."""
    for call in (
        lambda: tilecore.tile(x(), thing),
        lambda: tilecore.tile(x(), [1, thing]),
        lambda: tilecore.tile(x(), 2, threads=thing),
        lambda: tilecore.tile(x(), 2, axis=thing),
        lambda: tilecore.set_num_threads(thing),
        lambda: onnx.tile(np.ones(1), thing),
    ):
        with pytest.raises(TypeError, match=type(thing).__name__):
            call()
    with pytest.raises(np.exceptions.AxisError, match="^tile_region: axis 0 is out of bounds"):
        tilecore.tile_region(thing, 2, 0, 1, axis=0)


# All the classes that NumPy's own errors may have, and those of Python that are kinds of these.
OWN = [type("Mine", (kind,), {}) for kind in (ValueError, TypeError, RuntimeError, BufferError, MemoryError)]
OWN += [Own, KeyboardInterrupt, RecursionError, NotImplementedError]


@pytest.mark.parametrize("error", OWN)
@pytest.mark.parametrize(
    "function", [tilecore.tile, tilecore.tile_view, tilecore.tile_mapped, onnx.tile, openvino.tile, directml.tile]
)
def test_own_exceptions_of_arrays(function, error):
    bad, plan = raising("__array__", error), tilecore.TilePlan(2, 2, "f4")
    for call in (
        lambda: function(bad, [2]),
        lambda: function([bad], [2]),
        lambda: function(raising("__dlpack__", error), [2]),
        *(partial(module.tile, np.ones(1, "f4"), bad) for module in (onnx, openvino, directml)),
        lambda: plan.tile(bad),
        lambda: plan.batch([bad]),
    ):
        with pytest.raises(error, match="mine") as caught:
            call()
        assert caught.type is error


def test_numpys_own_memory_error():
    """It is no caller's, and takes no words: ours is Python's."""
    large = type("Large", (), {"__array__": lambda *_, **__: np.empty(2**60, "u1")})()
    with pytest.raises(MemoryError, match="^tile: a of type Large cannot be read as an array: ") as caught:
        tilecore.tile(large, 2)
    assert caught.type is MemoryError and type(caught.value.__cause__) is not MemoryError


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
    with pytest.raises(TypeError, match="^tile_region: a must be a plain array, got Pretender"):
        tilecore.tile_region(Pretender(what), 2, (0,), (1,))
    with pytest.raises(AssertionError, match="nobody"):  # its own, from numpy.tile
        tilecore.tile(Pretender(what), 2)
    with pytest.raises(TypeError, match="^ONNX Tile-13: input is of type object"):
        onnx.tile(Pretender(what), [])


# ---------------------------------------------------------------- input that changes while it is read

CHANGES = {
    "shape": lambda a: setattr(a, "shape", (a.size,)),
    "more axes": lambda a: setattr(a, "shape", (a.size // 2, 1, 2, 1)),
    "other items": lambda a: setattr(a, "dtype", "i4"),
    "narrower items": lambda a: setattr(a, "dtype", "u1"),
    "wider items": lambda a: setattr(a, "dtype", "f8"),
    "shorter rows": lambda a: a.resize((*a.shape[:-1], 2), refcheck=False),
    "less memory": lambda a: a.resize(2, refcheck=False),
    "no memory": lambda a: a.resize(0, refcheck=False),
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
    ("ONNX Tile-13", lambda a, evil: onnx.tile(a, [evil, 1])),
    ("OpenVINO Tile-1", lambda a, evil: openvino.tile(a, [evil])),
]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_input_that_changes_while_arguments_are_read(change):
    """A result of what it is by then, or an error."""
    for name, call in READING:
        a = np.arange(100_000, dtype="f4")
        a.shape = 2, 50_000
        try:
            got = call(a, Changing(a, change))
        except (TypeError, ValueError) as error:
            assert str(error).startswith(f"{name}: ")
        else:
            assert got.itemsize == a.itemsize
            a = a.reshape((1,) * (got.ndim - a.ndim) + a.shape)
            index = [np.arange(n) % max(m, 1) for n, m in zip(got.shape, a.shape, strict=True)]
            assert got.tobytes() == a[np.ix_(*index)].tobytes()


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
        lambda a, out: whole.tile(a, out),
        lambda a, out: whole.region(a, (0,), (200_000,), out),
        lambda a, out: tilecore.tile_region(a, None, (-100_000,), (100_000,), out),
    ):
        a = np.arange(100_000, dtype="f4")
        want = oracle(a, 2)
        out = changing_out(a, change, 200_000)
        assert call(a, out) is out
        assert a.shape == (100_000,)  # nobody asked
        assert out.view(np.ndarray).tobytes() == want.tobytes()


def test_input_that_changes_while_memory_is_sought(monkeypatch):
    """In a function of tilecore's own the interpreter may run signal handlers and other threads; this one stands for
    those."""
    v = np.arange(2**20, dtype="i4")

    def changing():
        v.resize(4, refcheck=False)
        return 1

    monkeypatch.setattr(tilecore._core.write.tiling, "get_num_threads", changing)
    plan = tilecore.TilePlan(2**20, 2, "i4")
    start, stop = (0,), plan.output_shape
    out = np.empty(stop, "i4")
    for call in (
        lambda: tilecore.tile(v, 2),
        lambda: tilecore.tile(v, 2, out),
        lambda: tilecore.tile_region(v, 2, start, stop),
        lambda: tilecore.tile_region(v, 2, start, stop, out),
        lambda: tilecore.tile_mapped(v, 2),
        lambda: plan.tile(v),
        lambda: plan.region(v, start, stop),
        lambda: plan.batch([v]),
        lambda: plan.batch([v], out[None]),
    ):
        v.resize(2**20, refcheck=False)
        with pytest.raises(ValueError, match="changed its shape|must have shape"):
            call()
    out.resize(2**21, refcheck=False)
    v = np.arange(2**20, dtype="i4")
    monkeypatch.setattr(tilecore._core.write.tiling, "get_num_threads", lambda: out.resize(4, refcheck=False) or 1)
    for call in (partial(plan.tile, v, out), partial(tilecore.tile_region, v, 2, start, stop, out)):
        out.resize(2**21, refcheck=False)
        with pytest.raises(ValueError, match="out must have shape"):
            call()


def test_out_that_lies_about_sharing():
    a = np.arange(8, dtype="f4")

    class Out(np.ndarray):
        def __array_function__(self, function, *_):
            return False

    with pytest.raises(ValueError, match="must not share memory"):
        tilecore.tile(a[:4], 2, a.view(Out))


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


@pytest.mark.parametrize("what", ["raise", "differ", "shape", "dtype", "items", "out"])
@pytest.mark.parametrize("way", ["tile", "tile_region", "plan.tile", "plan.tile, out", "plan.region"])
def test_titles(way, what):
    """What is read lies in the input, and what is written in `out`, whatever the comparison does."""
    title = Title()
    x, out = np.zeros(6, titled(title)), np.zeros(12, titled(Title()))
    x["a"] = np.arange(6)
    plan = tilecore.TilePlan((6,), 2, titled(Title()) if "plan" in way else "u8")

    def act():
        if what == "raise":
            fail(Own)
        elif what == "shape":
            x.shape = (2, 3)
        elif what == "dtype":
            x.dtype = np.dtype(("V1", (8,))) if x.ndim == 0 else np.dtype("V1")
        elif what == "items":
            x.dtype = np.dtype([("b", "u4"), ("c", "u4")])
        elif what == "out":
            out.shape = (3, 4)
        return what != "differ"

    title.act = act
    try:
        result = {
            "tile": partial(tilecore.tile, x, 2, out),
            "tile_region": partial(tilecore.tile_region, x, 2, (0,), (12,), out),
            "plan.tile": partial(plan.tile, x),
            "plan.tile, out": partial(plan.tile, x, out),
            "plan.region": partial(plan.region, x, (0,), (12,), out),
        }[way]()
    except Own:
        assert what == "raise"
    except (TypeError, ValueError) as error:
        assert what != "raise" and ("dtype" in str(error) or what != "differ" and "shape" in str(error))
    else:
        assert what not in ("raise", "differ")
        assert result.nbytes == 96  # bytes of the input alone
        assert set(result.view("u8").ravel().tolist()) == set(range(6))


# ---------------------------------------------------------------- plans


@pytest.mark.parametrize("size", [1, 4, 4096])
@pytest.mark.parametrize("fields", [True, False])
def test_a_dtype_that_is_changed_in_place(fields, size, ways):
    """The plan is for items of 8 bytes; those of its dtype are of another size by now."""
    dtype = np.dtype([("a", "u1")] if fields else "V8")
    state = list(dtype.__reduce__()[2])
    state[5] = 8
    dtype.__setstate__(tuple(state))
    plan = tilecore.TilePlan(1000, 3, dtype)
    hashed = hash(plan)
    state[5] = size
    dtype.__setstate__(tuple(state))
    x, out = np.zeros(1000, dtype), np.zeros(3000, dtype)
    for name, call in ways(x, 3, plan).items():
        for arguments in ((), (out,)) if name.startswith("TilePlan") else ():
            with pytest.raises(ValueError, match=r"^TilePlan.*shape .*1000"):
                call(*arguments)
    assert hash(plan) == hashed
    again = tilecore.TilePlan(1000, 3, dtype)  # for items as they are now
    assert again.tile(x).nbytes == 3000 * size


def test_plans_that_are_half_made():
    """Nobody finds one, neither while its arguments are read nor after that has failed."""
    found = []

    class Searching:
        def __index__(self):
            found.extend(item for item in gc.get_objects() if type(item) is tilecore.TilePlan)
            return 2

    for arguments in ((Searching(), 2), (2, Searching()), (2, [Searching(), raising("__index__", Own)])):
        with suppress(Own):
            tilecore.TilePlan(*arguments, "f8")
    Searching().__index__()
    assert not [plan for plan in found if plan.reps is None]
