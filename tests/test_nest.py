"""The loops that nest.pyx makes, against index arithmetic: every small shape, with strides of all kinds on both sides.

The functions are called as other compiled modules call them.
"""

import itertools
import math
from ctypes import byref

import numpy as np
import pytest
from declared import ITEMSIZE, Nest, RegionIter, nest_of, next_piece, place_of, plan_of, region_iter_init, region_of

pytestmark = [pytest.mark.quick, pytest.mark.tree]


def piece_of(made):
    loops = [(loop.count, loop.src_step, loop.dst_step) for loop in made.loop[: made.n]]
    return made.src_offset, made.dst_offset, loops


def pieces_of(region, src_strides, dst_strides):
    source, target, left, made = place_of(src_strides), place_of(dst_strides), RegionIter(), Nest()
    region_iter_init(byref(left), byref(region), byref(source), byref(target))
    while next_piece(byref(left), byref(made)):
        yield piece_of(made)


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
    """Each byte of the output is written once, from the source's byte of the same index modulo its shape. Neighbours
    are merged, and the steps in the output become longer from the innermost loop outward."""
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
            by = "nest_push" if strides[1] is None else "region_iter_init"
            check(by, [piece_of(nest_of(plan_of(shape, reps), *strides))], padded, [0] * len(output), output, *strides)


@every_layout
def test_every_region(src, dst):
    """It begins near 0, or a repeat and more before or after it, and is up to two repeats and an item long."""
    for shape, padded in [((3,), (3,)), ((2, 3), (2, 3)), ((1, 2), (1, 2)), ((2,), (1, 2))]:
        starts, outputs = [[-d - 1, *range(-1, d), d + 1] for d in padded], [range(2 * d + 2) for d in padded]
        for start, output in itertools.product(itertools.product(*starts), itertools.product(*outputs)):
            region = region_of(plan_of(shape, (1,) * len(padded)), start, output)
            parts = [n % d or first % d for first, n, d in zip(start, output, padded, strict=True)]
            copies = 0 if any(parts) else math.prod(n // d for n, d in zip(output, padded, strict=True))
            assert (region.copies, region.nbytes) == (copies, math.prod(output) * ITEMSIZE), (shape, start, output)
            assert (region.input_ndim, *region.output_shape[: region.ndim]) == (len(shape), *output)
            if region.nbytes:
                strides = LAYOUTS[src](shape), LAYOUTS[dst](output)
                pieces = [piece_of(nest_of(region, *strides))] if copies else [*pieces_of(region, *strides)]
                check("region_iter_init or next_piece", pieces, padded, start, output, *strides)


def test_the_worked_example():
    loops = piece_of(nest_of(plan_of((2, 1, 3, 4), (5, 6, 1, 2)), None, None))[2]
    assert loops == [(16, 1, 1), (2, 0, 16), (3, 16, 32), (6, 0, 96), (2, 48, 576), (5, 0, 1152)]
