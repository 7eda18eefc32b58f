"""Requests that no honest caller makes: every argument of every public function given every wrong
kind of thing, and impossible sizes. What the caller's own code may do: test_callers_code.py.

The answer is a result, or a TypeError, ValueError or MemoryError that names the function. After an
error nothing has been allocated and nothing is changed. Under AddressSanitizer (`.ci/sanitize
address`) the same tests look for bytes out of bounds.
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
from tilecore import onnx, openvino

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
        for module in vars(tilecore).values()
        if hasattr(module, "DIALECT")
        for function in {getattr(module, name): None for name in module.__all__}
    ],
]  # fmt: skip
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


def fingerprints(arguments):
    arrays = [value for value in arguments.values() if isinstance(value, np.ndarray)]
    return [(array.shape, array.strides, array.dtype, array.tobytes()) for array in arrays]


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
                if name.startswith(("set_max", "set_recycle")):  # their arguments are positional
                    function(*arguments.values())
                else:
                    function(**arguments)
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
        with pytest.raises((MemoryError, ValueError), match="bytes|overflows") as caught:
            call(a, repeats)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
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
