"""`tilecore tile`: `tile_file` tiles from file to file, in memory that does not depend on the size of either.

The result is written from its first byte to its last, slab by slab. A slab is a region that is contiguous in the file
and fits the buffer. Example: for a float32 result of shape (4, 1000, 1000), a buffer of 1 MiB holds 262 rows, so each
of the four planes takes three slabs of 262 rows and one of 214.

The input is mapped, and the pages that a slab reads stay resident until they are released. A slab reads at most as
many bytes as it writes, so counting the bytes written is enough.

A .npy file in Fortran order holds the transposed array in C order. Tiling that array by the reversed repeats gives the
transposed result. So the result gets the input's order, and nothing is transposed.
"""

import errno
import mmap
import os
import select
import shutil
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from io import BytesIO
from math import prod
from secrets import token_hex
from typing import Any, TypeAlias

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from tilecore._core.tileplan import TilePlan
from tilecore._units import with_unit

STANDARD_STREAM = "-"
SLAB = 1 << 20  # bytes, still in the cache when they are written to the file: larger slabs took longer
RESIDENT = 32 << 20  # bytes of the input that may be resident

Planner: TypeAlias = Callable[[NDArray[Any]], TilePlan]  # makes the plan for an input, by a dialect's rules
# Takes the total number of bytes, and returns a context: a function to call with the number of bytes of each slab.
Progress: TypeAlias = Callable[[int], AbstractContextManager[Callable[[int], object]]]


def tile_file(source: str, target: str, planner: Planner, progress: Progress, force: bool = False) -> None:
    """Write the tiling of `source` to `target`, .npy files or "-". `force` replaces an existing `target`."""
    with open_input(source) as array:
        plan = planner(array)
        header = make_header(plan, array.flags.fnc, source)
        with open_output(target, len(header) + plan.nbytes, force) as fd, progress(plan.nbytes) as advance:
            write_all(fd, memoryview(header))
            for slab in slabs(plan, array) if plan.nbytes else ():
                write_all(fd, slab)
                advance(slab.nbytes)


def make_header(plan: TilePlan, is_fortran: bool, source: str) -> bytes:
    """The result's header, as NumPy writes it."""
    header = BytesIO()
    dtype = np.empty(0, plan.dtype).dtype  # strings of length 0 become strings of length 1
    fields = {"descr": npy.dtype_to_descr(dtype), "fortran_order": is_fortran, "shape": plan.output_shape}
    try:
        npy.write_array_header_1_0(header, fields)
    except UnicodeEncodeError:
        raise ValueError(f"{source}: names of fields outside Latin-1 are not supported") from None
    return header.getvalue()


def slabs(plan: TilePlan, array: NDArray[Any]) -> Iterator[memoryview]:
    """The bytes of the result in order, all in one buffer; `array` is mapped."""
    mapping: Any = array.base
    if array.flags.fnc:
        array = array[(None,) * (len(plan.reps) - array.ndim)].T
        plan = TilePlan(array.shape, plan.reps[::-1], plan.dtype)
    dtype = np.empty(0, plan.dtype).dtype
    limit = max(SLAB, dtype.itemsize)
    buffer = np.zeros(limit, np.uint8)
    resident = 0  # bytes, at most
    for start, stop in regions(plan.output_shape, dtype.itemsize, limit):
        extents = tuple(b - a for a, b in zip(start, stop, strict=True))
        out: NDArray[Any] = np.ndarray(extents, dtype, buffer)
        if resident + out.nbytes > RESIDENT and hasattr(mmap, "MADV_DONTNEED"):  # Windows releases pages by itself
            mapping.madvise(mmap.MADV_DONTNEED)
            resident = 0
        if plan.dtype.itemsize:
            plan.region(array, start, stop, out, threads=1)
        resident += out.nbytes
        yield buffer.data[: out.nbytes]


