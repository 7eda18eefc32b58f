"""`tilecore run`: Python starts the program, with `numpy.tile` replaced in it and in its child processes.

site/sitecustomize.py replaces it, in each Python that has its folder in PYTHONPATH.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import NoReturn

from tilecore._profile.process import print_text


def run(option: str, name: str, arguments: Sequence[str]) -> NoReturn:
    if why := refusal():
        print_text(f"tilecore: {why}; the program runs with NumPy's own", sys.stderr)
    start(option, name, arguments)


def refusal() -> str:
    """Why a program cannot be started with tilecore, or an empty text."""
    ignored = sys.flags.ignore_environment or sys.flags.no_site
    return "numpy.tile cannot be replaced: Python's options -E, -I and -S exclude it" if ignored else ""


def start(option: str, name: str, arguments: Sequence[str], **variables: str) -> NoReturn:
    """Start the program in the place of this one, with Python's own options: a file, a module ("-m") or code ("-c")."""
    if not option and name != "-":
        os.stat(name)  # if there is no such file, this error is one line
    options = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv)]
    if options and (ours := re.fullmatch("(-[A-Za-z]*)[mc]", options[-1])):  # of `python -m tilecore`
        options[-1:] = [ours[1]] if len(ours[1]) > 1 else []
    before = [option] if option else ["--"] if re.match("-.", name) else []
    command = [sys.executable, *options, *before, name, *arguments]
    paths = [os.path.join(os.path.dirname(__file__), "site"), os.environ.get("PYTHONPATH")]
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    if os.name != "nt":
        os.execve(command[0], command, {**os.environ, **variables})
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the program's; on Windows it reaches both
    sys.exit(subprocess.call(command, env={**os.environ, **variables}))
