"""`tilecore profile`: runs a program as `tilecore run` does, with its calls of `numpy.tile` measured."""

import atexit
import os
import sys
from collections.abc import Sequence

from tilecore._cli.run import start
from tilecore._profile.measure import Profile, forget


def writable(path: str) -> str:
    """The absolute path. An error of opening it is raised now, and not after the program."""
    with open(path, "a"):
        return os.path.abspath(path)


def profile(option: str, name: str, path: str | None, arguments: Sequence[str]) -> str | None:
    measured = Profile()
    measured.start()
    # Before the program's own functions, so it is called after them. A program may have replaced sys.stderr.
    atexit.register(measured.end, sys.__stderr__, path)
    missing = start(option, name, arguments)
    if missing is not None:
        forget()
    return missing
