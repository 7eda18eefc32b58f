"""Every call works in a thread with a stack of 48 KiB, as tilecore.h and docs/threads.md promise."""

import platform
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

# Threads of a small stack make what the main thread expects.
PROGRAM = """
from declared import c_sizes, execute, execute_region, make_plan, tile_once
from ways import LAYOUTS, each_way, make_items

for kib in (48, 64, 128, 256):
    try:
        threading.stack_size(kib * 1024)
        together(lambda: None)
        break
    except (ValueError, RuntimeError):
        assert kib < 256

def check(calls):
    def work():
        for want, call, options in calls:
            got = call(**options)
            assert got.shape == want.shape and (got == want).all(), (call, options)
    together(work)

def strided_like(want):
    "An `out` back to front, and no two of its elements lie next to each other."
    back, step = slice(None, None, -1), slice(None, None, -2)
    shape = *want.shape[:-1], 2 * want.shape[-1]
    return numpy.zeros(shape, want.dtype)[(*[back] * (want.ndim - 1), step)]

def check_array(x, reps):
    plan, want = tilecore.TilePlan(x.shape, reps, x.dtype), numpy.tile(x, reps)
    bounds = tuple(n // 3 for n in want.shape), tuple(n - n // 4 for n in want.shape)
    part = want[tuple(map(slice, *bounds))]
    ways = [(want, partial(tilecore.tile, x, reps)), (part, partial(tilecore.tile_region, x, reps, *bounds)),
            (part, partial(tilecore.tile_region, x, None, *bounds)), (want, partial(plan.tile, x)),
            (part, partial(plan.region, x, *bounds))]
    if x.size and x.ndim < 20: ways += each_way(numpy.tile, x, reps)
    check([(want, call, how) for want, call in ways for how in ({}, {"threads": 2}, {"out": strided_like(want)})])
    check([(want, partial(tilecore.tile_mapped, x, reps), {})])
    if x.dtype.hasobject: return
    source, piece = (x.ctypes.data, c_sizes(x.strides)), strided_like(part)
    asked = x.ndim, c_sizes(x.shape), source[1], len(reps), c_sizes(reps), x.itemsize, source[0]
    ends = piece.ctypes.data, *map(c_sizes, (piece.strides, *bounds))
    with make_plan(x.shape, reps, x.itemsize) as made:
        for out in numpy.empty_like(want), strided_like(want):
            target = out.ctypes.data, c_sizes(out.strides)  # each function returns None, or 0
            check([(want, lambda: execute(made, *source, *target, 2) or out, {}),
                   (want, lambda: tile_once(*asked, *target, 1) or out, {}),
                   (part, lambda: execute_region(made, *source, *ends, 2) or piece, {})])

for dtype in "u1 u4 V16 S3 O".split():
    for make in LAYOUTS.values():
        x = make(dtype)
        if x.size > 10**5 and dtype in ("V16", "O"): continue  # NumPy compares them slowly
        for reps in ((3, 1, 2, 1, 1)[: x.ndim], (1,) * x.ndim): check_array(x, reps)
        check_array(x[(slice(7),) * x.ndim], (2,) * x.ndim)
for dtype in "u1", "u8":  # more than the caches hold
    x = make_items((1024, 1024), dtype)
    for y in x.T, x[:, 1000::-2]:
        reps = 1, 24 // x.itemsize
        want = numpy.tile(y, reps)
        for out in numpy.zeros_like(want), strided_like(want):
            check([(want, partial(tilecore.tile, y, reps), {"out": out, "threads": 2})])
if numpy.lib.NumpyVersion(numpy.__version__) >= "2.2.0":  # before, NumPy's own repeat breaks strings
    check_array(make_items((40, 30), "T").T, (3, 40))
structs = make_items((40, 30), [("a", "O"), ("b", "f4"), ("c", "O", 3)])
check_array(structs, (3, 40))
check_array(structs.T[::-1], (2, 2))
check_array(numpy.arange(2**18).astype("O"), (3,))
deep = numpy.arange(2**10).astype("u1").reshape((1,) * 44 + (2,) * 10 + (1,) * 10)
for y in deep, deep.T, deep.astype("O").T:
    check_array(y, (2,) * 3 + (1,) * 58 + (2,) * 3)
    check_array(y, (1,) * 44 + (2,) * 4 + (1,) * 16)
check_array(numpy.zeros((3, 4), "u1")[:, :0], (2, 3))
x = numpy.arange(100).reshape(10, 10)
masked = numpy.ma.masked_less(x, 50)
check([(numpy.tile(masked, (2, 2)), partial(tilecore.tile, masked, (2, 2)), {}),
       (numpy.tile(x, (1, 2)), partial(tilecore.onnx.tile, x, [1, 2]), {}),
       (numpy.tile(x, (1, 2)), partial(tilecore.openvino.tile, x.tolist(), numpy.array([2])), {}),
       (numpy.tile(x, (1, 2)), partial(tilecore.directml.tile, x.astype("f4"), [1, 2]), {})])
"""


@pytest.mark.parametrize("isa", ["", *(pytest.param(isa, marks=pytest.mark.package) for isa in ("ssse3", "scalar"))])
def test_every_call_on_a_small_stack(program, isa):
    """A larger stack is used where Python or the processor allows no thread of 48 KiB."""
    if isa == "ssse3" and platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("a set of x86-64")
    program(PROGRAM, TILECORE_ISA=isa, PYTHONPATH=str(Path(__file__).parent))


RECURSION = """
numpy_tile = numpy.tile
calls = {
    "__array__": [numpy_tile, tilecore.tile, lambda a, reps: numpy_tile([a], reps),
                  lambda a, reps: tilecore.tile([a], reps), lambda a, reps: tilecore.tile_region(a, reps, 0, 1),
                  lambda a, reps: tilecore.onnx.tile(a, [reps])],
    "__array_function__": [numpy_tile, tilecore.tile],
}
replaced = tilecore.replace_numpy_tile()
threading.stack_size(4 << 20)
for name, functions in calls.items():
    for function in functions:
        recursing = type("Recursing", (), {name: lambda own, *arguments, **options: function(own, 2)})()
        together(lambda: refuse(lambda: function(recursing, 2), RecursionError))
"""


def test_the_callers_code_that_calls_again(program):
    """It reaches Python's usual limit on a stack of 4 MiB, of which NumPy's own functions take a half."""
    program(RECURSION)
