""".npy files: an array that is mapped where its file lies, and the header that a new file begins with.

NumPy's own functions would open both files again by name, and look at another file when somebody has
put one there meanwhile. These work on files that are open.
"""

import mmap
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Sequence
from io import BytesIO
from math import prod
from tokenize import TokenError
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from tilecore._cli.errors import named

STANDARD_STREAM = "-"

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

_LONGEST_HEADER = 10_000  # NumPy's own limit: longer ones are slow to parse, or crash the parser


class Mapped(NamedTuple):
    """The array in a .npy file."""

    array: NDArray[Any]
    fortran_order: bool  # and not C order too
    version: tuple[int, int]  # of the file's format
    mapping: mmap.mmap
    status: os.stat_result

    def let_go(self) -> None:
        """Its pages are read again when they are needed: from the page cache, usually."""
        if hasattr(mmap, "MADV_DONTNEED"):  # Windows takes pages back by itself
            self.mapping.madvise(mmap.MADV_DONTNEED)


def map_npy(path: str) -> Mapped:
    """The array in a file, or in what comes from standard input."""
    if path == STANDARD_STREAM:
        with _standard_input() as file:
            return _mapped(file, "standard input")
    # A pipe without a writer would otherwise not let itself be opened, nor refused.
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        refuse_special(path, os.fstat(fd))
        file = os.fdopen(fd, "rb", closefd=False)
        with named(path):
            return _mapped(file, path)
    finally:
        os.close(fd)  # the mapping has its own


def _mapped(file: BinaryIO, name: str) -> Mapped:
    status = os.fstat(file.fileno())
    try:
        version, (shape, fortran_order, dtype) = _read_header(file)
        if dtype.hasobject:
            raise ValueError(f"Python objects in dtype {dtype}, which a file holds as pickles")
        begin = file.tell()
        end = begin + prod(shape) * dtype.itemsize
        if end > status.st_size:
            raise ValueError(f"cut short: {status.st_size} bytes, expected {end}")
        mapping = mmap.mmap(file.fileno(), end, access=mmap.ACCESS_READ)
        array: NDArray[Any] = np.ndarray(
            shape, dtype, mapping, begin, order="F" if fortran_order else "C"
        )
    except _MALFORMED as reason:
        raise ValueError(f"{name}: {reason}") from None
    return Mapped(array, array.flags.fnc, version, mapping, status)


def _read_header(file: BinaryIO) -> tuple[tuple[int, int], tuple[tuple[int, ...], bool, Any]]:
    start = file.read(4)
    file.seek(0)
    if start in (b"PK\3\4", b"PK\5\6"):  # with files in it, and without
        raise ValueError("a .npz archive, expected a .npy file: numpy.load reads its arrays")
    version = npy.read_magic(file)
    if version == (1, 0):
        header = npy.read_array_header_1_0(file)
    elif version == (2, 0):
        header = npy.read_array_header_2_0(file)
    elif version == (3, 0):
        header = _read_header_3_0(file)
    else:
        raise ValueError(f"format version {version}, expected (1, 0), (2, 0) or (3, 0)")
    shape = header[0]
    if any(n < 0 for n in shape):
        raise ValueError(f"a negative extent in its shape {shape}")
    if any(type(n) is not int for n in shape):
        raise ValueError(f"shape {shape}, expected integers")
    return version, header


def _read_header_3_0(file: BinaryIO) -> tuple[tuple[int, ...], bool, Any]:
    """Version 3 is version 2 with field names in UTF-8, and NumPy's function for it is private."""
    length = int.from_bytes(file.read(4), "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"a header of {length} bytes, expected at most {_LONGEST_HEADER}")
    text = file.read(length)
    if len(text) < length:
        raise ValueError("EOF in its header")
    ascii = text.decode("utf-8").encode("ascii", "backslashreplace")  # the same literal
    stream = BytesIO(len(ascii).to_bytes(4, "little") + ascii)
    return npy.read_array_header_2_0(stream, max_header_size=10 * _LONGEST_HEADER)


def header(
    dtype: np.dtype[Any], shape: Sequence[int], fortran_order: bool, version: tuple[int, int]
) -> bytes:
    """What `numpy.save` would write before the array's items."""
    descr: Any = npy.dtype_to_descr(dtype)
    if version == (3, 0):
        descr = _Verbatim(repr(descr).encode("utf-8").decode("latin-1"))
    entries = {"descr": descr, "fortran_order": fortran_order, "shape": tuple(shape)}
    stream = BytesIO()
    write = npy.write_array_header_1_0 if version == (1, 0) else npy.write_array_header_2_0
    write(stream, entries)
    magic = npy.magic(*version)
    return magic + stream.getvalue()[len(magic) :]


class _Verbatim(str):
    """Its characters are the bytes of the header, which NumPy writes as Latin-1."""

    def __repr__(self) -> str:
        return str(self)


def refuse_special(path: str, status: os.stat_result) -> None:
    """A folder; or a device, which renaming would replace by a file."""
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path}: expected a regular file")


# ---------------------------------------------------------------- standard streams


def _standard_input() -> BinaryIO:
    """A file to map: what the shell has redirected, or a nameless file that holds what a pipe gave."""
    if sys.stdin is None:
        raise ValueError("standard input is closed")
    if sys.stdin.isatty():
        raise ValueError("standard input is a terminal, expected a file or a pipe")
    stream = sys.stdin.buffer
    if stat.S_ISREG(os.fstat(stream.fileno()).st_mode) and stream.tell() == 0:
        return os.fdopen(os.dup(stream.fileno()), "rb")
    with named(f"a copy of standard input in {tempfile.gettempdir()}"):
        file = tempfile.TemporaryFile()
        shutil.copyfileobj(stream, file, 1 << 20)
        file.flush()
    file.seek(0)
    return file


def standard_output() -> BinaryIO:
    if sys.stdout is None:
        raise ValueError("standard output is closed")
    if sys.stdout.isatty():
        raise ValueError("standard output is a terminal, expected a file or a pipe")
    return sys.stdout.buffer
