"""The loops that nest.pyx makes, against index arithmetic: every small shape, with strides of all kinds on both sides.

The functions are called as other compiled modules call them. A failure shows the request, and the loops that it became.
"""

import ctypes
import itertools
import math

import numpy as np
import pytest

from tilecore._core.plan import nest as module
from tilecore._core.plan import plan

pytestmark = pytest.mark.quick

ITEMSIZE = 4
SIZE, SIZES, OPAQUE = ctypes.c_ssize_t, ctypes.POINTER(ctypes.c_ssize_t), ctypes.c_void_p


class Nest(ctypes.Structure):
    _fields_ = [("n", ctypes.c_int), ("src_offset", SIZE), ("dst_offset", SIZE), ("loop", SIZE * 3 * 64)]

    def piece(self):
        return self.src_offset, self.dst_offset, [(*loop,) for loop in self.loop[: self.n]]


class StridedArray(ctypes.Structure):
    _fields_ = [("data", OPAQUE), ("ndim", ctypes.c_int), ("contiguous", ctypes.c_int), ("strides", SIZE * 64)]


def get_function(module, name, result, *arguments, kind=ctypes.CFUNCTYPE):
    capsule, api = module.__pyx_capi__[name], ctypes.pythonapi
    get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    get_pointer = ctypes.PYFUNCTYPE(OPAQUE, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    signature = get_name(capsule)
    assert signature.count(b",") + 1 == len(arguments), signature
    return kind(result, *arguments)(get_pointer(capsule, signature))


plan_init = get_function(plan, "plan_init", ctypes.c_int, OPAQUE, ctypes.c_int, SIZES, ctypes.c_int, SIZES, SIZE)
window_init = get_function(plan, "window_init", ctypes.c_int, OPAQUE, OPAQUE, SIZES, SIZES)
PLACE = ctypes.POINTER(StridedArray)
nest_init = get_function(module, "nest_init", None, OPAQUE, PLACE, PLACE, ctypes.POINTER(Nest))
region_iter_init = get_function(module, "region_iter_init", None, OPAQUE, OPAQUE, PLACE, PLACE)
next_piece = get_function(module, "next_piece", SIZE, OPAQUE, ctypes.POINTER(Nest))


def c_sizes(integers):
    return (SIZE * len(integers))(*integers)


def place_of(strides):
    return StridedArray(contiguous=strides is None, strides=tuple(strides or ()))


def plan_of(shape, reps=(), itemsize=ITEMSIZE):
    sizes = ctypes.create_string_buffer(4096)  # more than the struct has
    assert plan_init(sizes, len(shape), c_sizes(shape), len(reps), c_sizes(reps), itemsize)
    return sizes


def window_of(plan, start, shape):
    window, stop = ctypes.create_string_buffer(4096), [k + n for k, n in zip(start, shape, strict=True)]
    assert window_init(window, plan, c_sizes(start), c_sizes(stop))
    return window


def c_order(shape, step=ITEMSIZE):
    return [step * math.prod(shape[k + 1 :]) for k in range(len(shape))]


LAYOUTS = {
    "C": lambda shape: None,
    "Fortran": lambda shape: c_order(shape[::-1])[::-1],
    "gaps, forwards and backwards": lambda shape: [(-1) ** k * n for k, n in enumerate(c_order(shape, 3 * ITEMSIZE))],
    "broadcast": lambda shape: [0, *c_order(shape)[1:]][: len(shape)],  # of a source
}
every_layout = pytest.mark.parametrize(("src", "dst"), [*itertools.product(LAYOUTS, [*LAYOUTS][:3])])


def around(offsets, steps):
    """The offsets of all steps of a loop around those inside it."""
    return np.add.outer(steps, offsets).ravel()


def check(by, pieces, shape, start, output, src_strides, dst_strides):
    """Each byte of the output is written once, from the source's byte of the same index modulo its shape. Neighbours are
    merged, and the steps in the output become longer from the innermost loop outward."""
    given = f"shape {shape}, strides {src_strides}, region of {output} at {start}, to strides {dst_strides}"
    src_strides = c_order(shape) if src_strides is None else [0] * (len(shape) - len(src_strides)) + src_strides
    dst_strides = c_order(output) if dst_strides is None else dst_strides
    src = dst = np.arange(ITEMSIZE)
    for d, first, n, by_src, by_dst in [*zip(shape, start, output, src_strides, dst_strides, strict=True)][::-1]:
        src, dst = around(src, (first + np.arange(n)) % d * by_src), around(dst, np.arange(n) * by_dst)
    want, got, written, faults = dict(zip(dst.tolist(), src.tolist(), strict=True)), {}, 0, []
    for first_src, first_dst, loops in pieces:
        src, dst = np.array([first_src]), np.array([first_dst])
        for n, by_src, by_dst in loops:
            src, dst = around(src, np.arange(n) * by_src), around(dst, np.arange(n) * by_dst)
        got.update(zip(dst.tolist(), src.tolist(), strict=True))
        written += dst.size
        for (n, by_src, by_dst), outer in itertools.pairwise(loops):
            if outer[1:] == (n * by_src, n * by_dst) or outer[2] < by_dst:
                faults.append(f"loop {outer} belongs into the loop inside it")
    if got != want or written != len(want):
        at = min((k for k in {*want, *got} if want.get(k) != got.get(k)), default="twice")
        faults.append(f"byte {at} of the output is written from byte {got.get(at)} of the source, not {want.get(at)}")
    shown = "".join(f"\n  from {src} to {dst}: {' '.join(map(str, loops))}" for src, dst, loops in pieces)
    if faults:
        pytest.fail(f"nest.pyx, {by}: {given}; loops (count, source, output) of bytes:{shown}\n  {faults[0]}")


@every_layout
def test_a_whole_output(src, dst):
    for counts, rank, count in [((1,), 0, 0), ((1, 2, 3), 1, 1), ((1, 3), 2, 2), ((1, 3), 1, 3), ((1, 2), 3, 3)]:
        for both in itertools.product(counts, repeat=rank + count):
            shape, reps = both[:rank], both[rank:]
            padded = (1,) * (len(reps) - len(shape)) + shape
            output = [d * n for d, n in zip(padded, reps, strict=True)]
            strides = LAYOUTS[src](shape), LAYOUTS[dst](output)
            nest_init(plan_of(shape, reps), *map(place_of, strides), nest := Nest())
            by = "nest_push" if strides[1] is None else "region_iter_init"
            check(by, [nest.piece()], padded, [0] * len(output), output, *strides)


@every_layout
def test_a_region(src, dst):
    """It begins a repeat and more before 0 or after it, or near it, and is up to two repeats and an item long."""
    for shape in [(3,), (2, 3), (1, 2)]:
        starts, outputs = [[-d - 1, *range(-1, d), d + 1] for d in shape], [range(1, 2 * d + 2) for d in shape]
        for start, output in itertools.product(itertools.product(*starts), itertools.product(*outputs)):
            strides = LAYOUTS[src](shape), LAYOUTS[dst](output)
            pieces, nest, pieces_left = [], Nest(), ctypes.create_string_buffer(8192)
            region_iter_init(pieces_left, window_of(plan_of(shape), start, output), *map(place_of, strides))
            while next_piece(pieces_left, nest):
                pieces.append(nest.piece())
            check("region_iter_init or next_piece", pieces, shape, start, output, *strides)


def test_the_worked_example():
    nest_init(plan_of((2, 1, 3, 4), (5, 6, 1, 2)), place_of(None), place_of(None), nest := Nest())
    assert nest.piece()[2] == [(16, 1, 1), (2, 0, 16), (3, 16, 32), (6, 0, 96), (2, 48, 576), (5, 0, 1152)]
