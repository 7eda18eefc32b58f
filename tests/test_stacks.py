"""Every call works in a thread with a stack of 48 KiB, as tilecore.h and docs/threads.md promise."""

import platform
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

# What the main thread expects, and a thread of a small stack makes.
CALLS = """
from tilecore import capi
from test_capi import Plan, counts, execute, execute_region, tile_once

rng = numpy.random.default_rng(7)
calls, wanted = [], []

def add(want, call, *args, **options):
    calls.append((call, args, options))
    wanted.append(want)

def strided_like(want):
    "An `out` back to front, and no two of its elements lie next to each other."
    back, step = slice(None, None, -1), slice(None, None, -2)
    shape = *want.shape[:-1], 2 * want.shape[-1]
    return numpy.zeros(shape, want.dtype)[(*[back] * (want.ndim - 1), step)]

def add_array(x, reps):
    want = numpy.tile(x, reps)
    plan = tilecore.TilePlan(x.shape, reps, x.dtype)
    inner = tuple(n // 3 for n in want.shape), tuple(n - n // 4 for n in want.shape)
    part = want[tuple(map(slice, *inner))]
    add(want, tilecore.tile, x, reps)
    add(want, tilecore.tile, x, reps, threads=2)
    add(want, tilecore.tile, x, reps, strided_like(want))
    add(want, tilecore.tile, x, reps, numpy.empty_like(want))
    add(want, plan.tile, x)
    add(want, tilecore.tile_mapped, x, reps)
    add(part, tilecore.tile_region, x, reps, *inner)
    add(part, tilecore.tile_region, x, reps, *inner, strided_like(part))
    add(part, plan.region, x, *inner, threads=2)
    add(part, tilecore.tile_region, x, None, *inner)
    if x.ndim < 64:
        add(numpy.stack([want] * 3), plan.batch, [x, x[:], numpy.ascontiguousarray(x)])
        add(numpy.stack([want] * 3), plan.batch, numpy.stack([x] * 3, -1).transpose(-1, *range(x.ndim)), threads=2)
    if x.dtype.hasobject: return
    for got in numpy.empty_like(want), strided_like(want):
        places = x.ctypes.data, counts(x.strides), got.ctypes.data, counts(got.strides)
        add(want, by_plan, x, reps, places, got)
        add(want, at_once, x, reps, places, got)
        add(part, region_by_plan, x, reps, inner, places[:2], strided_like(part))

def by_plan(x, reps, places, got):
    with Plan(x.shape, reps, x.itemsize) as plan: execute(plan, *places, 2)
    return got

def at_once(x, reps, places, got):
    src, src_strides, dst, dst_strides = places
    assert not tile_once(x.ndim, counts(x.shape), src_strides, len(reps), counts(reps), x.itemsize, src, dst,
                         dst_strides, 1)
    return got

def region_by_plan(x, reps, bounds, places, got):
    with Plan(x.shape, reps, x.itemsize) as plan:
        execute_region(plan, *places, got.ctypes.data, counts(got.strides), *map(counts, bounds), 2)
    return got

LAYOUTS = [lambda x: x, lambda x: x.T, lambda x: x[::-1, ::-3], lambda x: x.reshape(-1, 64, 4).transpose(2, 0, 1),
           lambda x: x.reshape(8, -1, 8, 4).T, lambda x: numpy.broadcast_to(x[:, :1], x.shape).T]
for dtype in "u1 f4 c16 S3 O".split():
    x = rng.integers(0, 100, (128, 128)).astype(dtype)
    for layout in LAYOUTS:
        y = layout(x)
        add_array(y, (3, 1, 1, 2)[: y.ndim])
        add_array(y[:12, :7], (2,) * y.ndim)
        if dtype in ("u1", "f4"): add_array(y, (1,) * y.ndim)
for dtype in "u1", "f8":  # more than the caches hold
    x = rng.integers(0, 100, (1024, 1024)).astype(dtype)
    for y in x.T, x[:, 1000::-2]:
        want = numpy.tile(y, (1, 32 // x.itemsize))
        add(want, tilecore.tile, y, (1, 32 // x.itemsize), numpy.zeros_like(want), threads=2)
        add(want, tilecore.tile, y, (1, 32 // x.itemsize), strided_like(want), threads=2)
strings = rng.integers(0, 9, (40, 30)).astype(str)
structs = numpy.zeros((40, 30), [("a", "O"), ("b", "f4"), ("c", "O", 3)])
add_array(strings.T, (3, 40))
add_array(strings.astype(numpy.dtypes.StringDType()).T, (3, 40))
add_array(structs, (3, 40))
add_array(structs.T[::-1], (2, 2))
add_array(numpy.arange(2**18).astype("O"), (3,))
deep = numpy.arange(2**10).astype("u1").reshape((1,) * 44 + (2,) * 10 + (1,) * 10)
for y in deep, deep.T, deep.astype("O").T:
    add_array(y, (2,) * 3 + (1,) * 58 + (2,) * 3)
    add_array(y, (1,) * 44 + (2,) * 4 + (1,) * 16)
add_array(numpy.zeros((3, 4), "u1")[:, :0], (2, 3))
masked = numpy.ma.masked_less(x, 50)
add(numpy.tile(masked, (2, 2)), tilecore.tile, masked, (2, 2))
add(numpy.tile(x, (1, 2)), tilecore.onnx.tile, x, [1, 2])
add(numpy.tile(x, (1, 2)), tilecore.openvino.tile, x.tolist(), numpy.array([2]))
add(numpy.tile(x, (1, 2)), tilecore.directml.tile, x.astype("f4"), [1, 2])

def work():
    for i, (call, args, options) in enumerate(calls):
        got = call(*args, **options)
        assert got.shape == wanted[i].shape and (got == wanted[i]).all(), (call, args[0].shape, args[0].dtype, args[1])
        calls[i] = wanted[i] = None
"""


@pytest.mark.parametrize("isa", ["", *(pytest.param(isa, marks=pytest.mark.package) for isa in ("ssse3", "scalar"))])
def test_every_call_on_a_small_stack(program, isa):
    """A larger stack is used where Python or the processor allows no thread of 48 KiB."""
    if isa == "ssse3" and platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("a set of x86-64")
    begin = """
for kib in (48, 64, 128, 256):
    try:
        threading.stack_size(kib * 1024)
        together(lambda: None)
        break
    except (ValueError, RuntimeError):
        assert kib < 256
together(work)
"""
    program(CALLS + begin, TILECORE_ISA=isa, PYTHONPATH=str(Path(__file__).parent))
