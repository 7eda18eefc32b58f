"""The command `tilecore`: how it starts, and how it ends.

An error is one line on stderr, with exit code 2. A signal gives exit code 128 plus its number: Ctrl-C gives 130.
`run` and `profile` start a program in the place of this one; then errors and signals are its own. `run` imports neither
argparse nor the modules of other commands, because that takes longer than many programs. `compare` waits for programs.
"""

import errno
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from tilecore._process import print_text

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, and return the exit code."""
    code = 0
    own, rest = without_program(sys.argv[1:] if argv is None else argv)
    try:
        with interrupted_by_signals():
            *command, name = own or [""]
            if command in (["run"], ["run", "-m"], ["run", "-c"]) and name[:1] not in ("", "-"):  # no need of argparse
                from tilecore._cli.run import run

                run("".join(command[1:]), name, rest)
            else:
                from tilecore._cli.commands import parse

                arguments = parse(own)
                arguments.rest = rest
                arguments.run(arguments)
            if sys.stdout is not None:  # None if closed, by a daemon for instance
                sys.stdout.flush()
    except BrokenPipeError:  # the reader, `head` for instance, has seen enough
        pass
    except KeyboardInterrupt as error:
        code = print_error("interrupted", 128 + (error.args or (signal.SIGINT,))[0])
    except (TypeError, ValueError, MemoryError, OSError) as error:
        code = print_error(one_line(error), 2)
    drop_unwritten(sys.stdout)
    return code


def print_error(message: str, code: int) -> int:
    print_text(f"tilecore: {' '.join(message.split())}", sys.stderr)
    drop_unwritten(sys.stderr)
    return code


def one_line(error: BaseException) -> str:
    text = str(error)
    if isinstance(error, OSError) and error.strerror:  # else the text is tilecore's
        # If the disk is full and the error names no file, the text was printed.
        name = "standard output" if error.filename is None and error.errno in FULL else error.filename
        text = error.strerror if name is None else f"{name or repr('')}: {error.strerror}"
    return text.strip() or type(error).__name__


def drop_unwritten(stream: TextIO | None) -> None:
    """Discard unwritten output: at exit Python would write it again, and change the exit code if that fails."""
    if stream is not None:
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP raise KeyboardInterrupt, as Ctrl-C does, so that temporary files are removed.

    Only the first signal does. Later ones are ignored until the process ends: they would interrupt the removal.
    """
    seen: list[int] = []

    def interrupt(number: int, frame: object) -> None:
        seen.append(number)
        if len(seen) == 1:
            raise KeyboardInterrupt(number)

    numbers = [signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)]  # Windows has no SIGHUP
    before = {number: signal.getsignal(number) for number in numbers}
    # Any other handler stays: nohup's, for instance, which ignores the signal.
    changed = [number for number in before if before[number] in (signal.SIG_DFL, signal.default_int_handler)]
    for number in changed:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in changed:  # before it ends, Python removes handlers that are functions, but SIG_IGN stays
            signal.signal(number, signal.SIG_IGN if seen else before[number])


def without_program(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Split off the program's own arguments, which argparse must not see: those after its name.

    >>> without_program(["run", "-m", "pkg", "-x"]), without_program(["profile", "--json", "a", "b.py", "--", "c"])
    ((['run', '-m', 'pkg'], ['-x']), (['profile', '--json', 'a', 'b.py'], ['--', 'c']))
    """
    for k in range(1, len(argv)) if argv and argv[0] in ("run", "profile", "compare") else ():
        before, text = argv[k - 1 : k + 1]
        if before in ("-m", "-c", "--") or (re.match("[^-]|-[mc].|-$", text) and before not in ("--json", "--rounds")):
            return argv[: k + 1], argv[k + 1 :]
    return argv, []
