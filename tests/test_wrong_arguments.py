"""Wrong arguments: every argument of every public function given every wrong kind of thing, and impossible sizes.
What the caller's own code may do: test_foreign_code.py.

The answer is a result, or a TypeError, ValueError or MemoryError that names the function. After an
error nothing has been allocated and nothing is changed. Under AddressSanitizer (`.ci/sanitize
address`) the same tests look for bytes out of bounds.
"""

import decimal
import inspect
import itertools
import re
import sys
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import tilecore
from tilecore._dialects import tensors

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("settings_stay")]


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
    """Arguments for a dialect's function, whose first one is an array, a shape, or a version."""
    names = inspect.signature(function).parameters
    shape = (4, 3) if "tiles" in names else (4, 6)
    known = dict(out=out(*shape), threads=1, repeats=[2, 2], repeats_shape=(2,), tiles=2, axis=0)
    if names.keys() & {"repeats", "tiles"}:
        known[next(iter(names))] = x() if "out" in names else (2, 3)
    return {
        name: known.get(name, 13 if parameter.default is parameter.empty else parameter.default)
        for name, parameter in names.items()
    }


MODULES = [module for module in vars(tilecore).values() if hasattr(module, "DIALECT")]
DIALECTS = {module.DIALECT.name: module.DIALECT for module in MODULES}
CALLS = [
    ("tile", tilecore.tile, lambda: dict(a=x(), reps=(2, 2), out=out(4, 6), axis=(0, 1), threads=1)),
    ("tile_region", tilecore.tile_region, lambda: dict(
        a=x(), reps=(2, 2), start=(1, 1), stop=(3, 4), out=out(2, 3), axis=(0, 1), threads=1)),
    ("tile_view", tilecore.tile_view, lambda: dict(a=x(), reps=(1, 1), axis=(0, 1))),
    ("tile_mapped", tilecore.tile_mapped, lambda: dict(a=x(), reps=(2, 2), axis=(0, 1))),
    ("output_shape", tilecore.output_shape, lambda: dict(shape=(2, 3), reps=(2, 2), axis=(0, 1))),
    ("TilePlan", tilecore.TilePlan, lambda: dict(shape=(2, 3), reps=(2, 2), dtype="f4", axis=(0, 1))),
    ("TilePlan.tile", plan().tile, lambda: dict(a=x(), out=out(4, 6), threads=1)),
    ("TilePlan.region", plan().region, lambda: dict(a=x(), start=(1, 1), stop=(3, 4), out=out(2, 3), threads=1)),
    ("TilePlan.batch", plan().batch, lambda: dict(arrays=[x()], out=out(1, 4, 6), threads=1)),
    ("tile_region", partial(tilecore.tile_region, reps=None), lambda: dict(
        a=x(), start=(-1, -1), stop=(1, 2), out=out(2, 3), axis=None, threads=1)),
    ("set_max_bytes", tilecore.set_max_bytes, lambda: dict(n=tilecore.get_max_bytes())),
    ("set_recycle_limit", tilecore.set_recycle_limit, lambda: dict(n=tilecore.get_recycle_limit())),
    ("set_num_threads", tilecore.set_num_threads, lambda: dict(n=2)),
    ("num_threads", enter_num_threads, lambda: dict(n=2)),
    ("show_config", tilecore.show_config, lambda: dict(mode="dicts")),
    *[
        (module.DIALECT.name, function, partial(legal, function))
        for module in MODULES
        for function in {getattr(module, name): None for name in module.__all__}
    ],
]  # fmt: skip
NO_ARGUMENTS = {
    "get_include", "get_max_bytes", "get_num_threads", "get_recycle_limit", "recycled_bytes",
    "profile", "release_memory", "replace_numpy_tile",
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


def fingerprints(arguments):
    arrays = [value for value in arguments.values() if isinstance(value, np.ndarray)]
    return [(array.shape, array.strides, array.dtype, array.tobytes()) for array in arrays]


def call(name, function, arguments):
    positional = name.startswith(("set_max", "set_recycle"))
    return function(*arguments.values()) if positional else function(**arguments)


def settings():
    return tilecore.get_max_bytes(), tilecore.get_recycle_limit(), tilecore.get_num_threads()


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
            before = fingerprints(arguments)
            were = settings()
            tracemalloc.reset_peak()
            used = tracemalloc.get_traced_memory()[0]
            try:
                call(name, function, arguments)
            except (TypeError, ValueError, MemoryError) as error:
                # A memoryview that was released says so itself.
                assert str(error).startswith(name) or "released memoryview" in str(error), repr(error)
                assert len(str(error)) < 2000
                assert tracemalloc.get_traced_memory()[1] - used < 1 << 20
                assert fingerprints(arguments) == before
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


# ---------------------------------------------------------------- each rule, and the doors to which it applies

MOST = 2**63 - 1


class Door(NamedTuple):
    label: str
    name: str  # that errors begin with
    function: Callable
    make: Callable
    traits: dict  # of a dialect


def find_doors():
    for name, function, make in CALLS:
        traits = DIALECTS[name]._asdict() if name in DIALECTS else {}
        if traits:
            types = traits["types"]
            traits |= {"tiles": "out" in make(), "text": types is None or "str" in types.names}
        yield Door(f"{name} {getattr(function, '__name__', 'endless')}", name, function, make, traits)


def of_dialects(**traits):
    """Chooses doors of dialects that have these traits; `tiles`: that make an array; `text`: that take strings."""
    return lambda door: door.traits and traits.items() <= door.traits.items()


def CORE(door):
    return not door.traits


def OURS(door):
    """Doors of `reps`; in Tile-1 and in an endless plane `axis` is another."""
    return CORE(door) and not door.label.endswith("endless")


AS_CORE, TEXT = of_dialects(tiles=True, max_elements=None), of_dialects(tiles=True, max_elements=None, text=True)
INTEGERS = {"reps": "", "shape": CORE, "start": "", "stop": "", "axis": OURS}
LIMITS = {row.max_elements for row in DIALECTS.values() if row.max_elements}
DOORS = [*find_doors()]
NO_SEQUENCES = [1.0, True, np.True_, "", "22", b"", b"\2", bytearray(b"\2"), set(), {2, 3}, frozenset([2])]
NO_INTEGERS = [
    *[((2, 1.0), 1, "float"), (("a", "b"), 0, "str"), (np.array([1.5]), 0, "float64"), ((-1, "a"), 1, "str")],
    *[([False], 0, "bool"), ((np.True_, 2), 0, "bool"), ((2, True), 1, "bool"), (np.array([True]), 0, "bool")],
]
RAGGED, MASKED = [[1], [2, 3]], np.ma.array(x())
NO_LEVEL = "feature_level {!r}, expected one of 1_0 2_0 2_1 3_0 3_1 4_0 4_1 5_0 5_1 5_2 6_0 6_1 6_2 6_3 6_4"


def read_only(out):
    out.flags.writeable = False
    return out


# Doors by name, all of them by "", or by a test; their bad arguments, made from the good ones by a function; the error.
RULES = [
    *[
        (doors, {name: value}, TypeError, f"{name} must be an integer or a sequence of integers, got {kind}")
        for name, doors in (INTEGERS | {"reps": OURS}).items()
        for value, kind in [*((value, type(value).__name__) for value in NO_SEQUENCES), (None, "NoneType")]
        if value is not None or name in ("start", "stop", "shape")
    ],
    ("^(?!tile_region)", {"reps": None}, TypeError, "reps must be an integer or a sequence of integers, got NoneType"),
    *[
        (doors, {name: value}, kind, f"{name} {words}")
        for name, doors in INTEGERS.items()
        for value, kind, words in [
            *[(v, TypeError, f"must be integers, but item {k} is of type {t}") for v, k, t in NO_INTEGERS],
            *[(v, ValueError, f"must be one-dimensional, but item 0 is a {type(v[0]).__name__}")
              for v in ([[1, 2]], np.ones((1, 2), int))],
            *[(v, ValueError, "must have at most 64 entries") for v in ([1] * 65, itertools.repeat(1))],
        ]
    ],
    *[(CORE, {name: value}, ValueError, f"{name} must not be negative, got {value if value == -1 else min(value)}")
      for name in ("reps", "shape") for value in (-1, (1, -(10**30)), (-1, 2**63))],
    # sizes
    ("", {"reps": 2**62}, ValueError, f"axis 1 overflows: 3 * {2**62} is more than {MOST}"),
    *[("", {"reps": value}, ValueError, f"axis 1 overflows: {value} is more than {MOST}") for value in (2**63, 10**30)],
    ("", {"reps": (2**32, 2**32)}, ValueError, f"the result would have more than {MOST} elements: its shape "
     f"{(2**33, 3 * 2**32)} overflows at axis 1"),
    ("^(?!output)", {"reps": (2**30, 2**29)}, ValueError, f"the result would have more than {MOST} bytes"),
    ("tile tile$|mapped", {"reps": 2**45}, MemoryError, f"the result would take {24 * 2**45} bytes (844 TB), more"),
    *[  # a model's repeats that ask for petabytes
        (doors, {data: np.full(4, "a", dtype), repeats: [n]}, kind, words)
        for dtype in (object, "U3")
        for doors, data, repeats in (("^tile tile", "a", "reps"), (TEXT, "input", "repeats"), (TEXT, "data", "repeats"))
        for n, kind, words in [(2**45, MemoryError, "the result would take "), (2**62, ValueError, "axis 0 overflows")]
    ],
    ("", {"shape": (2**40, 2**40), "reps": 1}, ValueError, f"the result would have more than {MOST} elements"),
    # regions
    ("", {"start": (0,)}, ValueError, "start must have 2 entries, one for each axis of the "),
    ("", {"stop": (1, 1, 1)}, ValueError, "stop must have 2 entries, one for each axis of the "),
    (OURS, {"stop": (4, 7)}, ValueError, "expected 0 <= start <= stop <= 6 on axis 1, got start 1, stop 7"),
    (OURS, {"start": (2, 0), "stop": (1, 6)}, ValueError, "expected 0 <= start <= stop <= 4 on axis 0, got start 2"),
    (OURS, {"start": (-1, 0)}, ValueError, "start must not be negative, got -1"),
    *[
        ("endless", {"start": start, "stop": stop}, kind, words)
        for start, stop, kind, words in [
            ((0, 2), (1, 1), ValueError, "expected start <= stop on axis 1, got start 2, stop 1"),
            ((-(2**63) - 1, 0), (1, 1), ValueError, f"start does not fit 64 bits, got {-(2**63) - 1} for axis 0"),
            ((0, 0), (1, 2**63), ValueError, f"stop does not fit 64 bits, got {2**63} for axis 1"),
            ((-(2**63), 0), (0, 1), ValueError, f"axis 0 overflows: from {-(2**63)} to 0"),
            ((0, -5), (2**40, 2**40), ValueError, f"the result would have more than {MOST} elements"),
            ((0, 0), (2**31, 2**31), ValueError, f"the result would have more than {MOST} bytes"),
            ((0, 0), (2**30, 2**30), MemoryError, f"the result would take {2**62} bytes (4.61 EB), more than the limit"),
        ]
    ],
    ("endless", {"axis": 0}, ValueError, "axis must be None if reps is None"),
    ("endless", {"a": np.zeros((2, 0)), "start": (0, -1), "stop": (0, 1)}, ValueError,
     "axis 1 of the input is empty, but the region has 2 elements along"),
    # axis
    *[
        (OURS, {"reps": reps, "axis": axis}, kind, words)
        for reps, axis, kind, words in [
            *[(2, n, np.exceptions.AxisError, f"axis {n} is out of bounds for array of dimension 2") for n in (2, -3)],
            *[(2, n, np.exceptions.AxisError, f"axis {n} is out of bounds for every array") for n in (9**30, -(2**70))],
            ((2, 2), (1, -1), ValueError, "axis must not contain axis 1 twice"),
            ((2, 2), 1, ValueError, "reps must have one entry for each of the 1 axes, got 2"),
            (2, (0, 1), ValueError, "reps must have one entry for each of the 2 axes, got 1"),
            ([2] * 65, range(65), ValueError, "reps must have at most 64 entries"),
            ((2, -1), (0, 1), ValueError, "reps must not be negative, got -1"),
            (2**63, 0, ValueError, f"reps overflows: {2**63} is more than"),
        ]
    ],
    # out
    *[
        ("", {"out": make}, kind, f"out must {words}")
        for make, kind, words in [
            (lambda out: out.tolist(), TypeError, "be a NumPy array, got list"),
            (np.ma.asarray, TypeError, "be a NumPy array, got MaskedArray"),
            *[(make, ValueError, "have shape (") for make in (lambda out: out[..., :-1], np.ravel)],
            (lambda out: out.astype("f8"), TypeError, "have dtype float32, got float64"),
            (lambda out: out.astype(out.dtype.newbyteorder()), TypeError, "have dtype float32, got "),
            (lambda out: as_strided(out, out.shape, (4,) * out.ndim), ValueError, "not have overlapping elements"),
            *[(make, ValueError, "be writeable, got a read-only array")
              for make in (read_only, lambda out: np.broadcast_to(out[..., :1], out.shape))],
        ]
    ],
    *[
        ("", {name: make, "out": lambda out: out}, ValueError, f"out must not share memory with {words}")
        for name, make, words in [
            *[(name, lambda out: out.ravel()[:6].reshape(2, 3), "the input") for name in ("a", "input", "data")],
            ("arrays", lambda out: [out.ravel()[-6:].reshape(2, 3)], "arrays[0]"),
        ]
    ],
    # inputs
    ("region|view|TilePlan", {"a": MASKED}, TypeError, "a must be a plain array, got MaskedArray"),
    *[("", {name: RAGGED}, ValueError, f"{name} of type list cannot be read as an array: ")
      for name in ("a", "input", "data")],
    *[("", {name: MASKED}, TypeError, f"{name} is a masked array of shape (2, 3), and a tensor has no mask: expected a "
       "plain array (tilecore.tile keeps masks)") for name in ("input", "data")],
    *[(lambda door: door.traits["types"], {"input": value}, TypeError, "input is of type ")
      for value in (None, np.zeros((2, 3), "S1"), np.zeros((2, 3), "V4"))],
    *[("TilePlan", {"a": np.zeros(shape, "f4")}, ValueError, f"the plan is for shape (2, 3), got {shape}")
      for shape in ((3, 2), (6,), (1, 2, 3), ())],
    ("TilePlan", {"a": np.zeros((2, 3))}, TypeError, "the plan is for dtype float32, got float64"),
    *[
        ("", {"arrays": arrays}, kind, f"arrays{words}")
        for arrays, kind, words in [
            ([x(), x(), x()[0]], ValueError, "[2] must have shape (2, 3), got (3,)"),
            ([x(), x().T], ValueError, "[1] must have shape (2, 3), got (3, 2)"),
            ((x(), x().astype("f8")), TypeError, "[1] must have dtype float32, got float64"),
            ([x(), MASKED], TypeError, "[1] must be a plain array, got Mask"),
            ([x(), RAGGED], ValueError, "[1] of type list cannot be read as an array"),
            ([(x(), 1)], ValueError, "[0] of type tuple ...of a dataset of (image, label), pass the images alone"),
            (x(), ValueError, " must have shape (n, 2, 3), got (2, 3)"),
            (np.zeros((4, 3, 2), "f4"), ValueError, " must have shape (n, 2, 3), got (4, 3, 2)"),
            (np.zeros((4, 2, 3)), TypeError, " must have dtype float32, got float64"),
            *[(value, TypeError, " must be a list or a tuple of arrays") for value in (iter([x()]), {1: x()}, None)],
        ]
    ],
    # settings
    *[("", {"threads": n}, ValueError, f"threads must be at least 1, got {n}") for n in (0, -1)],
    *[("", {"threads": n}, TypeError, f"threads must be an integer of at least 1 or None, got {n!r} of type")
      for n in (1.0, "2")],
    *[("num_threads", {"n": n}, ValueError, f"expected at least 1 thread, got {n}") for n in (0, -1)],
    *[("num_threads", {"n": n}, TypeError, f"expected an integer, got {n!r} of type") for n in (1.0, "2")],
    ("^num_threads", {"n": None}, TypeError, "expected an integer, got None of type NoneType"),
    *[("max|limit", {"n": n}, ValueError, f"expected 0 to {MOST} bytes, got {n}") for n in (-1, 2**63)],
    *[("max|limit", {"n": n}, ValueError, "expected a number of bytes such as 1048576, 256M or 4G, got")
      for n in ("", "-1", "1.5G", "much", "9" * 5000)],
    *[("max|limit", {"n": n}, TypeError, f"expected an integer, got {n!r} of type") for n in (1.0, None, b"4G")],
    *[("", {"mode": mode}, ValueError, f"expected mode 'stdout' or 'dicts', got {mode!r}")
      for mode in ("dict", "", None, 3)],
    # dialects
    *[
        (doors, {"repeats": value}, kind, f"repeats {words}")
        for doors, value, kind, words in [
            *[("", value, ValueError, "has more than 64 entries") for value in ([1] * 10**4, np.ones(10**6, np.int64))],
            *[("", value, ValueError, "has rank 0, expected 1, as in [2]") for value in (2, np.int64(2), np.array(2))],
            ("", [[1, 1]], ValueError, "must be one-dimensional, but item 0 is a list"),
            ("", np.ones((1, 2), np.int64), ValueError, "has rank 2, expected 1"),
            *[("", value, TypeError, f"must be a 1-D tensor or a list of ints, got a {type(value).__name__}")
              for value in ("11", {1, 2}, iter([1, 1]))],
            *[("", [value, 1], TypeError, f"must be integers, but item 0 is of type {type(value).__name__}")
              for value in (True, 1.0)],
            *[("", np.array(value), TypeError, f"has dtype {np.array(value).dtype}, expected ")
              for value in ([], [1.0, 1], [True, True], np.array([1, 1], object))],
            ("", np.ma.array([1, 1]), TypeError, "is a masked array of shape (2,), and a tensor has no mask"),
            ("tile", None, TypeError, "must be a 1-D tensor or a list of ints, got a NoneType"),
            *[("tile", [1, value], TypeError, f"must be integers, but item 1 is of type {type(value).__name__}")
              for value in ("1", None)],
            *[(of_dialects(count_types=tensors.INT64), np.array([1, 1], dtype), TypeError, f"has dtype {dtype}, expected int64")
              for dtype in ("int32", "uint64")],
            *[(of_dialects(any_length=False), [1] * n, ValueError, f"has length {n}, expected the input's rank 2")
              for n in (0, 1, 3)],
            (of_dialects(min_repeat=0, tiles=True), [1, -1], ValueError, "must not be negative, got -1 for axis 1"),
            *[("infer", [value, 1], ValueError, "item 0 must be within int64, got") for value in (2**63, 10**5000)],
            *[(of_dialects(min_repeat=1, max_elements=most, tiles=True), value, ValueError,
               f"must be 1 to {most}, got {words} for axis 0")
              for most in LIMITS for value, words in [*(([n, 1], n) for n in (0, -1, 2**32)), ([10**5000, 1], "<integer of 16610 bits>")]],
            *[(of_dialects(min_repeat=least, tiles=False), [n, 1], ValueError,
               f"item 0 must be {least} or more, or None if unknown, got {n}")
              for least, n in ((0, -1), (1, 0), (1, -1))],
        ]
    ],
    *[
        (doors, {"repeats": value}, kind, words)
        for doors, value, kind, words in [
            *[(AS_CORE, [value, 1], ValueError, f"axis 0 overflows: {words} is more than {MOST}")
              for value, words in [(2**62, f"2 * {2**62}"), (2**63, 2**63), (10**5000, "<integer of 16610 bits>")]],
            (of_dialects(min_repeat=None, tiles=True), [-(2**63) - 1, 1], ValueError, "repeats must fit int64"),
            *[(of_dialects(tiles=tiles, count_types=tensors.INTEGERS, max_elements=None),
               np.array([2**64 - 1, 1], np.uint64), ValueError, words)
              for tiles, words in ((True, f"axis 0 overflows: {2**64 - 1} is more than"),
                                   (False, "repeats item 0 must be within int64"))],
            (AS_CORE, [2**32, 2**32], ValueError, f"the result would have more than {MOST} elements"),
            (AS_CORE, [2**40, 1], MemoryError, f"the result would take {24 * 2**40} bytes"),
            (of_dialects(tiles=False, max_elements=None), [1, 2**62], ValueError, f"axis 1 overflows int64: 3 * {2**62}"),
            # DML_BUFFER_TENSOR_DESC: the size of a tensor "may not exceed (2^32 - 1) elements".
            *[(of_dialects(max_elements=most), value, ValueError,
               f"the output would have more than {most} elements, up to axis {k}")
              for most in LIMITS for k, value in enumerate([[2**31, 1], [2**16, 2**16]])],
        ]
    ],
    *[
        ("", {"tiles": value}, kind, f"tiles {words}")
        for value, kind, words in [
            *[(value, TypeError, f"must be a whole number, got {value}") for value in (2.5, np.nan)],
            *[(value, TypeError, f"has dtype {np.array(value).dtype}, expected an") for value in (True, "2", 2j)],
            *[(value, ValueError, f"has {len(value)} elements, expected 1") for value in ([], [1, 2])],
        ]
    ],
    *[("tile_1", {name: None}, TypeError, f"{name} has dtype object, expected an integer or a float type")
      for name in ("tiles", "axis")],
    ("tile_1", {"tiles": -1}, ValueError, "tiles must not be negative, got -1 for axis 0"),
    ("tile_1", {"tiles": 2**40}, MemoryError, "the result would take "),
    *[("tile_1", {"tiles": value}, ValueError, "axis 0 overflows: ") for value in (2**62, [10**30], 1e30)],
    *[("shape_1", {"tiles": n}, ValueError, "tiles must be 0 or more, and fit int64") for n in (-1, [10**30], 1e30)],
    ("shape_1", {"tiles": 2**62}, ValueError, f"axis 0 overflows int64: 2 * {2**62}"),
    *[(of_dialects(), {"axis": axis}, TypeError, f"axis must be a whole number, got {axis}") for axis in (np.inf, 0.5)],
    (of_dialects(), {"axis": [0, 1]}, ValueError, "axis has 2 elements, expected 1"),
    *[(of_dialects(), {"axis": n}, ValueError, f"axis is {int(n)}, expected -2 to 1") for n in (2, -3, 2**70, 1e30)],
    *[("", {"opset": n}, ValueError, f"opset {n}, expected 1 or more") for n in (0, -1)],
    *[("", {"opset": n}, TypeError, "opset: expected an integer, got ") for n in (13.0, "13")],
    *[("", {"feature_level": text}, ValueError, NO_LEVEL.format(text)) for text in (
        *("6_5", "7_0", "9_9", "10_0", "0_9", "", "4", "4.1", "4_", "_1", "4_1\n", "04_1", "4_01", "4_1_0", "-1_0"),
        *("DML_FEATURE_LEVEL_4_1", "\N{ARABIC-INDIC DIGIT FOUR}_1"))],
    *[("", {"feature_level": value}, TypeError, f"feature_level is a {type(value).__name__}, expected a str such as")
      for value in (4.1, 41, None, (4, 1), ["4_1"], b"4_1")],
]  # fmt: skip


def head(name, function):
    """What errors begin with: of a dialect, the function's version, or else the default one."""
    number = re.search(r"_(\d+)$", getattr(function, "__name__", ""))
    return f"{name} Tile-{number[1]}" if number else DIALECTS[name].rule().name if name in DIALECTS else name


@pytest.mark.parametrize(
    ("doors", "bad", "kind", "words"), RULES, ids=[f"{'-'.join(rule[1])}-{n}" for n, rule in enumerate(RULES)]
)
def test_each_rule(doors, bad, kind, words):
    """The error has the rule's words and what was given; nothing has been allocated or changed."""
    choose = doors if callable(doors) else lambda door: re.search(doors, door.label)
    found = [door for door in DOORS if bad.keys() <= door.make().keys() and choose(door)]
    assert found
    for _, name, function, make, traits in found:
        good = make()
        left_out = {"out", "threads", "repeats_shape", *([] if traits else ["axis"])}
        arguments = {key: value for key, value in good.items() if key not in left_out}
        arguments |= {key: value(good["out"]) if callable(value) else value for key, value in bad.items()}
        before = fingerprints(arguments)
        tracemalloc.start()
        try:
            with pytest.raises(kind) as caught:
                call(name, function, arguments)
            assert tracemalloc.get_traced_memory()[1] < 1 << 20
        finally:
            tracemalloc.stop()
        begins, _, said = str(caught.value).partition(": ")
        said, _, asked = said.partition("; ")
        assert caught.type is kind and len(str(caught.value)) < 1000
        if not bad.keys() & traits.get("options", {}).keys():
            assert begins == head(name, function)
            if arguments.keys() & {"a", "input", "data"} - bad.keys() and not name.startswith("TilePlan"):
                assert asked.startswith(f"{'data' if 'data' in arguments else 'input'} shape (2, 3), dtype float32")
        begin, *more = words.split("...")
        assert said.startswith(begin) and all(part in said + asked for part in more), said
        for shown in bad.keys() & {"reps", "shape", "repeats", "tiles"}:
            assert bad[shown] is None or f"{shown} " in asked
        assert fingerprints(arguments) == before
