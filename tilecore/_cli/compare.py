"""`tilecore compare`: runs a program as it is, and with tilecore, by turns, and compares time, page faults and memory.

Each run is a process of its own. The system counts the children that it waited for too; its peak is that of the largest
process. Standard input is empty, because it can be read only once.
"""

import os
import re
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from statistics import median
from time import monotonic, perf_counter, sleep
from typing import Any

from tilecore._cli.files import write_json
from tilecore._cli.run import SITE, prepare, refusal
from tilecore._process import describe_others, print_text, processor_seconds
from tilecore._units import with_unit

KEYS = {"seconds": ("elapsed time", "s"), "processor_seconds": ("processor time", "s")}
KEYS |= {"page_faults": ("page faults", ""), "peak_bytes": ("peak memory", "B")}


def compare(option: str, name: str, arguments: Sequence[str], path: str, rounds: int) -> None:
    """Print the table on standard error, and write its data to `path`, unless that is empty."""
    if not hasattr(os, "wait4"):
        raise ValueError("compare: this system does not report a process' page faults and memory; use profile")
    if why := refusal():
        raise ValueError(why)
    if not option and (name == "-" or (os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name))):
        raise ValueError(f"compare: {name} can be read only once, expected a file, -m or -c")
    if SITE in (paths := os.environ.get("PYTHONPATH", "").split(os.pathsep)):  # within `tilecore run`
        os.environ["PYTHONPATH"] = os.pathsep.join(folder for folder in paths if folder != SITE)
    programs = {"plain": prepare(option, name, arguments)}
    programs["tilecore"] = prepare(option, name, arguments, "tilecore")
    found: dict[str, dict[str, list[float]]] = {side: {key: [] for key in KEYS} for side in programs}
    before = processor_seconds()
    for number in range(rounds):
        for side, program in programs.items():
            for key, value in zip(KEYS, measure(side, *program, shown=number == 0 and side == "plain"), strict=True):
                found[side][key].append(value)
    print_text(make_table(**found, others=describe_others(before)), sys.stderr)
    if path:
        write_json(path, found)


def measure(side: str, command: list[str], environment: dict[str, str], shown: bool) -> tuple[float, float, int, int]:
    """Run the program once, and return its numbers in the order of `KEYS`; what it prints is `shown`, or not."""
    pid, begin = 0, perf_counter()
    with tempfile.TemporaryFile() as errors:
        actions: list[Any] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        if not shown:  # `errors` first: it has number 0 or 1 if this command was started without such a stream
            actions.insert(0, (os.POSIX_SPAWN_DUP2, errors.fileno(), 2))
            actions.append((os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0))
        try:
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # handlers wait for `pid`
            try:
                ignored = [signal.SIGPIPE, signal.SIGXFSZ]  # by Python, in this process
                pid = os.posix_spawn(
                    command[0], command, environment, file_actions=actions, setsigmask=mask, setsigdef=ignored
                )
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            _, status, usage = os.wait4(pid, 0)
        except KeyboardInterrupt as error:
            if pid:
                end(pid, error.args[0])
            raise
        seconds = perf_counter() - begin
        errors.seek(0)
        text = errors.read().decode(errors="replace")
    if code := os.waitstatus_to_exitcode(status):
        code = code if code > 0 else 128 - code
        print_text(f"{text}tilecore: the program ended with exit code {code} ({side}); nothing is compared", sys.stderr)
        sys.exit(code)
    if refused := re.search("^tilecore: (.*); the program runs with NumPy's own$", text, re.M):
        raise ValueError(refused[1])
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_minflt + usage.ru_majflt, peak


def end(pid: int, number: int) -> None:
    """End the program by this signal, unless it ends by itself: Ctrl-C in a terminal reaches the program too."""
    with suppress(ChildProcessError):  # it has ended
        for seconds, following in ((1, number), (5, signal.SIGKILL), (60, 0)):
            until = monotonic() + seconds
            while monotonic() < until:
                if os.waitpid(pid, os.WNOHANG)[0]:
                    return
                sleep(0.01)
            os.kill(pid, following)


def make_table(plain: dict[str, list[float]], tilecore: dict[str, list[float]], others: str) -> str:
    rounds = len(plain["seconds"])
    lines = ["", f"tilecore compare: {rounds} runs each, by turns: the median (lowest to highest)", ""]
    lines.append(f"{'':14}{'plain':>26}{'tilecore':>26}{'ratio':>8}")
    for key, (name, unit) in KEYS.items():
        a, b = plain[key], tilecore[key]
        clear = rounds > 2 and (max(a) < min(b) or max(b) < min(a))
        ratio = f"{median(a) / max(median(b), 1e-9):,.2f}x"
        lines.append(f"{name:14}{span(a, unit):>26}{span(b, unit):>26}{ratio:>8}{' clear' * clear}")
    lines += ["", "ratio: plain / tilecore; clear: all runs of one side are below all of the other"]
    if median(plain["seconds"]) < 2:
        lines.append("Such short runs also show the start of tilecore, 0.05 to 0.2 s.")
    return "\n".join(lines + [others] * bool(others))


def span(values: Sequence[float], unit: str) -> str:
    """The median, and the lowest and highest value.

    >>> span([0.9, 1.0, 1.1], "s"), span([300, 100, 100], ""), span([2e3, 1e3, 3e3], "B")
    ('1 s (900 ms to 1.1 s)', '100 (100 to 300)', '2 kB (1 to 3 kB)')
    """
    middle, low, high = (with_unit(value, unit).strip() for value in (median(values), min(values), max(values)))
    return f"{middle} ({low.split()[0] if low.split()[1:] == high.split()[1:] else low} to {high})"
