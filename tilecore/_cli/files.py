"""Tiles from file to file, in memory that does not depend on the size of either file.

The result is written from its first byte to its last, slab by slab. A slab is a region that is contiguous in the file
and fits the buffer. Example: for a float32 result of shape (4, 1000, 1000), a buffer of 1 MiB holds 262 rows, so each
of the four planes takes three slabs of 262 rows and one of 214.

The input is mapped, and the pages that a slab reads stay resident until they are released. A slab reads at most as
many bytes as it writes, so counting the bytes written is enough.

A .npy file in Fortran order holds the transposed array in C order. Tiling that array by the reversed repeats gives the
transposed result. So the result gets the input's order, and nothing is transposed.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilecore._cli.npy import Mapped, header, map_npy
from tilecore._cli.output import open_output
from tilecore._cli.units import MIB, PROGRAM, SLAB, with_unit
from tilecore._core.tileplan import TilePlan

Planner: TypeAlias = Callable[[NDArray[Any]], TilePlan]  # makes the plan for an input, by a dialect's rules
# Takes the total number of bytes, and returns a context: a function to call with the number of bytes of each slab.
Progress: TypeAlias = Callable[[int], AbstractContextManager[Callable[[int], object]]]


def tile_file(source: str, target: str, planner: Planner, progress: Progress, memory: int, force: bool = False) -> None:
    """Write the tiling of `source` to `target`, .npy files or "-".

    `memory`, LEAST_MEMORY or more, bounds the resident bytes of the process. `force` replaces an existing `target`.
    """
    input = map_npy(source)
    plan = planner(input.array)
    limit = slab_limit(plan.dtype.itemsize, memory)
    begin = header(plan.dtype, plan.output_shape, input.fortran_order, input.version)
    nbytes = prod(plan.output_shape) * plan.dtype.itemsize  # in a file, strings of length 0 take no room
    with open_output(target, len(begin) + nbytes, input.status, force) as write:
        write(memoryview(begin))
        with progress(nbytes) as advance:
            for slab in slabs(plan, input, nbytes, memory, limit):
                write(slab)
                advance(slab.nbytes)


def slabs(plan: TilePlan, input: Mapped, total: int, memory: int, limit: int) -> Iterator[memoryview]:
    """The result's `total` bytes in order, at most `limit` at a time, all in one buffer."""
    array, dtype = input.array, plan.dtype
    if not total:
        return
    if input.fortran_order:
        array = array[(None,) * (len(plan.reps) - array.ndim)].T
        plan = TilePlan(array.shape, plan.reps[::-1], dtype)
    buffer = np.empty(min(limit, total), np.uint8)
    resident = 0  # bytes of the input in memory, at most
    for start, stop in regions(plan.output_shape, dtype.itemsize, limit):
        extents = tuple(b - a for a, b in zip(start, stop, strict=True))
        nbytes = prod(extents) * dtype.itemsize
        if resident + nbytes > memory - PROGRAM - limit:
            input.release_pages()
            resident = 0
        out: NDArray[Any] = np.ndarray(extents, dtype, buffer)
        plan.region(array, start, stop, out, threads=1)
        resident += nbytes
        yield buffer.data[:nbytes]


def slab_limit(itemsize: int, memory: int) -> int:
    """Bytes of the buffer: at most half of the memory that it shares with the mapped input."""
    limit = min(max(SLAB, itemsize), (memory - PROGRAM) // 2)
    if limit < itemsize:
        least = -(-(PROGRAM + 2 * itemsize) // MIB)
        raise ValueError(f"items of {with_unit(itemsize, 'B')} need --memory {least}M or more")
    return limit


def regions(shape: Sequence[int], itemsize: int, limit: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(start, stop) of contiguous regions of at most `limit` bytes, in order, one at a time.

    >>> list(regions((2, 3, 4), itemsize=1, limit=8))           # doctest: +NORMALIZE_WHITESPACE
    [((0, 0, 0), (1, 2, 4)), ((0, 2, 0), (1, 3, 4)),
     ((1, 0, 0), (2, 2, 4)), ((1, 2, 0), (2, 3, 4))]

    `limit` is `itemsize` or more, and no extent is 0.
    """
    if not shape:
        yield (), ()
        return
    axis, row = 0, prod(shape[1:]) * itemsize  # bytes for each index of the axis
    while row > limit:
        axis += 1
        row //= shape[axis]
    outer, rest = tuple(shape[:axis]), tuple(shape[axis + 1 :])
    step = limit // row
    for number in range(prod(outer)):  # `itertools.product` would hold every index of every axis
        index = tuple(map(int, np.unravel_index(number, outer)))
        for low in range(0, shape[axis], step):
            high = min(low + step, shape[axis])
            yield (*index, low, *(0 for _ in rest)), (*(i + 1 for i in index), high, *rest)
