"""The commands and their arguments, which main.py parses. A command imports its own modules when it is run."""

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

from numpy.typing import NDArray

import tilecore
from tilecore._core.request.errors import RequestError, format_error, short_repr
from tilecore._dialects.dialect import Dialect
from tilecore._dialects.version import Version

DIALECTS: dict[str, Dialect] = {name: getattr(tilecore, name).DIALECT for name in tilecore._DIALECTS}
USERS = {"axis": "numpy"} | {option: name for name, dialect in DIALECTS.items() for option in dialect.options}


class Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._negative_number_matcher = re.compile("-[0-9]")  # -1,2 is a value, not an option

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    arguments, more = parser().parse_known_args(argv)
    if more:
        numbers = "repeats" in arguments and all(re.fullmatch("-?[0-9]+", text) for text in more)
        hint = "; write several repeats as one argument, such as 2,2" if numbers else ""
        raise ValueError(f"unrecognized arguments: {' '.join(more)}{hint}")
    return arguments


def parser() -> Parser:
    names = ", ".join(dialect.name for dialect in DIALECTS.values())
    top = Parser(prog="tilecore", description=f"A fast numpy.tile for CPUs, and the exact Tile of {names}.")
    top.add_argument("--version", action="version", version=f"tilecore {tilecore.__version__}")
    top.set_defaults(run=lambda _: top.print_help())
    commands = top.add_subparsers(metavar="command")

    command = commands.add_parser("tile", help="tile the array of a .npy file into another")
    command.set_defaults(run=tile)
    add = command.add_argument
    add("input", metavar="IN.npy", help="the file to tile; - for standard input")
    add("output", metavar="OUT.npy", help="the new file, written atomically; - for standard output")
    integer_list: Any = {"type": read_integers, "metavar": "N,N,..."}
    add("--repeats", "--reps", **integer_list, required=True, help="the repeats of the axes, such as 2,3")
    axes = "the axes to repeat, one for each of the repeats (--dialect numpy only; default: the last ones)"
    add("--axis", **integer_list, help=axes)
    add("--dialect", choices=["numpy", *DIALECTS], default="numpy", help="the rules to follow (default: %(default)s)")
    for dialect in DIALECTS.values():
        for name, option in dialect.options.items():
            add(flag(name), type=partial(read_option, dialect, name), metavar=option.metavar, help=option.help)
    add("--force", action="store_true", help="replace OUT.npy if it exists, and keep its permission bits")

    command = commands.add_parser("info", help="show versions, compiler, processor and limits")
    command.set_defaults(run=lambda a: print(tilecore.get_include()) if a.include else tilecore.show_config())
    files = {"include": "the C headers", "cmake": "tilecoreConfig.cmake", "pkgconfig": "tilecore.pc"}
    for name, file in files.items():  # all in one folder
        command.add_argument(f"--{name}", dest="include", action="store_true", help=f"print only the folder of {file}")

    for name, text in {
        "run": "run a Python program with tilecore's tile in the place of numpy.tile",
        "profile": "run a Python program, and show what tilecore would do for it",
        "compare": "run a Python program several times, with and without tilecore, and compare times and memory",
    }.items():
        epilog = "Options come before PROGRAM. What follows it is PROGRAM's."
        command = commands.add_parser(name, help=text, allow_abbrev=False, epilog=epilog)
        command.set_defaults(run=start_program)
        add = command.add_mutually_exclusive_group(required=True).add_argument
        add(
            "program", metavar="PROGRAM", nargs="?", help="a file, or a folder or archive with __main__.py; - for stdin"
        )
        add("-m", metavar="PROGRAM", dest="module", help="a module or a package")
        add("-c", metavar="CODE", dest="code", help="Python code")
        if name != "run":
            text = "also write the table to this file; - for standard output"
            command.add_argument("--json", metavar="FILE", help=text)
    text = "how often to run it, with and without tilecore (default: %(default)s)"
    command.add_argument("--rounds", metavar="N", type=read_rounds, default=3, help=text)

    command = commands.add_parser("demo", help="show examples, and timings on this machine")
    command.set_defaults(run=lambda _: import_module("tilecore._cli.demo").demo(DIALECTS))
    return top


def start_program(arguments: argparse.Namespace) -> None:
    given = {"-m": arguments.module, "-c": arguments.code, "": arguments.program}
    program = next((option, text) for option, text in given.items() if text is not None)
    from tilecore._cli.run import profile, run

    if "json" in arguments:
        path = "" if arguments.json is None else import_module("tilecore._cli.files").try_to_write(arguments.json)
        if "rounds" in arguments:
            import_module("tilecore._cli.compare").compare(*program, arguments.rest, path, arguments.rounds)
            return
        profile(*program, arguments.rest, path)
    run(*program, arguments.rest)


def read_rounds(text: str) -> int:
    if not re.fullmatch("[1-9][0-9]{0,5}", text):
        raise argparse.ArgumentTypeError(f"expected a positive integer, got {short_repr(text)}")
    return int(text)


def read_integers(text: str) -> tuple[int, ...]:
    try:
        return tuple(map(int, text.split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected integers such as 2,3, got {short_repr(text)}") from None


def read_option(dialect: Dialect, name: str, text: str) -> Any:
    option = dialect.options[name]
    try:
        value = option.read(text)
        dialect.version(**{name: value})
        return value
    except (TypeError, ValueError):
        raise argparse.ArgumentTypeError(f"expected {option.help}, got {text!r}") from None


def tile(arguments: argparse.Namespace) -> None:
    from tilecore._cli.files import tile_file

    planner = partial(make_plan, arguments, version_of(arguments))
    tile_file(arguments.input, arguments.output, planner, progress_bar, arguments.force)


def make_plan(arguments: argparse.Namespace, version: Version, array: NDArray[Any]) -> tilecore.TilePlan:
    """Plan the tiling of the input. Errors name the options of the command line."""
    names = {"repeats": "--repeats", "axis": "--axis"}
    typed = {option: ",".join(map(str, n)) for name, option in names.items() if (n := getattr(arguments, name))}
    try:
        repeats = version.read_counts(array, arguments.repeats)
        return tilecore.TilePlan(array.shape, repeats, array.dtype, axis=arguments.axis)
    except (RequestError, TypeError, ValueError, MemoryError) as error:
        raise format_error(error, version.name, array, names, **typed) from error.__cause__


def version_of(arguments: argparse.Namespace) -> Version:
    """The version of the dialect that its options choose."""
    chosen = arguments.dialect
    given = {name: value for name in USERS if (value := getattr(arguments, name)) is not None}
    for name in given:
        if chosen != USERS[name]:
            raise ValueError(f"{flag(name)} is for --dialect {USERS[name]}, not {chosen}")
    return DIALECTS[chosen].version(**given) if chosen in DIALECTS else Version("tile", any_length=True)


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


@contextmanager
def progress_bar(total: int) -> Iterator[Callable[[int], object]]:
    """Show tqdm's bar on a terminal, if tqdm is installed."""
    try:
        tqdm = import_module("tqdm").tqdm
    except ImportError:
        yield lambda nbytes: None
        return
    with tqdm(total=total, unit="B", unit_scale=True, disable=None if sys.stderr else True) as bar:
        yield bar.update
