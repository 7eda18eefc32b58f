"""Writes a result: atomically to a file, or to standard output.

The bytes are written to a hidden file in the same folder. When they are on the disk, the file gets its own name: by a
hard link, which fails if the name is taken, or with `force` by a rename, which replaces the old file. Only the mode of
a replaced file is kept.
"""

import errno
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from secrets import token_hex
from typing import TypeAlias

from tilecore._cli.units import with_unit

STANDARD_STREAM = "-"
Write: TypeAlias = Callable[[memoryview], None]


def one_line(error: BaseException) -> str:
    text = str(error)
    if isinstance(error, OSError) and error.strerror:  # else the text is tilecore's
        text = error.strerror if error.filename is None else f"{error.filename or repr('')}: {error.strerror}"
    return " ".join(text.split()) or type(error).__name__


@contextmanager
def open_output(path: str, nbytes: int, source: os.stat_result, force: bool = False) -> Iterator[Write]:
    """A function that writes the next of the `nbytes` of a result; its input is `source`."""
    if path == STANDARD_STREAM:
        yield partial(_write_all, _fd_of_standard_output(source))
    else:
        hint = f"; use {STANDARD_STREAM} for standard output"
        with errors_naming(path), new_file(path, nbytes, force, hint) as write:
            yield write


def _write_all(fd: int, data: memoryview) -> None:
    """Unbuffered: after an interrupt nothing is left to write, and a full pipe blocks nothing."""
    while data:
        data = data[os.write(fd, data) :]


@contextmanager
def errors_naming(path: str) -> Iterator[None]:
    """Make system errors name `path`, the file that the user knows."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), path) from None


def _fd_of_standard_output(source: os.stat_result) -> int:
    if sys.stdout is None:
        raise ValueError("standard output is closed")
    if sys.stdout.isatty():
        raise ValueError("standard output is a terminal, expected a file or a pipe")
    fd = sys.stdout.fileno()
    if os.path.samestat(os.fstat(fd), source):
        raise ValueError("standard output is the input file, which it would overwrite")
    return fd


@contextmanager
def new_file(path: str, nbytes: int, force: bool, hint: str = "") -> Iterator[Write]:
    """As open_output, for a path that is always a file; `hint` ends the error for a path that is no file."""
    folder, name = os.path.split(path)
    if not name:
        raise ValueError(f"{path or repr(path)}: expected the name of a file")
    mode = _mode_to_keep(path, force, hint)
    _check_free_space(folder or os.curdir, nbytes)
    temporary = os.path.join(folder, f".tilecore-{token_hex(8)}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        # A file that replaces another is private until it has the other's mode.
        fd = os.open(temporary, flags, 0o666 if mode is None else 0o600)
        try:
            _make_room(fd, nbytes)
            yield partial(_write_all, fd)
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(fd, mode)
            os.fsync(fd)
        finally:
            os.close(fd)
        if force:
            os.replace(temporary, path)
        else:
            _link(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _mode_to_keep(path: str, force: bool, hint: str = "") -> int | None:
    """The mode of the file that will be replaced, or None if there is none."""
    try:
        mode = os.lstat(path).st_mode  # not through links: /dev/stdout may lead to a log
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path}: not a regular file{hint}")
    if not force:
        raise ValueError(f"{path}: exists already; use --force to replace it")
    return mode & 0o777  # setuid and setgid were meant for the old content


def _check_free_space(folder: str, nbytes: int) -> None:
    disk = shutil.disk_usage(folder)
    if nbytes > disk.free and disk.total > 0:  # some network file systems report neither
        what = f"needs {with_unit(nbytes, 'B')}, but its disk has {with_unit(disk.free, 'B')} free"
        raise OSError(errno.ENOSPC, what)


def _make_room(fd: int, nbytes: int) -> None:
    """Allocate the file: writing is faster, and a quota that is too small fails now."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(fd, 0, nbytes)
        except OSError as error:
            # Not every file system can: ZFS returns EINVAL. But all return EINVAL for sizes beyond their largest file.
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise


def _link(temporary: str, path: str) -> None:
    try:
        os.link(temporary, path)
    except OSError:  # the name has been taken in the meantime, or the file system has no hard links (FAT)
        _mode_to_keep(path, force=False)
        os.replace(temporary, path)
