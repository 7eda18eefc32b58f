"""Blocks of `tilecore.profile`: nested, in threads and children, beside signals. test_profile.py has the figures."""

import contextlib
import gc
import json
import os
import re
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import StringIO
from unittest import mock

import numpy as np
import pytest
from numpy import tile

import tilecore
from tilecore._profile import measure as module

pytestmark = pytest.mark.quick


def measured():
    with mock.patch.object(module, "place_of_caller", side_effect=module.place_of_caller) as asked:
        tile([1], 2)
    return asked.called


@pytest.mark.whole_process  # a block sees the calls of every thread
def test_the_table_as_data():
    with (block := tilecore.profile()) as table:
        np.tile([1], 2)
        assert not table
    assert [site["calls"] for site in json.loads(json.dumps(table))["sites"]] == [1]
    with pytest.raises(RuntimeError, match="already used"), block:
        pass


@pytest.mark.whole_process
def test_a_block_that_is_dropped_ends():
    block = tilecore.profile()
    block.__enter__()
    del block
    assert not measured() and not module.active


def test_repeats_nested_deeply_are_not_looked_through(monkeypatch):
    """Each level doubles the number of lists to look through."""
    reps, asked, is_plain = (1, 2), [], module.is_plain
    monkeypatch.setattr(module, "is_plain", lambda *given, **named: asked.append(given) or is_plain(*given, **named))
    for _ in range(10):
        reps = (reps, reps)
    with tilecore.profile(), pytest.raises((TypeError, ValueError)):
        np.tile(np.arange(3), reps)
    assert len(asked) < 10


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of files, closed without a `with`
def test_a_handler_that_raises_leaves_nothing(raised_between, monkeypatch):
    """Between any two instructions of a block's begin and end."""

    def call():
        monkeypatch.setattr(sys, "stderr", StringIO())
        with tilecore.profile():
            pass

    own = (os.path.dirname(tilecore.__file__), contextlib.__file__)
    for _ in raised_between(call, lambda code: code.co_filename.startswith(own)):
        assert not measured() and not module.active


@pytest.mark.whole_process
def test_blocks_nest_and_see_every_thread_and_name(capfd):
    """Also nested, with an exception, with calls from other threads, and by a name that was bound before."""
    with tilecore.profile():
        tile([1], 2)
        with pytest.raises(KeyError, match="its own"), tilecore.profile(), ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: np.tile([1], 3)).result()
            raise KeyError("its own")
        inner = capfd.readouterr().err
        np.tile([1], 4)
    for shown, places in ((inner, 1), (capfd.readouterr().err, 3)):
        assert shown.startswith("\ntilecore profile: numpy.tile took ")
        assert shown.count("test_profile_blocks.py:") == places
    with tilecore.replace_numpy_tile(), tilecore.profile():
        assert measured() and not tile([1, 2], 2).flags.owndata
    assert "was not called" not in capfd.readouterr().err
    with tilecore.profile(), tilecore.replace_numpy_tile():
        assert not measured() and tile([1, 2], 2).flags.owndata
    assert "was not called" in capfd.readouterr().err


# os.times() counts in hundredths of a second.
POOL = """
import multiprocessing, time
def work(n):
    while time.process_time() < 0.1: sum(range(10**4))
    return numpy.tile([n], 2).tolist()
context = multiprocessing.get_context("fork")
def pooled(close):
    with tilecore.profile():
        pool = context.Pool(1)
        assert pool.map(work, [1]) == [[1, 1]]
        if close: pool.close(), pool.join()
    pool.terminate()
sys.stderr = sys.stdout
with tilecore.profile():
    if not (child := os.fork()): numpy.tile([1], 2), sys.exit(0)
    os.waitpid(child, 0), numpy.tile([1], 2)
pooled(True), pooled(False)
def block():
    with tilecore.profile(): numpy.tile([1], 2)
forked(block)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_children_of_a_block(program):
    """They are not measured, which the table says, and print no table of their parent's."""
    tables = [re.sub(r"\s+", " ", text) for text in program(POOL).split("\ntilecore profile: ")[1:]]
    begin = "numpy.tile was not called in this process Child processes took "
    assert len(tables) == 4 and [text.startswith(begin) for text in tables] == [False, True, True, False]
    assert "an unknown time, and are not measured. To measure" in tables[2] and "numpy.tile took" in tables[3]


def test_tilecore_imports_it_when_it_is_used(program):
    program("assert not [name for name in sys.modules if name.startswith('tilecore._profile.')]")


@pytest.mark.process
@pytest.mark.whole_process
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals")
def test_signal_handlers_may_profile_and_raise(capfd):
    """A handler that profiles waits for no lock; one that raises leaves the next measurement as it was."""

    class Stop(Exception):
        pass

    def handler(number, frame):
        with tilecore.profile():
            pass
        raise Stop

    before = signal.signal(signal.SIGALRM, handler)
    gc.disable()  # an exception in a callback of the collector would be lost
    try:
        for _ in range(30):
            with suppress(Stop), tilecore.profile():
                signal.setitimer(signal.ITIMER_REAL, 0.002)
                end = time.monotonic() + 30
                while time.monotonic() < end:
                    np.tile(np.arange(3), 2)
                pytest.fail("what the handler raised is gone")
    finally:
        gc.enable()
        signal.signal(signal.SIGALRM, before)
    capfd.readouterr()
    with tilecore.profile():
        np.tile(np.arange(3), 2)
    assert "numpy.tile took" in capfd.readouterr().err


def test_without_standard_error_there_is_no_table(capfd, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with tilecore.profile():
        np.tile(np.arange(3), 2)
    assert capfd.readouterr() == ("", "")


def test_no_python_code_runs_when_a_measured_result_is_freed():
    called = []
    with tilecore.profile():
        result = np.tile(np.zeros(50_000), 2)
        sys.setprofile(lambda frame, event, argument: called.append(event))
        del result
        sys.setprofile(None)
    assert "call" not in called and not module.kept
