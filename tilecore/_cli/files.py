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

import errno
import mmap
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import product
from math import prod
from pathlib import Path
from secrets import token_hex
from tokenize import TokenError
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from tilecore._core.refusals import reworded
from tilecore._core.tileplan import TilePlan

LegalRepeats: TypeAlias = Callable[[NDArray[Any]], tuple[str, tuple[int, ...]]]
"""A dialect's name, and the repeats that it allows for an input."""

Progress: TypeAlias = Callable[[int], AbstractContextManager[Callable[[int], object]]]
"""Told how many bytes there will be; what its context gives is told of each slab's."""

# What NumPy raises about a header that is none.
_MALFORMED = (
    ValueError,
    TypeError,
    OverflowError,
    SyntaxError,
    TokenError,
    IndexError,
    RecursionError,
)

_MIB = 1 << 20
PROGRAM = 64 * _MIB  # Python, NumPy and tilecore themselves; about half of it, measured
SLAB = 1 * _MIB  # still in the cache when it is written; larger ones took up to three times as long
THREADED_SLAB = 32 * _MIB  # asked for, threads share regions from 16 MiB on
LEAST_MEMORY = PROGRAM + 4 * SLAB


def tile_file(
    source: Path,
    target: Path,
    legal_repeats: LegalRepeats,
    progress: Progress,
    memory: int,
    threads: int = 1,
) -> None:
    """Write the tiling of the array in `source` to `target`; both are .npy files.

    `memory` bounds the resident bytes of the whole process. `target` appears, or is replaced, when
    all of it is written; until then, and after an error or an interrupt, it is what it was.
    """
    if memory < LEAST_MEMORY:
        raise ValueError(f"memory of {memory / _MIB:.3g}M, expected {LEAST_MEMORY >> 20}M or more")
    input = map_npy(source)
    name, repeats = legal_repeats(input.array)
    try:
        plan = TilePlan(input.array.shape, repeats, input.array.dtype)
    except (TypeError, ValueError, MemoryError) as error:
        asked = {"--repeats": ",".join(map(str, repeats))}
        names = {"repeats": "--repeats"}
        raise reworded(error, name, input.array, names, **asked) from error.__cause__
    with whole_or_absent(target, source) as temporary:
        with create_npy(temporary, plan, input) as file, progress(plan.nbytes) as advance:
            if plan.nbytes:
                write_slabs(file, plan, input, memory, threads, advance)


def write_slabs(
    file: BinaryIO,
    plan: TilePlan,
    input: "Mapped",
    memory: int,
    threads: int,
    advance: Callable[[int], object],
) -> None:
    array, dtype = input.array, plan.dtype
    if input.fortran_order:
        array = array[(None,) * (len(plan.reps) - array.ndim)].T
        plan = TilePlan(array.shape, plan.reps[::-1], dtype)
    limit = slab_limit(dtype.itemsize, memory, threads)
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
        file.write(buffer.data[:nbytes])
        resident += nbytes
        advance(nbytes)


def slab_limit(itemsize: int, memory: int, threads: int) -> int:
    """Bytes of the buffer. No more than half of what is left for it and the mapped input."""
    limit = max(SLAB if threads == 1 else THREADED_SLAB, itemsize)
    limit = min(limit, (memory - PROGRAM) // 2)
    if limit < itemsize:
        least = -(-(PROGRAM + 2 * itemsize) // _MIB)
        raise ValueError(f"items of {itemsize} bytes need a memory of {least}M or more")
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
    for outer in product(*map(range, shape[:axis])):
        for low in range(0, shape[axis], step):
            high = min(low + step, shape[axis])
            yield (*outer, low, *(0 for _ in rest)), (*(i + 1 for i in outer), high, *rest)


# ---------------------------------------------------------------- files


class Mapped(NamedTuple):
    """The array in a .npy file."""

    array: NDArray[Any]
    fortran_order: bool  # and not C order too
    version: tuple[int, int]  # of the file's format
    mapping: mmap.mmap

    def let_go(self) -> None:
        """Its pages are read again when they are needed: from the page cache, usually."""
        if hasattr(mmap, "MADV_DONTNEED"):  # Windows takes pages back by itself
            self.mapping.madvise(mmap.MADV_DONTNEED)


def map_npy(path: Path) -> Mapped:
    refuse_special(path)
    try:
        with open(path, "rb") as file:
            version = npy.read_magic(file)
            # For the extents alone: NumPy itself would divide by zero for (-1,) of items without bytes.
            read = npy.read_array_header_1_0 if version[0] == 1 else npy.read_array_header_2_0
            if version[0] <= 3 and any(n < 0 for n in read(file)[0]):
                raise ValueError("a negative extent in its header")
        array = npy.open_memmap(path, "r")
    except _MALFORMED as reason:
        raise ValueError(f"{path}: {reason}") from None
    mapping = array.base
    assert isinstance(mapping, mmap.mmap)
    return Mapped(np.asarray(array), array.flags.fnc, version, mapping)


@contextmanager
def create_npy(path: Path, plan: TilePlan, input: Mapped) -> Iterator[BinaryIO]:
    """A new file with room for the result, behind its header."""
    try:
        with np.errstate(over="raise"):
            header = npy.open_memmap(
                path, "w+", plan.dtype, plan.output_shape, input.fortran_order, input.version
            )
        offset = header.offset
        del header
        file = open(path, "r+b")
    except (OSError, ValueError, ArithmeticError) as reason:
        raise no_room(plan, reason) from None
    with file:
        if hasattr(os, "posix_fallocate"):
            # A full disk tells now; and to write into room that is there takes half as long.
            try:
                os.posix_fallocate(file.fileno(), 0, offset + plan.nbytes)
            except OSError as reason:
                if reason.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                    raise no_room(plan, reason) from None
        file.seek(offset)
        yield file


def no_room(plan: TilePlan, reason: Exception) -> OSError:
    why = getattr(reason, "strerror", None) or reason
    if getattr(reason, "errno", None) in (errno.EINVAL, errno.EFBIG):
        why = "too large for this file system"
    return OSError(f"cannot make a file of {plan.nbytes} bytes: {why}")


@contextmanager
def whole_or_absent(target: Path, source: Path) -> Iterator[Path]:
    """A temporary name in the target's folder, renamed to it if all goes well, else removed."""
    target = Path(os.path.realpath(target))  # a link stays one
    if target.is_symlink():
        raise OSError(f"{target}: links that go round in a circle")
    refuse_special(target)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target.parent}: no such folder")
    if target.exists() and target.samefile(source):
        raise ValueError(f"{target}: the input and the output are the same file")
    temporary = target.with_name(f".tilecore-{token_hex(8)}.part")
    replaces = target.exists()
    try:
        # What may have been secret stays so meanwhile, and has its permissions again in the end.
        temporary.touch(0o600 if replaces else 0o666, exist_ok=False)
        yield temporary
        if replaces:
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def refuse_special(path: Path) -> None:
    """A folder; or a device, which renaming would replace by a file."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path}: expected a regular file")
