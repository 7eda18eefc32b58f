"""How everything here is timed: calls take turns, and each sample lasts long enough for the clock.

`in_turn` takes whatever has a `sample()`, in seconds. Ratios are taken round by round, so that a
machine that drifts does so for all.
"""

import ctypes
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from timeit import Timer
from typing import Any

import tilecore

SAMPLE_SECONDS = 0.002  # the least that one sample lasts
SETTLE_SECONDS = 0.01  # some libraries' threads go on spinning for milliseconds after a call
CASE_SECONDS = 0.25  # for each call that takes turns, or more if the least rounds take longer
MIN_ROUNDS, MAX_ROUNDS = 5, 1000
KEPT_BYTES = 2**29  # the most that the results of one case take together, but for the last
TRIM = getattr(ctypes.pythonapi, "malloc_trim", lambda pad: None)  # glibc's


class Call:
    """A call that drops its result, and how often to make it in one sample."""

    def __init__(self, call: Callable[[], Any]):
        self.call, self.timer, self.times = call, Timer(call), 1
        while (taken := self.timer.timeit(self.times)) < SAMPLE_SECONDS:
            # Never more than tenfold, for the first calls of anything are slow.
            wanted = 1.2 * self.times * SAMPLE_SECONDS / taken
            self.times = int(min(10 * self.times, wanted)) + 1

    def sample(self) -> float:
        """Seconds a call, after one that is not timed."""
        time.sleep(SETTLE_SECONDS)
        self.call()
        return self.timer.timeit(self.times) / self.times


class WithThreads(Call):
    """A call with this many threads of PyTorch and tilecore; other calls have as many as before."""

    def __init__(self, call: Callable[[], Any], threads: int):
        super().__init__(call)
        self.threads = threads

    def sample(self) -> float:
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            with tilecore.num_threads(self.threads):
                return super().sample()
        finally:
            torch.set_num_threads(before)


class KeptCall:
    """A call that keeps its results, so that each is written to fresh memory."""

    def __init__(self, call: Callable[[], Any], nbytes: int):
        self.call, self.kept = call, []
        self.most = max(1, KEPT_BYTES // nbytes)

    def sample(self) -> float:
        time.sleep(SETTLE_SECONDS)
        if len(self.kept) >= self.most:
            self.kept.clear()
        tilecore.release_memory()
        TRIM(0)  # glibc keeps what was below 32 MiB, once it had such a block
        begin = time.perf_counter()
        self.kept.append(self.call())
        return time.perf_counter() - begin


class Program:
    """A process that prints the seconds of a call."""

    def __init__(self, file: str, *words: str):
        self.command = [sys.executable, file, *words]

    def run(self) -> list[float]:
        """All that it prints: the seconds first."""
        done = subprocess.run(self.command, capture_output=True, text=True, check=True)
        return [float(word) for word in done.stdout.split()]

    def sample(self) -> float:
        return self.run()[0]


def in_turn(calls: Mapping[str, Any], least: int = MIN_ROUNDS, seconds: float = CASE_SECONDS) -> dict[str, list[float]]:
    """As many samples of each as the time for all allows, `seconds` each; rounds in random order."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + seconds * len(calls)
    for count in range(MAX_ROUNDS):
        if count >= least and time.perf_counter() > end:
            break
        for name in random.sample(list(calls), len(calls)):  # memory that was just freed is the quickest to get
            found[name].append(calls[name].sample())
    return found
