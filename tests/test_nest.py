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

ITEMSIZE, NOTHING = 4, -(10**6)
SIZE, SIZES, OPAQUE = ctypes.c_ssize_t, ctypes.POINTER(ctypes.c_ssize_t), ctypes.c_void_p


class Axis(ctypes.Structure):
    _fields_ = [(name, SIZE) for name in ("count", "src", "dst")]


class Nest(ctypes.Structure):
    _fields_ = [("n", ctypes.c_int), ("src", SIZE), ("dst", SIZE), ("axis", Axis * 64)]

    def loops(self):
        return [(axis.count, axis.src, axis.dst) for axis in self.axis[: self.n]]


def function(module, name, result, *arguments):
    capsule = module.__pyx_capi__[name]
    get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
    get_pointer = ctypes.PYFUNCTYPE(OPAQUE, ctypes.py_object, ctypes.c_char_p)
    signature = get_name(capsule)
    assert signature.count(b",") + 1 == len(arguments), signature
    return ctypes.CFUNCTYPE(result, *arguments)(
        get_pointer(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, signature)
    )


sizes_init = function(plan, "sizes_init", ctypes.c_int, OPAQUE, ctypes.c_int, SIZES, ctypes.c_int, SIZES, SIZE)
nest_init = function(module, "nest_init", None, OPAQUE, SIZES, SIZES, ctypes.POINTER(Nest))
region_iter_init = function(module, "region_iter_init", None, OPAQUE, OPAQUE, SIZES, SIZES, SIZES, SIZES)
next_piece = function(module, "next_piece", SIZE, OPAQUE, ctypes.POINTER(Nest))
OF_SIZES, OF_REGION = ctypes.create_string_buffer(8192), ctypes.create_string_buffer(8192)  # more than the structs have


def c_sizes(integers):
    return None if integers is None else (SIZE * len(integers))(*integers)


def c_order(shape, step=ITEMSIZE):
    return [step * math.prod(shape[k + 1 :]) for k in range(len(shape))]


LAYOUTS = {
    "NULL": lambda shape: None,
    "C": c_order,
    "Fortran": lambda shape: c_order(shape[::-1])[::-1],
    "gaps, forwards and backwards": lambda shape: [(-1) ** k * n for k, n in enumerate(c_order(shape, 3 * ITEMSIZE))],
    "broadcast": lambda shape: [0, *c_order(shape)[1:]][: len(shape)],  # of a source only
}
OUT = ["NULL", "Fortran", "gaps, forwards and backwards"]


def loop(offsets, steps):
    """The offsets of all steps of a loop around those inside it."""
    return np.add.outer(steps, offsets).ravel()


def check(pieces, shape, start, output, src_strides, dst_strides):
    """Each byte of the output is written once, from the source's byte of the same index modulo its shape. Neighbours are
    merged, and the steps in the output become longer from the innermost loop outward."""
    given = f"shape {shape}, strides {src_strides}, region of {output} at {start}, to strides {dst_strides}"
    src_strides = c_order(shape) if src_strides is None else [0] * (len(shape) - len(src_strides)) + src_strides
    dst_strides = c_order(output) if dst_strides is None else dst_strides
    src = dst = np.arange(ITEMSIZE)
    for d, first, n, by_src, by_dst in [*zip(shape, start, output, src_strides, dst_strides, strict=True)][::-1]:
        index = np.arange(n)
        src, dst = loop(src, (first + index) % d * by_src), loop(dst, index * by_dst)
    want, got = np.full((2, np.ptp(dst) + 1), NOTHING)
    low, written = dst.min(), 0
    want[dst - low] = src
    for first_src, first_dst, loops in pieces:
        src, dst = np.array([first_src]), np.array([first_dst - low])
        for count, by_src, by_dst in loops:
            index = np.arange(count)
            src, dst = loop(src, index * by_src), loop(dst, index * by_dst)
        inside = (dst >= 0) & (dst < got.size)
        got[dst[inside]] = src[inside]
        written += dst.size
    wrong = np.flatnonzero(got != want)
    merged = [
        inner[1] * inner[0] == outer[1] and inner[2] * inner[0] == outer[2]
        for _, _, loops in pieces
        for inner, outer in itertools.pairwise(loops)
    ]
    steps = [[dst for _, _, dst in loops] for _, _, loops in pieces]
    if wrong.size or written != (want != NOTHING).sum() or any(merged) or steps != [sorted(each) for each in steps]:
        shown = [f"  from {src} to {dst}: {' '.join(map(str, loops))}" for src, dst, loops in pieces]
        shown += [f"  byte {k + low} of the output: from {got[k]}, not from {want[k]}" for k in wrong[:1]]
        shown += ["  a loop continues the loop inside it"] * any(merged)
        shown = "\n".join(shown)
        pytest.fail(f"nest.pyx: {given}; loops (count, source, output), innermost first, in bytes:\n{shown}")


