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
from importlib.machinery import BuiltinImporter, SourceFileLoader, SourcelessFileLoader
from io import BytesIO
from types import ModuleType, TracebackType

import tilecore
from tilecore._profile.process import children_seconds, print_text

kept: list[object] = []  # a replacement ends when it is garbage-collected


def run(option: str, name: str, arguments: Sequence[str]) -> str | None:
    try:
        kept.append(tilecore.replace_numpy_tile())
    except RuntimeError as error:
        print_text(f"tilecore: {error}; the program runs with NumPy's own", sys.stderr)
    atexit.register(report_children, os.getpid())  # before the program's own functions, so it is called after them
    return start(option, name, arguments)


def report_children(process: int) -> None:
    if os.getpid() == process and (seconds := children_seconds()):
        text = f"tilecore: child processes took {seconds}; those not made by fork had NumPy's own numpy.tile"
        print_text(f"{text}, see docs/profile.md", sys.__stderr__)


def absolute(path: str) -> str:
    """As Python makes a program's name absolute: `..` stays, because the folder before it may be a link."""
    if os.name == "nt" or path == ".":
        return os.path.abspath(path)
    return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)


def start(option: str, name: str, arguments: Sequence[str]) -> str | None:
    """Run the program: a file, a module ("-m") or code ("-c"). Return None, or why it cannot be started."""
    own = 0 if sys.flags.safe_path else 1  # how many entries of sys.path Python makes for the command line
    main = sys.modules["__main__"] = ModuleType("__main__")
    vars(main)["__builtins__"] = builtins
    if sys.version_info < (3, 14):
        vars(main)["__annotations__"] = {}
    sys.argv[:] = [option or name, *arguments]
    try:
        if option == "-c" or option + name == "-":
            sys.path[:own] = [""] * own
            vars(main)["__loader__"] = BuiltinImporter
            source, file = name if option else sys.stdin.buffer.read(), "<string>" if option else "<stdin>"
            exec(compile(source, file, "exec", dont_inherit=True), vars(main))
        elif option == "-m" or pkgutil.get_importer(name):  # a folder or an archive; Python itself calls this function
            is_module = option == "-m"
            sys.path[:own] = [os.getcwd()] * own if is_module else [absolute(name)]
            runpy._run_module_as_main(name if is_module else "__main__", is_module)  # type: ignore[attr-defined]
        else:
            try:
                with open(name, "rb") as program:
                    text = program.read()
            except OSError as error:
                return f"{name}: {error.strerror}"
            code = pkgutil.read_code(BytesIO(text))  # None if it is not compiled
            if code is None and name.endswith(".pyc"):
                raise RuntimeError("Bad magic number in .pyc file")
            if code is None and b"\0" in text:
                return f"{name}: source code cannot contain null bytes"
            file, loader = absolute(name), SourcelessFileLoader if code else SourceFileLoader
            sys.path[:own] = [os.path.dirname(os.path.realpath(name))] * own
            vars(main).update(__file__=file, __loader__=loader("__main__", file), __cached__=None)
            exec(code or compile(text, file, "exec", dont_inherit=True), vars(main))
    except SystemExit as end:
        if isinstance(end.__context__, runpy._Error):  # type: ignore[attr-defined]  # there is no such module
            return str(end.__context__)
        raise
    except BaseException:
        if hasattr(sys, "excepthook"):
            sys.excepthook = functools.partial(show, sys.excepthook)
        raise
    return None


def show(hook: Callable[..., object], kind: type, error: BaseException, trace: TracebackType | None) -> None:
    """Show the traceback without the calls down to `start`."""
    sys.excepthook = hook  # for exit handlers
    ours = trace
    while ours and ours.tb_frame.f_code is not start.__code__:
        ours = ours.tb_next
    rest = ours.tb_next if ours else trace
    hook(kind, error.with_traceback(rest), rest)
