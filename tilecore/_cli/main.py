"""The commands: `tilecore tile`, `tilecore info`, `tilecore demo`.

An error is one line on stderr, and exit code 2; an interrupt ends with 128 and the signal's number.
"""

import argparse
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

from numpy.typing import NDArray

import tilecore
from tilecore._cli.demo import demo
from tilecore._cli.errors import restore_hook, tell
from tilecore._cli.files import LEAST_MEMORY, tile_file
from tilecore._core.limits import parse_bytes
from tilecore._core.refusals import Refusal, reworded, worded
from tilecore._dialects.row import Dialect, Option, Rule

DIALECTS: dict[str, Dialect] = {
    name: module.DIALECT for name, module in vars(tilecore).items() if hasattr(module, "DIALECT")
}


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Of --help and --version; argparse itself lets it pass that they could not be written."""
        print(message, end="", file=file, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    restore_hook()
    try:
        arguments = parser().parse_args(joined(sys.argv[1:] if argv is None else argv))
        arguments.run(arguments)
        if sys.stdout is not None:  # closed, by a daemon say
            sys.stdout.flush()
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        drop_output()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except (TypeError, ValueError, MemoryError, OSError) as error:
        drop_output()
        return tell(error)
    return 0


def drop_output() -> None:
    """What standard output did not take is not tried again, and told of, when Python ends."""
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def joined(argv: Sequence[str]) -> list[str]:
    """`--repeats -1,2` as `--repeats=-1,2`: argparse takes what begins with a dash for an option.

    >>> joined(["tile", "in.npy", "-", "--repeats", "-1,2", "--force"])
    ['tile', 'in.npy', '-', '--repeats=-1,2', '--force']
    """
    result: list[str] = []
    for text in argv:
        if result and result[-1] in ("--repeats", "--axis") and re.match("-[0-9]", text):
            result[-1] += f"={text}"
        else:
            result.append(text)
    return result


def parser() -> Parser:
    top = Parser(prog="tilecore", description="The Tile operation on a CPU, exact and fast.")
    top.add_argument("--version", action="version", version=f"tilecore {tilecore.__version__}")
    commands = top.add_subparsers(dest="command", metavar="command", required=True)

    command = commands.add_parser("tile", help="tile the array of a .npy file into another")
    command.set_defaults(run=tile)
    command.add_argument("input", metavar="IN.npy", help="- is standard input")
    command.add_argument(
        "output",
        metavar="OUT.npy",
        help="written whole or not at all, but for - which is standard output",
    )
    command.add_argument(
        "--repeats", metavar="N,N,...", type=integers, required=True, help="as in --repeats 2,3"
    )
    command.add_argument(
        "--axis",
        metavar="N,N,...",
        type=integers,
        help="the axes of the repeats, one for each, by NumPy's rules (default: the last ones)",
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
        type=memory,
        default="256M",
        help="the most that the process holds, however large the files: "
        f"{LEAST_MEMORY >> 20}M or more (default: %(default)s)",
    )
    command.add_argument(
        "--threads", metavar="N", type=threads, default=1, help="default: 1, usually the fastest"
    )
    command.add_argument(
        "--force", action="store_true", help="replace OUT.npy though it is write-protected"
    )

    command = commands.add_parser("info", help="show versions, compiler, processor, limits")
    command.set_defaults(run=info)
    command.add_argument(
        "--include", action="store_true", help="print the folder of the C headers and nothing else"
    )

    command = commands.add_parser("demo", help="tile small arrays, show errors, time real shapes")
    command.set_defaults(run=lambda _: demo())
    return top


def integers(text: str) -> tuple[int, ...]:
    try:
        return tuple(map(int, text.split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected integers such as 2,3, got {text!r}") from None


def memory(text: str) -> int:
    try:
        nbytes = parse_bytes(text)
    except ValueError as reason:
        raise argparse.ArgumentTypeError(str(reason)) from None
    if nbytes < LEAST_MEMORY:
        least = f"expected {LEAST_MEMORY >> 20}M or more"
        raise argparse.ArgumentTypeError(f"{least}, got {text!r}")
    return nbytes


def threads(text: str) -> int:
    if not re.fullmatch("0*[1-9][0-9]{0,5}", text):
        raise argparse.ArgumentTypeError(f"expected an integer of at least 1, got {text!r}")
    return int(text)


def info(arguments: argparse.Namespace) -> None:
    if arguments.include:
        print(tilecore.get_include())
    else:
        tilecore.show_config()


# ---------------------------------------------------------------- tile


def tile(arguments: argparse.Namespace) -> None:
    with ended_by_signals():
        tile_file(
            arguments.input,
            arguments.output,
            partial(planned, arguments, rule_of(arguments)),
            progress_bar,
            arguments.memory,
            arguments.threads,
            arguments.force,
        )


def planned(arguments: argparse.Namespace, rule: Rule, array: NDArray[Any]) -> tilecore.TilePlan:
    """The plan for the input. What is refused gets the command line's words here, and nowhere else."""
    names = {"repeats": "--repeats", "axis": "--axis"}
    given = {"--repeats": arguments.repeats, "--axis": arguments.axis}
    typed = {name: ",".join(map(str, n)) for name, n in given.items() if n is not None}
    try:
        repeats = rule.counts(array, arguments.repeats)
        return tilecore.TilePlan(array.shape, repeats, array.dtype, axis=arguments.axis)
    except Refusal as refusal:
        raise worded(refusal, rule.name, array, names, **typed) from refusal.__cause__
    except (TypeError, ValueError, MemoryError) as error:
        raise reworded(error, rule.name, array, names, **typed) from None


NUMPY = Rule("tile", lambda array, repeats: repeats)  # all that TilePlan takes


def rule_of(arguments: argparse.Namespace) -> Rule:
    """The dialect's rule, with what it is told of versions."""
    chosen = arguments.dialect
    if arguments.axis is not None and chosen != "numpy":
        raise ValueError(f"--axis is for --dialect numpy, not {chosen}")
    given = {name: getattr(arguments, name) for name in options()}
    given = {name: value for name, value in given.items() if value is not None}
    accepted = DIALECTS[chosen].options if chosen in DIALECTS else {}
    for name in given.keys() - accepted.keys():
        takers = " or ".join(other for other, row in DIALECTS.items() if name in row.options)
        raise ValueError(f"{flag(name)} is for --dialect {takers}, not {chosen}")
    return DIALECTS[chosen].rule(**given) if chosen in DIALECTS else NUMPY


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
