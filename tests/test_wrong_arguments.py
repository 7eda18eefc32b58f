"""Wrong arguments: every argument of every public function given every wrong kind of thing, and impossible sizes.

The answer is a result, or a TypeError, ValueError or MemoryError that names the function. After an error nothing has
been allocated and nothing is changed. test_rules.py has the words of each error, and test_foreign_code.py what the
caller's own code may do.
"""

import collections
import decimal
import itertools
import sys

import numpy as np
import pytest
from public import PUBLIC, fingerprints, x

import tilecore

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("settings_stay")]


def looped():
    loop = []
    loop.append(loop)
    return loop


def fails(*arguments):
    raise ZeroDivisionError("code of the caller's")


# What shows it runs code that fails.
Meta = type("Meta", (type,), {"__name__": property(fails)})
Bad = Meta("Bad", (), {"__repr__": fails, "__module__": property(fails)})
TITLED = np.dtype([("a", [((Bad(), "x"), "f4")])])

# Every kind of thing, made anew for each call.
THINGS = [
    *[(lambda value=value: value) for value in [
        None, True, 0, 1, -1, 2**31, 2**63, -(2**63) - 1, 10**5000, -(10**5000), 2.0, 1.5, float("nan"), float("inf"),
        2j, decimal.Decimal(2), "", "22", "x" * 10**5, b"\2\2", b"x" * 10**5, int, len, sys, ..., NotImplemented,
        slice(2), (), [None, None], ["2", "2"], [2.0, 2.0], [[2, 2]], [[1], [2, 3]], [2, -2], [True, True],
        [2**63, 1], [10**5000, 1], [1] * 65, range(2, 4), np.True_, np.uint8(2), np.float16(2), np.datetime64("2001"),
        np.dtype("f4"), np.dtype([(f"f{n}", "f8") for n in range(999)]), ValueError("x"),
    ]],
    object, looped, dict, set, lambda: {2: 3}, lambda: {2}, lambda: bytearray(b"ab"), itertools.count,
    lambda: itertools.repeat(1), lambda: (character for character in "ab"), lambda: np.array(2), lambda: np.array(2.0),
    lambda: np.array([2.0, 2.0]), lambda: np.ones(2, "?"), lambda: np.array([[2, 2]]),
    lambda: np.array([2, None], object), lambda: np.array(["2", "2"]), lambda: np.ma.array([2, 2], mask=[0, 1]),
    lambda: np.zeros(2, "V3"), lambda: np.zeros(1000), lambda: np.array(["2001"], "M8[s]"),
    lambda: np.array([2**63, 2], np.uint64), lambda: np.array(["2"], np.dtypes.StringDType()),
    Bad, Meta("None", (), {"__module__": None}), type("x" * 10**5, (), {}), lambda: TITLED, lambda: np.zeros(2, TITLED),
    lambda: np.zeros((), TITLED)[()], lambda: np.zeros(2, [("x" * 10**5, "f4")]),
    # Classes of other libraries may have the names of those that errors abbreviate.
    *[type(name, (), {}) for name in ("ndarray", "array", "int", "dict", "bytes", "deque")],
]  # fmt: skip


def settings():
    return tilecore.get_max_bytes(), tilecore.get_recycle_limit(), tilecore.get_num_threads()


@pytest.mark.parametrize(
    ("function", "argument"),
    [pytest.param(each, name, id=f"{each.label} {name}") for each in PUBLIC for name in each.parameters],
)
def test_every_wrong_kind(function, argument, traced):
    argument != "products" or pytest.importorskip("sympy")
    refused = 0
    for thing in THINGS:
        arguments = function.good() | {argument: thing()}
        before, were = fingerprints(arguments), settings()
        traced.reset_peak()
        used = traced.get_traced_memory()[0]
        try:
            function(arguments)
        except (TypeError, ValueError, MemoryError) as error:
            # A memoryview that was released says so itself.
            assert str(error).startswith(function.name) or "released memoryview" in str(error), repr(error)
            assert len(str(error)) < 2000
            assert traced.get_traced_memory()[1] - used < 1 << 20
            assert fingerprints(arguments) == before and settings() == were
            refused += 1
        except ZeroDivisionError:
            assert argument == "dtype"  # NumPy's own error shows it
        else:
            tilecore.set_max_bytes(were[0])
            tilecore.set_recycle_limit(were[1])
    # Whatever the argument, most things are wrong; only as an input is nearly everything an array.
    assert refused >= (2 if argument == "a" and function.name in ("tile_view", "tile_mapped") else len(THINGS) // 2)


@pytest.mark.parametrize("held", [10**5000, Bad()], ids=["int", "Bad"])
def test_errors_run_no_code_to_show_arguments(held):
    for arguments in {"reps": collections.deque([held, 1.5])}, {"reps": 2, "threads": collections.deque([held])}:
        with pytest.raises((TypeError, ValueError), match="tile: .*<deque instance>"):
            tilecore.tile(1, **arguments)


PLANS = "TilePlan: expected the arguments shape, reps and dtype, and at most axis="


@pytest.mark.parametrize(("function", "given", "named", "text"), [
    *[(tilecore.TilePlan, given, named, PLANS) for given in (((2, 3), 2), (1, 2, "f4", 5), ())
      for named in ({}, {"axes": 1})],
    (tilecore.TilePlan, ((2, 3), (2, 2)), {}, "TilePlan: .*; dtype is missing$"),
    *[(tilecore.tile, [x()], named, "tile: reps is missing$") for named in ({}, {"axis": 0})],
    (tilecore.tile_region, (x(), 2), {"start": (0, 0)}, "tile_region: stop is missing$"),
    (tilecore.tile_region, (x(), 2), {"stop": (0, 0)}, "tile_region: start is missing$"),
    *[(tilecore.tile, (), named, "tile: a is missing$") for named in ({}, {"reps": 2})],
    (tilecore.tile, [x()], {"repeats": 2}, r"tile\(\) .*'repeats'"),
    *[(tilecore.num_threads, given, {}, r"num_threads\(\) takes exactly") for given in ((), (1, 2))],
    (tilecore.num_threads, (), {"threads": 2}, r"num_threads\(\) .*'threads'"),
    (tilecore.replace_numpy_tile, [np], {}, "replace_numpy_tile: expected no arguments$"),
])  # fmt: skip
def test_missing_and_unknown_arguments_are_named(function, given, named, text):
    with pytest.raises(TypeError, match=f"^{text}"):
        function(*given, **named)
