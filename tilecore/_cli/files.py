"""Tiling from file to file, in memory that neither file's size has a say in.

The result is written from its first byte to its last, slab by slab: a slab is a region that is
contiguous in the file and fits the buffer. A result of shape (4, 1000, 1000), float32, takes 262
rows at a time with a buffer of 1 MiB: three slabs and a rest for each of the four.

The input is mapped, and what a slab touches of it stays resident until it is let go. A slab touches
no more bytes of the input than it has itself, so it is enough to count the bytes written.

A .npy file in Fortran order is the array with its axes reversed, in C order; tiled by the reversed
repeats it is the result with its axes reversed. So the result is written in the input's order, and
both files are gone through in one direction: nothing is transposed, however large.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilecore._cli.errors import named
from tilecore._cli.npy import STANDARD_STREAM, Mapped, header, map_npy, standard_output
from tilecore._cli.replacing import replacing
from tilecore._cli.units import with_unit
from tilecore._core.tileplan import TilePlan

Planned: TypeAlias = Callable[[NDArray[Any]], TilePlan]
"""The plan for an input, by a dialect's rules."""

Progress: TypeAlias = Callable[[int], AbstractContextManager[Callable[[int], object]]]
"""Told how many bytes there will be; what its context gives is told of each slab's."""

_MIB = 1 << 20
PROGRAM = 64 * _MIB  # Python, NumPy and tilecore themselves; about half of it, measured
SLAB = 1 * _MIB  # still in the cache when it is written; larger ones took up to three times as long
THREADED_SLAB = 32 * _MIB  # asked for, threads share regions from 16 MiB on
LEAST_MEMORY = PROGRAM + 4 * SLAB


def tile_file(
    source: str,
    target: str,
    planned: Planned,
    progress: Progress,
    memory: int,
    threads: int = 1,
    force: bool = False,
) -> None:
    """Write the tiling of the array in `source` to `target`; both are .npy files, or "-".

    `memory` bounds the resident bytes of the whole process. `target` appears, or is replaced, when
    all of it is written; until then, and after an error or an interrupt, it is what it was. `force`
    replaces it though it is write-protected.
    """
    if memory < LEAST_MEMORY:
        raise ValueError(f"memory of {memory} bytes, expected {LEAST_MEMORY >> 20}M or more")
    input = map_npy(source)
    plan = planned(input.array)
    limit = slab_limit(plan.dtype.itemsize, memory, threads)
    begin = header(plan.dtype, plan.output_shape, input.fortran_order, input.version)
    if target == STANDARD_STREAM:
        file = standard_output()
        file.write(begin)
        with progress(plan.nbytes) as advance:
            write_slabs(file.write, plan, input, memory, limit, threads, advance)
        return

    def write(data: memoryview) -> None:
        with named(target):
            file.write(data)

    with replacing(target, len(begin) + plan.nbytes, input.status, force) as file:
        write(memoryview(begin))
        with progress(plan.nbytes) as advance:
            write_slabs(write, plan, input, memory, limit, threads, advance)


def write_slabs(
    write: Callable[[memoryview], object],
    plan: TilePlan,
    input: Mapped,
    memory: int,
    limit: int,
    threads: int,
    advance: Callable[[int], object],
) -> None:
    array, dtype = input.array, plan.dtype
    if not plan.nbytes:
        return
    if input.fortran_order:
        array = array[(None,) * (len(plan.reps) - array.ndim)].T
        plan = TilePlan(array.shape, plan.reps[::-1], dtype)
    buffer = np.empty(min(limit, plan.nbytes), np.uint8)
    resident = 0  # bytes of the input, at most
    for start, stop in slabs(plan.output_shape, dtype.itemsize, limit):
        extents = tuple(b - a for a, b in zip(start, stop, strict=True))
        nbytes = prod(extents) * dtype.itemsize
        if resident + nbytes > memory - PROGRAM - limit:
            input.let_go()
            resident = 0
        out: NDArray[Any] = np.ndarray(extents, dtype, buffer)
        plan.region(array, start, stop, out, threads=threads)
        write(buffer.data[:nbytes])
        resident += nbytes
        advance(nbytes)


def slab_limit(itemsize: int, memory: int, threads: int) -> int:
    """Bytes of the buffer. No more than half of what is left for it and the mapped input."""
    limit = max(SLAB if threads == 1 else THREADED_SLAB, itemsize)
    limit = min(limit, (memory - PROGRAM) // 2)
    if limit < itemsize:
        least = -(-(PROGRAM + 2 * itemsize) // _MIB)
        raise ValueError(f"items of {with_unit(itemsize, 'B')} need --memory {least}M or more")
    return limit


def slabs(
    shape: Sequence[int], itemsize: int, limit: int
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(start, stop) of contiguous regions of at most `limit` bytes, one after the other.

    >>> list(slabs((2, 3, 4), itemsize=1, limit=8))             # doctest: +NORMALIZE_WHITESPACE
    [((0, 0, 0), (1, 2, 4)), ((0, 2, 0), (1, 3, 4)),
     ((1, 0, 0), (2, 2, 4)), ((1, 2, 0), (2, 3, 4))]

    An item fits, and no extent is 0.
    """
    if not shape:
        yield (), ()
        return
    axis = 0
    row = prod(shape[1:]) * itemsize  # bytes for each index of the axis
    while row > limit:
        axis += 1
        row //= shape[axis]
    rest = tuple(shape[axis + 1 :])
    step = limit // row
    for outer in indices(shape[:axis]):
        for low in range(0, shape[axis], step):
            high = min(low + step, shape[axis])
            yield (*outer, low, *(0 for _ in rest)), (*(i + 1 for i in outer), high, *rest)


def indices(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All of them, the last axis fastest, and one held at a time, which `itertools.product` does not.

    >>> list(indices((2, 2)))
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """
    index = [0] * len(shape)
    while True:
        yield tuple(index)
        for axis in reversed(range(len(shape))):
            index[axis] += 1
            if index[axis] < shape[axis]:
                break
            index[axis] = 0
        else:
            return
