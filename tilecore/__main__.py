"""The command line: `tilecore tile`, `tilecore info`, `tilecore demo`.

An error is one line on stderr, and exit code 2; an interrupt ends with 128 and the signal's number.
"""

import argparse
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import tilecore
from tilecore._cli.demo import demo
from tilecore._cli.files import tile_file
from tilecore._core.limits import parse_bytes
from tilecore._core.refusals import Refusal, worded
from tilecore._dialects.row import Dialect, Option

DIALECTS: dict[str, Dialect] = {
    name: module.DIALECT for name, module in vars(tilecore).items() if hasattr(module, "DIALECT")
}


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    try:
        arguments = parser().parse_args(argv)
        arguments.run(arguments)
        if sys.stdout is not None:  # closed, by a daemon say
            sys.stdout.flush()
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except (TypeError, ValueError, MemoryError, OSError) as error:
        print("tilecore:", " ".join(str(error).split()), file=sys.stderr)
        return 2
    return 0


def parser() -> Parser:
    top = Parser(prog="tilecore", description="The Tile operation on a CPU, exact and fast.")
    top.add_argument("--version", action="version", version=f"tilecore {tilecore.__version__}")
    commands = top.add_subparsers(dest="command", metavar="command", required=True)

    command = commands.add_parser("tile", help="tile the array of a .npy file into another")
    command.set_defaults(run=tile)
    command.add_argument("input", metavar="IN.npy", type=Path)
    command.add_argument("output", metavar="OUT.npy", type=Path, help="written whole or not at all")
    command.add_argument(
        "--repeats", metavar="N,N,...", type=integers, required=True, help="as in --repeats=2,3"
    )
    command.add_argument(
        "--dialect",
        choices=["numpy", *DIALECTS],
        default="numpy",
        help="whose rules hold (default: %(default)s)",
    )
    for name, option in options().items():
        command.add_argument(flag(name), type=option.read, metavar=option.metavar, help=option.help)
    command.add_argument(
        "--memory",
        metavar="SIZE",
        type=size,
        default="256M",
        help="the most that the process holds, however large the files (default: %(default)s)",
    )
    command.add_argument(
        "--threads", metavar="N", type=threads, default=1, help="default: 1, usually the fastest"
    )

    command = commands.add_parser("info", help="show versions, compiler, processor, limits")
    command.set_defaults(run=lambda _: tilecore.show_config())

    command = commands.add_parser("demo", help="tile small arrays, show errors, time real shapes")
    command.set_defaults(run=lambda _: demo())
    return top


def integers(text: str) -> tuple[int, ...]:
    try:
        return tuple(map(int, text.split(","))) if text else ()
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected integers such as 2,3, got {text!r}") from None


def size(text: str) -> int:
    try:
        return parse_bytes(text)
    except ValueError as reason:
        raise argparse.ArgumentTypeError(str(reason)) from None


def threads(text: str) -> int:
    if not re.fullmatch("0*[1-9][0-9]{0,5}", text):
        raise argparse.ArgumentTypeError(f"expected an integer of at least 1, got {text!r}")
    return int(text)


# ---------------------------------------------------------------- tile


def tile(arguments: argparse.Namespace) -> None:
    with ended_by_signals():
        tile_file(
            arguments.input,
            arguments.output,
            legal_repeats(arguments),
            progress_bar,
            arguments.memory,
            arguments.threads,
        )


def legal_repeats(arguments: argparse.Namespace) -> Callable[[Any], tuple[str, tuple[int, ...]]]:
    """The dialect's rule, with what it is told of versions."""
    chosen, repeats = arguments.dialect, arguments.repeats
    given = {name: getattr(arguments, name) for name in options()}
    given = {name: value for name, value in given.items() if value is not None}
    accepted = DIALECTS[chosen].options if chosen in DIALECTS else {}
    for name in given.keys() - accepted.keys():
        takers = " or ".join(other for other, row in DIALECTS.items() if name in row.options)
        raise ValueError(f"{flag(name)} is for --dialect {takers}, not {chosen}")
    if chosen not in DIALECTS:
        return lambda array: ("tile", repeats)  # all that TilePlan takes
    rule = DIALECTS[chosen].rule(**given)

    def legal(array: Any) -> tuple[str, tuple[int, ...]]:
        try:
            return rule.name, rule.counts(array, repeats)
        except Refusal as refusal:
            asked = {"--repeats": ",".join(map(str, repeats))}
            names = {"repeats": "--repeats"}
            raise worded(refusal, rule.name, array, names, **asked) from refusal.__cause__

    return legal


def options() -> dict[str, Option]:
    """Those of all dialects."""
    return {name: option for row in DIALECTS.values() for name, option in row.options.items()}


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


@contextmanager
def progress_bar(total: int) -> Iterator[Callable[[int], object]]:
    """On a terminal, and where tqdm is installed."""
    tqdm = None
    if sys.stderr is not None:
        with suppress(ImportError):
            tqdm = import_module("tqdm").tqdm
    if tqdm is None:
        yield lambda nbytes: None
        return
    # `disable=None`: none where stderr is no terminal.
    with tqdm(total=total, unit="B", unit_scale=True, disable=None) as bar:
        yield bar.update


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """What would end the process at once ends it by an exception, which takes temporary files away."""

    ending = False

    def end(number: int, frame: object) -> None:
        nonlocal ending
        if not ending:  # a second one must not cut short what the first has begun
            ending = True
            sys.exit(128 + number)

    before = {}
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # Windows has two of them
            number = getattr(signal, name)
            # Else ignored, by nohup say.
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                before[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main())