def loops_of(shape, reps, src_strides, dst_strides):
    nest = Nest()
    assert sizes_init(OF_SIZES, len(shape), c_sizes(shape), len(reps), c_sizes(reps), ITEMSIZE) == 0
    nest_init(OF_SIZES, c_sizes(src_strides), c_sizes(dst_strides), nest)
    return nest


@pytest.mark.parametrize("dst", OUT)
@pytest.mark.parametrize("src", LAYOUTS)
def test_a_whole_output(src, dst):
    for counts, ranks in [
        ((1, 2, 3), (0, 0)),
        ((1, 2, 3), (1, 1)),
        ((1, 3), (2, 2)),
        ((1, 3), (1, 3)),
        ((1, 2), (3, 3)),
    ]:
        for shape, reps in itertools.product(*(itertools.product(counts, repeat=rank) for rank in ranks)):
            padded = (1,) * (len(reps) - len(shape)) + shape
            output = [d * n for d, n in zip(padded, reps, strict=True)]
            src_strides, dst_strides = LAYOUTS[src](shape), LAYOUTS[dst](output)
            nest = loops_of(shape, reps, src_strides, dst_strides)
            pieces = [(nest.src, nest.dst, nest.loops())]
            check(pieces, padded, [0] * len(output), output, src_strides, dst_strides)


@pytest.mark.parametrize("dst", OUT)
@pytest.mark.parametrize("src", LAYOUTS)
def test_a_region(src, dst):
    """It begins before 0 or within the first repeat, and is up to two repeats and an item long."""
    for shape in [(3,), (2, 3), (1, 2)]:
        starts, outputs = [range(-1, d) for d in shape], [range(1, 2 * d + 2) for d in shape]
        for start, output in itertools.product(itertools.product(*starts), itertools.product(*outputs)):
            src_strides, dst_strides = LAYOUTS[src](shape), LAYOUTS[dst](output)
            assert sizes_init(OF_SIZES, len(shape), c_sizes(shape), 0, None, ITEMSIZE) == 0
            region_iter_init(OF_REGION, OF_SIZES, *map(c_sizes, (src_strides, dst_strides, start, output)))
            pieces, nest, nbytes = [], Nest(), 0
            while piece := next_piece(OF_REGION, nest):
                nbytes += piece
                pieces.append((nest.src, nest.dst, nest.loops()))
            check(pieces, shape, start, output, src_strides, dst_strides)
            assert nbytes == ITEMSIZE * math.prod(output)


@pytest.mark.parametrize("src", ["NULL", "C"])
def test_the_worked_example(src):
    shape = (2, 1, 3, 4)
    loops = [(16, 1, 1), (2, 0, 16), (3, 16, 32), (6, 0, 96), (2, 48, 576), (5, 0, 1152)]
    assert loops_of(shape, (5, 6, 1, 2), LAYOUTS[src](shape), None).loops() == loops
    loops = [(48, 1, 1), (6, 0, 48), (2, 48, 288), (5, 0, 576)]
    assert loops_of(shape, (5, 6, 1, 1), LAYOUTS[src](shape), None).loops() == loops
