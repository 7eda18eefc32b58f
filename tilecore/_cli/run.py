"""`tilecore run`: a program as `python` runs it, with `numpy.tile` replaced before its first line.

The program gets a module `__main__` of its own, which stays after its end, for threads and exit handlers. Exceptions
are left to Python: it shows the traceback, and knows the exit code and how Ctrl-C ends a program.
"""

import atexit
import builtins
import functools
import os
import pkgutil
import runpy
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.machinery import SourceFileLoader, SourcelessFileLoader
from importlib.util import MAGIC_NUMBER
from types import MethodType, ModuleType, TracebackType
from typing import Any

import numpy

import tilecore
from tilecore._cli.units import with_unit
from tilecore._core.request.subclasses import numpy_tile

kept: list[object] = []  # a replacement ends when it is garbage-collected
# Start methods of multiprocessing for which the system does not report the children's times to this process.
UNTIMED = {"multiprocessing.popen_forkserver", "multiprocessing.popen_spawn_win32"}


class Replacement(functools.partial[Any]):
    """A function that replaces `numpy.tile`, and compares equal to it.

    A library that is imported later may store it in a table of NumPy's functions, and look `numpy.tile` up there.
    """

    def __eq__(self, other: object) -> bool:
        return other is self or other is numpy_tile

    def __hash__(self) -> int:
        return hash(numpy_tile)

    def __get__(self, instance: object, owner: object = None) -> Any:
        return self if instance is None else MethodType(self, instance)  # a method, as functions are

    def __reduce__(self) -> Any:
        return "tile"  # pickled by its name, as functions are


def install(function: Callable[..., Any]) -> None:
    numpy.tile = functools.update_wrapper(Replacement(function), numpy_tile)


def run(name: str, is_module: bool, arguments: Sequence[str]) -> str | None:
    kept.append(tilecore.replace_numpy_tile())
    install(numpy.tile)
    atexit.register(report_children, os.getpid())  # before the program's own functions, so it is called after them
    return start(name, is_module, arguments)


def report_children(process: int) -> None:
    if os.getpid() == process and (seconds := children_seconds()):
        with suppress(OSError, ValueError):  # a full disk, or stderr is closed
            text = f"tilecore: child processes took {seconds}; those not made by fork had NumPy's own numpy.tile"
            print(text, file=sys.__stderr__, flush=True)


def children_seconds() -> str:
    """The processor time of child processes, as text; "" if it is less than a hundredth of this process' own."""
    if UNTIMED & sys.modules.keys():
        return "an unknown time"
    times = os.times()
    children = sum(times[2:4])
    return with_unit(children, "s") if children > 0.01 * sum(times[:2]) else ""


def absolute(path: str) -> str:
    """As Python makes a program's name absolute: `..` stays, because the folder before it may be a link."""
    if os.name == "nt" or path == ".":
        return os.path.abspath(path)
    return os.path.join(os.getcwd(), path)


def start(name: str, is_module: bool, arguments: Sequence[str]) -> str | None:
    """Run the program. Return None, or why it cannot be started."""
    main = sys.modules["__main__"] = ModuleType("__main__")
    vars(main)["__builtins__"] = builtins
    if sys.version_info < (3, 14):
        vars(main)["__annotations__"] = {}
    sys.argv[:] = ["-m" if is_module else name, *arguments]
    own = 0 if sys.flags.safe_path else 1  # how many entries of sys.path Python made for the command line
    try:
        if is_module or pkgutil.get_importer(name):  # a folder or an archive; Python itself calls this function
            sys.path[:own] = [os.getcwd()] * own if is_module else [absolute(name)]
            runpy._run_module_as_main(name if is_module else "__main__", is_module)  # type: ignore[attr-defined]
        else:
            file = absolute(name)
            loader: Any = SourceFileLoader("__main__", file)
            try:
                program = loader.get_data(name)
                if name.endswith(".pyc") or program.startswith(MAGIC_NUMBER):
                    loader = SourcelessFileLoader("__main__", file)
                    program = loader.get_code("__main__")
            except OSError as error:
                return f"{name}: {error.strerror}"
            except (EOFError, ImportError, TypeError, ValueError):
                return f"{name}: damaged, or not compiled by this version of Python"
            sys.path[:own] = [os.path.dirname(os.path.realpath(name))] * own
            vars(main).update(__file__=file, __loader__=loader, __cached__=None)
            exec(compile(program, file, "exec", dont_inherit=True) if type(program) is bytes else program, vars(main))
    except SystemExit as end:
        if isinstance(end.__context__, runpy._Error):  # type: ignore[attr-defined]  # there is no such module
            return str(end.__context__)
        raise
    except BaseException:
        sys.excepthook = functools.partial(show, sys.excepthook)
        raise
    return None


def show(hook: Callable[..., object], kind: type, error: BaseException, trace: TracebackType | None) -> None:
    """Show the traceback without the calls down to `start`."""
    ours = trace
    while ours and ours.tb_frame.f_code is not start.__code__:
        ours = ours.tb_next
    rest = ours.tb_next if ours else trace
    hook(kind, error.with_traceback(rest), rest)
