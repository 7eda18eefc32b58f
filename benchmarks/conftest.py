"""`pytest benchmarks` runs a short selection, `pytest benchmarks --full` everything.

Call `pytest`, not `python -m pytest`: the latter would import the uncompiled checkout.

A test module has two functions. `choose(kind, full)` gives the parameters of each test: a workload, and the name of a
case. `prepare(kind, workload, case)` returns what `timing.in_turn` samples, or raises an error, which fails the case:
ImportError or SkipTest skips it. The cases of one test and one workload take turns: the first that runs has all of them
timed, and each records its own samples by the fixture `record`. Ctrl-C or SIGTERM ends a run, which is then written.
"""

import math
import signal
import sys
import warnings
from pathlib import Path
from unittest import SkipTest

# pytest's importlib mode puts nothing on the path; the benchmarks share a few plain modules.
sys.path.insert(0, str(Path(__file__).parent))

import machine
import pytest
from timing import CASE_SECONDS, in_turn

BYTES_A_SECOND = 2e8  # of output that is verified and then timed a few times

measured = {}  # of the group that runs: samples, or why there are none, by test


class Clock:
    """A clock for pytest-benchmark: it repeats times that were measured before."""

    now = 0.0

    def __call__(self):
        return self.now

    def advance(self, seconds):
        self.now += seconds


CLOCK = Clock()


def kind(item):
    return item.originalname.removeprefix("test_")


def case_seconds(item):
    """How long its case is timed; a module may say so by kind, in CASE_SECONDS."""
    return getattr(item.module, "CASE_SECONDS", {}).get(kind(item), CASE_SECONDS)


def in_group(item):
    """Items of equal groups take turns."""
    return item.module, item.originalname, item.callspec.params["workload"]


class Guarded:
    """A call that takes turns with others: its first error ends it, and not the others."""

    def __init__(self, call):
        self.call, self.error = call, None

    def sample(self):
        try:
            return math.nan if self.error else self.call.sample()
        except Exception as error:
            self.error = error
            return math.nan


def measure(items):
    failed, calls = {}, {}
    for item in items:
        try:
            calls[item.nodeid] = Guarded(item.module.prepare(kind(item), **item.callspec.params))
        except Exception as error:  # of one case: the others are timed
            failed[item.nodeid] = error
    found = in_turn(calls, seconds=case_seconds(items[0]))
    return found | {name: guarded.error for name, guarded in calls.items() if guarded.error} | failed


@pytest.fixture
def record(request, workload, case):
    """Times the test's case in turn with the rest of its group, and records its samples."""
    item = request.node
    if item.nodeid not in measured:
        measured.clear()
        measured.update(measure([other for other in request.session.items if in_group(other) == in_group(item)]))
    samples = measured[item.nodeid]
    if isinstance(samples, (ImportError, SkipTest)):
        pytest.skip(str(samples))
    if isinstance(samples, Exception):
        raise samples
    benchmark = request.getfixturevalue("benchmark")  # late, for it complains in skipped tests
    benchmark.group = f"{kind(item)}: {workload.name}"
    benchmark.extra_info["output bytes"] = workload.nbytes
    waiting, CLOCK.now = iter(samples), 0.0
    benchmark.pedantic(lambda: CLOCK.advance(next(waiting)), rounds=len(samples))


class Progress:
    """Estimates how long a run takes, and notes how busy the machine was."""

    def __init__(self):
        self.elsewhere = machine.Elsewhere()

    def pytest_report_collectionfinish(self, items):
        seconds = sum(case_seconds(item) + item.callspec.params["workload"].nbytes / BYTES_A_SECOND for item in items)
        return f"takes about {seconds / 60:.1f} minutes; Ctrl-C ends it and keeps what is there"

    def pytest_benchmark_update_machine_info(self, machine_info):
        machine_info.update(machine.describe())
        if share := self.elsewhere.share():
            machine_info[machine.Elsewhere.NAME] = share


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="benchmarks: every case")


def pytest_configure(config):
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends a run as Ctrl-C does
    config.pluginmanager.register(Progress())
    # Of a run that is ended before its first case; otherwise an error, as any warning.
    warnings.filterwarnings("ignore", "Not saving anything")


def pytest_generate_tests(metafunc):
    chosen = list(metafunc.module.choose(kind(metafunc.definition), metafunc.config.getoption("full")))
    ids = [f"{workload.name}-{case}" for workload, case in chosen]
    metafunc.parametrize(["workload", "case"], chosen, ids=ids)


def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if not item.get_closest_marker("skip")]  # of no cases
    for item in items:
        item.add_marker(pytest.mark.benchmark(timer=CLOCK))
