"""For profiles and the command line: clocks, page faults, child and other processes; text for standard error."""

import os
import sys
from collections.abc import Callable
from time import perf_counter, thread_time
from traceback import walk_tb
from typing import TextIO

from tilecore._core.request.errors import pass_on
from tilecore._core.resources.machine import is_number, read_text
from tilecore._units import with_unit

# Start methods of multiprocessing for which the system does not report the children's times to this process.
UNTIMED = {"multiprocessing.popen_forkserver", "multiprocessing.popen_spawn_win32"}

BUSY = 0.3  # other processes are mentioned if they had a larger part of the processors' time,
LEAST_SECONDS = 0.5  # and that was at least this: the system counts in ticks of 10 ms
FAULTS = 20_000  # page faults in a second of processor time: they take 1 % to 7 % of it, which a ratio may hide in

# Modules whose errors are a report's own: all others are of a signal handler, or of the program's code.
OWN = {"tilecore", "numpy", "IPython"} | sys.stdlib_module_names


def choose_clock() -> Callable[[], float]:
    """A thread's processor time, which excludes other processes; or elapsed time, if the former has steps of 10 ms."""
    now, end = thread_time(), perf_counter() + 0.02
    while os.name != "nt" and perf_counter() < end:  # Windows, WSL 1 and gVisor have such steps
        before, now = now, thread_time()
        if before < now < before + 0.001:
            return thread_time
    return perf_counter


def page_faults() -> int:
    """This process' page faults until now; 0 on Windows, which does not count them."""
    if sys.platform == "win32":
        return 0
    from resource import RUSAGE_SELF, getrusage

    usage = getrusage(RUSAGE_SELF)
    return usage.ru_minflt + usage.ru_majflt


def explain_failure(error: Exception) -> str:
    """The words for an error of a report. What a signal handler or the program's code raised is raised again."""
    for frame, _ in walk_tb(error.__traceback__):
        if str(frame.f_globals.get("__name__")).partition(".")[0] not in OWN:
            raise error
    return " ".join(f"{type(error).__name__}: {error}".split())


def print_text(text: str, file: TextIO | None) -> None:
    """Print the text, or nothing if the file is closed or the disk is full."""
    plain = text.encode("ascii", "backslashreplace").decode()  # for a stream that cannot encode the text
    for each in (text, plain):
        try:
            if not getattr(file, "closed", file is None):  # for None, print takes stdout
                print(each, file=file, flush=hasattr(file, "flush"))
            return
        except UnicodeEncodeError:
            continue
        except (OSError, ValueError) as error:
            if getattr(error, "errno", None) is None:  # what a signal handler raises has no number
                pass_on(error)
            return


def children_seconds(since: tuple[float, ...]) -> str:
    """The processor time of child processes since an earlier `os.times()`, as text; "" for less than 1 % of our own."""
    multiprocessing = sys.modules.get("multiprocessing")
    if UNTIMED & sys.modules.keys() or (multiprocessing and multiprocessing.active_children()):
        return "an unknown time"
    own, children = (sum(os.times()[n : n + 2]) - sum(since[n : n + 2]) for n in (0, 2))
    return with_unit(children, "s") if children > 0.01 * own else ""


def processor_seconds() -> tuple[float, float]:
    """The processor seconds of other processes, and those of all processors, idle ones too; zeros except on Linux."""
    ticks = read_text("/proc/stat").partition("\n")[0].split()[1:9]
    if not ticks or not all(map(is_number, ticks)):
        return 0.0, 0.0
    seconds = [int(count) / os.sysconf("SC_CLK_TCK") for count in ticks]
    idle = sum(seconds[3:5])  # waiting for a disk included
    return sum(seconds) - idle - sum(os.times()[:4]), sum(seconds)


def describe_others(since: tuple[float, float]) -> str:
    """A sentence if other processes took much time; `since` is an earlier `processor_seconds()`."""
    others, every = (now - then for now, then in zip(processor_seconds(), since, strict=True))
    if every < LEAST_SECONDS or others <= BUSY * every:
        return ""
    return f"Other processes took {others / every:.0%} of the processors' time: times may be too long."
