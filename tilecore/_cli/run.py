"""`tilecore run` and `profile`: start a program, with the folder site/ first in PYTHONPATH.

The sitecustomize.py in it replaces `numpy.tile`, in child processes too, or begins the profile.
"""

import errno
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import NoReturn

from tilecore._process import print_text

SITE = os.path.join(os.path.dirname(__file__), "site")
# Python's own options, each followed by a NUL: flags; W or X and a value; last, flags in the word of -m or -c.
OPTIONS = r"(?:(?:-[^-cmWX\0]+|-[^-cmWX\0]*[WX]\0?[^\0]*|--check-hash-based-pycs\0[^\0]*)\0)*(?:-[^-cmWX\0]+(?=[cm]))?"


def run(option: str, name: str, arguments: Sequence[str]) -> NoReturn:
    if why := refusal():
        print_text(f"tilecore: {why}; the program runs with NumPy's own", sys.stderr)
        start(option, name, arguments)
    start(option, name, arguments, "tilecore")


def profile(option: str, name: str, arguments: Sequence[str], path: str) -> NoReturn:
    """Start the program with a profile. Its table is also written to `path`, unless that is empty."""
    if why := refusal():
        raise ValueError(why)
    start(option, name, arguments, f"tilecore={path}")


def refusal() -> str:
    """Say why a program cannot be started with tilecore; an empty text if it can."""
    why = f"PYTHONPATH cannot name {SITE}, because of the {os.pathsep}" if os.pathsep in SITE else ""
    if sys.flags.ignore_environment or sys.flags.no_site:
        why = "Python's options -E, -I and -S exclude it"
    return why and f"numpy.tile cannot be replaced: {why}"


def start(option: str, name: str, arguments: Sequence[str], told: str = "") -> NoReturn:
    """Start the program in the place of this one."""
    command, environment = prepare(option, name, arguments, told)
    if os.name != "nt":
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if callable(signal.getsignal(number)):  # what it notes until the program starts would be lost
                signal.signal(number, signal.SIG_DFL)
        os.execve(command[0], command, environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the program's; on Windows it reaches both
    sys.exit(subprocess.call(command, env=environment))


def prepare(option: str, name: str, arguments: Sequence[str], told: str = "") -> tuple[list[str], dict[str, str]]:
    """Command and environment of a program, with Python's own options: a file, a module ("-m") or code ("-c").

    `told` goes to sitecustomize.py by an option -X, not by an environment variable: child processes inherit those, and
    users may set any.
    """
    if not option and name != "-":
        if name.isidentifier() and not os.path.lexists(name):
            raise FileNotFoundError(errno.ENOENT, f"{os.strerror(errno.ENOENT)}; for a module, use -m {name}", name)
        os.stat(name)  # if there is no such file, this error is one line
    *options, flags = next(re.finditer(OPTIONS, "".join(f"{word}\0" for word in sys.orig_argv[1:])))[0].split("\0")
    environment = dict(os.environ)
    if told:
        options += ["-X", told]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [SITE, os.environ.get("PYTHONPATH")]))
    before = [option] if option else ["--"] if re.match("-.", name) else []
    return [sys.executable, *options, *filter(None, [flags]), *before, name, *arguments], environment
