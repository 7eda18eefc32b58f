"""An error as one line on stderr, also while tilecore is being imported.

`tilecore info` imports the package before anything of the command line runs, and the import itself
may fail: for an environment variable that is malformed, or in the source folder. So the package
imports this module first of all, which asks whether this process is the command.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

EXIT_CODE = 2


def tell(error: BaseException) -> int:
    """Print the error; the exit code."""
    if sys.stderr is not None:  # closed, by a daemon say
        print("tilecore:", one_line(error), file=sys.stderr)
    return EXIT_CODE


def one_line(error: BaseException) -> str:
    """
    >>> one_line(FileNotFoundError(2, "No such file or directory", "in.npy"))
    'in.npy: No such file or directory'
    >>> one_line(FileNotFoundError(2, "No such file or directory", ""))
    "'': No such file or directory"
    """
    text = str(error)
    if isinstance(error, OSError) and error.strerror:  # else we have worded it ourselves
        name = error.filename
        where = f"{os.fsdecode(name) or repr(name)}: " if isinstance(name, (str, bytes)) else ""
        text = f"{where}{error.strerror}"
    return " ".join(text.split()) or type(error).__name__


@contextmanager
def named(path: str) -> Iterator[None]:
    """An error of the system names `path`, the file that the user knows."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, path) from None


# ---------------------------------------------------------------- while tilecore is imported


def restore_hook() -> None:
    """The command has begun, and tells its errors itself."""
    if sys.excepthook is _end:
        sys.excepthook = sys.__excepthook__


def is_command() -> bool:
    """Whether this process was started as `tilecore` or as `python -m tilecore`."""
    arguments: list[str] = getattr(sys, "argv", None) or [""]  # none in an embedded Python
    if arguments[0] == "-m":  # as long as Python looks for the module, whose name is the one before
        given = sys.orig_argv[-len(arguments)]
        return re.fullmatch(r"(-\w*m)?tilecore(\.__main__)?", given) is not None
    return os.path.splitext(os.path.basename(arguments[0]))[0] == "tilecore"


def _end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if isinstance(error, (ValueError, ImportError, MemoryError)):
        raise SystemExit(tell(error))
    sys.__excepthook__(kind, error, trace)


if is_command():
    sys.excepthook = _end
