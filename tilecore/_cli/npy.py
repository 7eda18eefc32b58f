""".npy files: mapped arrays, and headers of new files.

NumPy's own functions open a file by its name, which may refer to another file by then. These take open files.
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
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from tilecore._cli.output import STANDARD_STREAM, errors_naming

_LONGEST_HEADER = 10_000  # NumPy's own limit: longer ones are slow to parse, or crash the parser


class Mapped(NamedTuple):
    array: NDArray[Any]
    fortran_order: bool  # False if also in C order
    version: tuple[int, int]  # of the file's format
    mapping: mmap.mmap
    status: os.stat_result

    def release_pages(self) -> None:
        """Release the resident pages. The next access reads them again, usually from the page cache."""
        if hasattr(mmap, "MADV_DONTNEED"):  # Windows releases pages by itself
            self.mapping.madvise(mmap.MADV_DONTNEED)


def map_npy(path: str) -> Mapped:
    """Map the array in a file, or on standard input."""
    if path == STANDARD_STREAM:
        with _file_of_standard_input() as file:
            return _map(file, "standard input")
    # O_NONBLOCK: a pipe without a writer opens at once, and is then rejected.
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError(f"{path}: not a regular file; use - for standard input")
        with errors_naming(path):
            return _map(os.fdopen(fd, "rb", closefd=False), path)
    finally:
        os.close(fd)  # the mapping has a descriptor of its own


def _file_of_standard_input() -> BinaryIO:
    """The redirected file, or a temporary copy of the data from a pipe."""
    if sys.stdin is None:
        raise ValueError("standard input is closed")
    if sys.stdin.isatty():
        raise ValueError("standard input is a terminal, expected a file or a pipe")
    stream = sys.stdin.buffer
    if stat.S_ISREG(os.fstat(stream.fileno()).st_mode) and stream.tell() == 0:
        return os.fdopen(os.dup(stream.fileno()), "rb")
    with errors_naming(f"a copy of standard input in {tempfile.gettempdir()}"):
        file = tempfile.TemporaryFile()
        shutil.copyfileobj(stream, file, 1 << 20)
        file.flush()
    file.seek(0)
    return file


def _map(file: BinaryIO, name: str) -> Mapped:
    status = os.fstat(file.fileno())
    try:
        version, (shape, fortran_order, dtype) = _read_header(file)
        if dtype.hasobject:
            raise ValueError(f"dtype {dtype} contains Python objects, which a file stores as pickles")
        begin = file.tell()
        end = begin + prod(shape) * dtype.itemsize
        if end > status.st_size:
            raise ValueError(f"truncated: {status.st_size} bytes, expected {end}")
        mapping = mmap.mmap(file.fileno(), end, access=mmap.ACCESS_READ)
        array: NDArray[Any] = np.ndarray(shape, dtype, mapping, begin, order="F" if fortran_order else "C")
    except OSError:
        raise
    except Exception as reason:  # NumPy and Python's parser raise errors of eight types about a malformed header
        raise ValueError(f"{name}: {str(reason) or 'malformed header'}") from None
    return Mapped(array, array.flags.fnc, version, mapping, status)


def _read_header(file: BinaryIO) -> tuple[tuple[int, int], tuple[tuple[int, ...], bool, Any]]:
    start = file.read(len(npy.MAGIC_PREFIX))
    file.seek(0)
    if start != npy.MAGIC_PREFIX:
        is_archive = start[:4] in (b"PK\3\4", b"PK\5\6")  # with files, and empty
        hint = " but a .npz archive; numpy.load reads the arrays in it" if is_archive else ""
        raise ValueError(f"not a .npy file{hint}")
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"format version {version}, expected (1, 0), (2, 0) or (3, 0)")
    length = int.from_bytes(file.read(2 if version == (1, 0) else 4), "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"a header of {length} bytes, expected at most {_LONGEST_HEADER}")
    encoded = file.read(length)
    if len(encoded) < length:
        raise ValueError("the file ends within its header")
    text = encoded.decode("utf-8" if version == (3, 0) else "latin-1")
    # NumPy has no public function for version 3. With escapes in ASCII, the same literal is a header of version 2.
    ascii = text.encode("ascii", "backslashreplace")
    stream = BytesIO(len(ascii).to_bytes(4, "little") + ascii)
    header = npy.read_array_header_2_0(stream, max_header_size=10 * _LONGEST_HEADER)
    if any(type(n) is not int or n < 0 for n in header[0]):
        raise ValueError(f"shape {header[0]}, expected integers of 0 or more")
    return version, header


def header(dtype: np.dtype[Any], shape: Sequence[int], fortran_order: bool, version: tuple[int, int]) -> bytes:
    """The bytes that `numpy.save` would write before the array's items."""
    descr, shape = npy.dtype_to_descr(dtype), tuple(shape)
    text = f"{{'descr': {descr!r}, 'fortran_order': {fortran_order}, 'shape': {shape!r}, }}"
    if shape:  # NumPy leaves room for 21 digits of the first extent, so that a file can grow
        text += " " * (21 - len(str(shape[-1 if fortran_order else 0])))
    begin, digits = npy.magic(*version), 2 if version == (1, 0) else 4
    encoded = text.encode("utf-8" if version == (3, 0) else "latin-1")
    encoded += b" " * (-(len(begin) + digits + len(encoded) + 1) % 64) + b"\n"
    return begin + len(encoded).to_bytes(digits, "little") + encoded
