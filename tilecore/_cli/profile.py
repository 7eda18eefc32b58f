"""`tilecore profile`, in the program's process: site/sitecustomize.py calls `begin`, and Python's exit `report`."""

import atexit
import os
import sys
from contextlib import redirect_stdout, suppress
from typing import Any

from tilecore._cli.files import write_json
from tilecore._process import print_text
from tilecore._profile.block import ProfileBlock
from tilecore._profile.measure import Profile


def begin(path: str) -> None:
    """Begin to measure, before the program's first line. Child processes are not measured."""
    others = os.environ.pop("PYTHONPATH").partition(os.pathsep)[2]
    if others:
        os.environ["PYTHONPATH"] = others
    measured = Profile()
    block = measured.block()
    try:
        block.__enter__()
    except RuntimeError as error:
        print_text(f"tilecore: {error}", sys.stderr)
        os._exit(2)
    atexit.register(report, measured, block, path)  # the first to be registered is called last


def report(measured: Profile, block: ProfileBlock, path: str) -> None:
    """Report after all functions that run at exit. The program may have replaced sys.stdout and sys.stderr."""
    if not block.leave():  # a child process
        return
    failed = not measured.report(sys.__stderr__)
    streams: list[Any] = [sys.stdout, sys.stderr, sys.__stdout__]
    for stream in streams:
        with suppress(Exception):  # one that is None or closed, or of a class of the program's
            stream.flush()
    try:
        if path and measured.table:
            with suppress(BrokenPipeError), redirect_stdout(sys.__stdout__):
                write_json(path, measured.table)
    except Exception as error:
        reason = f"{path}: {error.strerror or error}" if isinstance(error, OSError) else error  # ours name the path
        print_text(f"tilecore: {' '.join(str(reason).split())}", sys.__stderr__)
        failed = True
    if failed:
        os._exit(2)  # Python's own end would keep the program's exit code