def regions(shape: Sequence[int], itemsize: int, limit: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(start, stop) of contiguous regions of at most `limit` >= `itemsize` bytes, in order; no extent is 0.

    >>> list(regions((2, 3, 4), itemsize=1, limit=8))           # doctest: +NORMALIZE_WHITESPACE
    [((0, 0, 0), (1, 2, 4)), ((0, 2, 0), (1, 3, 4)),
     ((1, 0, 0), (2, 2, 4)), ((1, 2, 0), (2, 3, 4))]
    """
    if not shape:
        yield (), ()
        return
    axis, row = 0, prod(shape[1:]) * itemsize  # `row`: bytes for each index of the axis
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


@contextmanager
def open_input(path: str) -> Iterator[NDArray[Any]]:
    """The array of a .npy file, mapped. Standard input is first copied to a file."""
    if path != STANDARD_STREAM:
        yield map_array(path, path)
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise ValueError("standard input is closed or a terminal, expected a file or a pipe")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # Windows removes no mapped file
        copy = os.path.join(folder, "input.npy")
        with open(copy, "xb", buffering=0) as file:
            while (data := sys.stdin.buffer.read(SLAB)) != b"":
                if data is None:  # an empty pipe that another process has made non-blocking
                    select.select([sys.stdin], [], [])
                    continue
                with naming(os.path.dirname(folder)):
                    write_all(file.fileno(), memoryview(data))
        yield map_array(copy, "standard input")


def map_array(path: str, name: str) -> NDArray[Any]:
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # opening a folder says what is wrong
        raise ValueError(f"{name}: not a regular file; use {STANDARD_STREAM} for standard input")
    try:
        # NumPy compiles the header, which may warn, and multiplies its shape.
        with warnings.catch_warnings(action="ignore"), np.errstate(over="ignore"), naming(name):
            return npy.open_memmap(path, "r")
    except OSError:  # too few addresses, for instance
        raise
    except Exception as error:  # NumPy and Python's parser raise errors of eight types about a malformed header
        # The lines that follow are NumPy's advice on its own functions. The first may quote the header, or be empty.
        reason = str(error).partition("\n")[0][:200] or type(error).__name__
        if reason.startswith("EOF"):
            reason = f"it ends after {os.path.getsize(path)} bytes, within its header"
        if reason.startswith("Header info length"):
            reason = "its header is long, which may not be safe; if you trust it, use numpy.load with max_header_size="
        if "got b'PK" in reason:
            reason = "an .npz archive is not supported; extract it by unzip"
        raise ValueError(f"{name}: cannot be read as a .npy file: {reason}") from None


@contextmanager
def open_output(path: str, nbytes: int, force: bool) -> Iterator[int]:
    """The descriptor of standard output, or of a hidden file in the same folder, which is named `path` at the end."""
    if path == STANDARD_STREAM:
        if sys.stdout is None or sys.stdout.isatty():
            raise ValueError("standard output is closed or a terminal, expected a file or a pipe")
        with naming("standard output"):
            yield sys.stdout.fileno()
        return
    folder = os.path.dirname(path)
    mode = check_existing(path, force)
    temporary = os.path.join(folder, f".tilecore-{token_hex(8)}.part")
    # Twice, because a signal handler may raise before the first has removed it.
    with removing(temporary), removing(temporary), naming(path):
        disk = shutil.disk_usage(folder or os.curdir)
        if nbytes > disk.free and disk.total:  # some network file systems report neither
            needed = f"needs {with_unit(nbytes, 'B')}, but its disk has {with_unit(disk.free, 'B')} free"
            raise OSError(errno.ENOSPC, needed)
        # Others may write to the folder. So what replaces a private file is private from the start, and the mode is set
        # by descriptor: the name may have become a link.
        first = 0o666 if mode is None else 0o600
        with open(temporary, "xb", buffering=0, opener=lambda name, flags: os.open(name, flags, first)) as file:
            if mode is not None and hasattr(os, "fchmod"):  # without setuid and setgid, which were for the old content
                os.fchmod(file.fileno(), mode & 0o777)
            yield file.fileno()
            os.fsync(file.fileno())
        publish(temporary, path, force)


@contextmanager
def removing(path: str) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(OSError):  # it may not exist, for many reasons; the first error is the one to show
            os.unlink(path)


def write_json(path: str, table: object) -> None:
    import json  # `tilecore tile` starts sooner without

    data = json.dumps(table, indent=1).encode() + b"\n"
    with open_output(path, len(data), force=True) as fd:
        write_all(fd, memoryview(data))


def try_to_write(path: str) -> str:
    """The absolute path. If it cannot be written, the error is raised now, not after the program."""
    with suppress(EOFError), open_output(path, 0, force=True):
        raise EOFError  # so nothing is written
    return path if path == STANDARD_STREAM else os.path.abspath(path)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Make errors name the file or folder that the user knows."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), path) from None


def check_existing(path: str, force: bool) -> int | None:
    """Return the mode of the file to replace, or None if there is none; raise an error if it must stay."""
    if not path:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path}: not a regular file; use {STANDARD_STREAM} for standard output")
    if not force:
        raise ValueError(f"{path}: exists already; use --force to replace it")
    return mode


def publish(temporary: str, path: str, force: bool) -> None:
    """Give the finished file its name. Other programs may have used the name since it was checked."""
    if not force:
        with suppress(OSError, AttributeError, NotImplementedError):  # a file system, or a system, without links
            os.link(temporary, path, follow_symlinks=False)  # fails if there is a file
            return
    check_existing(path, force)
    os.replace(temporary, path)


def write_all(fd: int, data: memoryview) -> None:
    """Write all of it, unbuffered: after an interrupt no output is pending, which might wait for a full pipe."""
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:  # a pipe that another process has made non-blocking
            select.select([], [fd], [])
