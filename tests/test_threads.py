"""How many threads: what was chosen, what the machine has, what a child process may use."""

import contextvars
import os
import sys
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tilecore
from tilecore._core.resources import machine, process_state

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("settings_stay")]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="not on this system")
def test_the_default_is_every_processor_that_may_be_used():
    """The number was found at the import; a later test has it found anew."""
    usable = min(len(os.sched_getaffinity(0)), machine.cpu_quota(), 8)
    assert tilecore.get_num_threads() == int(os.environ.get("TILECORE_NUM_THREADS") or usable)


def test_threads_of_process_and_context():
    before = tilecore.get_num_threads()
    tilecore.set_num_threads(5)
    assert tilecore.get_num_threads() == 5
    with tilecore.num_threads(2):
        assert tilecore.get_num_threads() == 2
        with tilecore.num_threads(np.int8(3)):
            assert tilecore.get_num_threads() == 3
        # Another thread is another context; without the GIL, Python gives it a copy of this one from 3.14 on.
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(contextvars.Context().run, tilecore.get_num_threads).result() == 5
        assert tilecore.get_num_threads() == 2
    assert tilecore.get_num_threads() == 5
    tilecore.set_num_threads(None)
    assert tilecore.get_num_threads() == before


def test_num_threads_decorates_functions():
    assert repr(tilecore.num_threads(2)) == "tilecore.num_threads(2)"

    @tilecore.num_threads(3)
    def chosen(depth):
        return tilecore.get_num_threads() if depth == 0 else chosen(depth - 1)

    before = tilecore.get_num_threads()
    assert chosen(0) == chosen(5) == 3
    assert tilecore.get_num_threads() == before


def test_num_threads_decorates_no_function_that_runs_later():
    """The block would end before its code runs."""
    exec("def generator(): yield\nasync def coroutine(): pass\nasync def both(): yield", functions := {})
    for function in map(functions.get, ("generator", "coroutine", "both")):
        with pytest.raises(TypeError, match="^num_threads: .*; use `with` inside it$"):
            tilecore.num_threads(1)(function)


def test_num_threads_left_in_another_context():
    """An async generator that was broken off, say, is closed by the event loop in a context of its own."""

    def numbers():
        with tilecore.num_threads(3):
            yield tilecore.get_num_threads()

    before = tilecore.get_num_threads()
    for _ in range(2):
        broken_off = numbers()
        assert contextvars.copy_context().run(next, broken_off) == 3
        with pytest.raises(KeyError, match="broken off"):
            broken_off.throw(KeyError("broken off"))
        assert tilecore.get_num_threads() == before


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux has affinity masks")
def test_the_default_follows_the_affinity(program):
    """The affinity of the calling thread counts: other threads may have their own."""
    program("""
before, all_of_them = tilecore.get_num_threads(), os.sched_getaffinity(0)
assert 1 <= before <= min(8, len(all_of_them))
os.sched_setaffinity(0, {min(all_of_them)})
assert tilecore.get_num_threads() == 1
def work():
    os.sched_setaffinity(0, all_of_them)
    assert tilecore.get_num_threads() == before
together(work)
assert tilecore.get_num_threads() == 1
os.sched_setaffinity(0, all_of_them)
assert tilecore.get_num_threads() == before
""")


@pytest.mark.parametrize(("groups", "files", "cpus", "memory"), [
    ("", {}, sys.maxsize, None),
    ("0::/a/b", {"a/cpu.max": "150000 100000"}, 2, None),
    ("0::/a", {"cpu.max": "max 100000", "a/memory.max": "4096"}, sys.maxsize, 4096),
    ("0::/a", {"memory.max": "8192", "memory.high": "max", "a/memory.high": "4096"}, sys.maxsize, 4096),
    ("3:cpu,cpuacct:/x\n5:memory:/y", {
        "cpu/x/cpu.cfs_quota_us": "300000", "cpu/x/cpu.cfs_period_us": "100000", "cpu/cpu.cfs_quota_us": "-1",
        "cpu/cpu.cfs_period_us": "100000", "memory/y/memory.limit_in_bytes": "8192",
        "memory/memory.limit_in_bytes": "9223372036854771712",
    }, 3, 8192),
    ("3:cpu,cpuacct:/x", {"cpu,cpuacct/x/cpu.cfs_quota_us": "200000", "cpu,cpuacct/x/cpu.cfs_period_us": "100000"},
     2, None),
    ("no number\n0::/", {"cpu.max": "150000 \u00b2", "memory.max": "\u00b2"}, sys.maxsize, None),
    ("0::/", {"cpu.max": f"{'9' * 5000} 100000", "memory.max": "9" * 5000}, sys.maxsize, None),
    ("0::/my jobs/\x85 a\n", {"my jobs/\x85 a/memory.max": "4096\n"}, sys.maxsize, 4096),
])  # fmt: skip
def test_limits_of_control_groups_are_read(monkeypatch, groups, files, cpus, memory):
    files = {"/proc/self/cgroup": groups} | {f"/sys/fs/cgroup/{path}": text for path, text in files.items()}
    monkeypatch.setattr(machine, "read_text", lambda path: files.get(path, ""))
    assert machine.cpu_quota() == cpus
    assert memory is None or machine.physical_memory() == memory


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_call_opens_no_files(program):
    """Only C opens any, so it does not matter what a program has put in the place of `open`."""
    program("""
import builtins, io
from tilecore._process import processor_seconds
large = numpy.ones(2**20, "u1")
def refuse_to_open(*args, **keywords): raise PermissionError
def hook(event, args): assert event != "open", args
builtins.open = io.open = os.open = refuse_to_open
sys.addaudithook(hook)
def work():
    assert (tilecore.tile(large, 2) == 1).all()
    assert tilecore.get_num_threads() == 2 and processor_seconds()
work()
forked(work)
""", TILECORE_NUM_THREADS=" 2")  # fmt: skip


@pytest.mark.skipif(not os.path.exists("/proc/meminfo"), reason="not on this system")
def test_the_machines_memory_is_known(monkeypatch):
    with open("/proc/meminfo") as file:
        assert 0 < machine.physical_memory() <= int(file.readline().split()[1]) << 10  # MemTotal
    monkeypatch.setattr(sys, "maxsize", 2**20)  # as in a process of 32 bits, which has less than the machine
    assert machine.physical_memory() == 2**20


@pytest.fixture
def asking_anew():
    process_state.forget_process()
    yield
    process_state.forget_process()


def test_while_another_thread_imports_multiprocessing(monkeypatch, asking_anew):
    """Its modules are in sys.modules before their names are defined."""

    def decided():
        process_state.forget_process()
        return process_state.in_multiprocessing_child()

    module = types.ModuleType("multiprocessing.process")
    monkeypatch.setitem(sys.modules, "multiprocessing.process", module)
    assert not decided()
    exec("def current_process(): return _current_process", module.__dict__)
    assert not decided()
    module._current_process = types.SimpleNamespace()
    module._current_process._parent_pid = 1
    assert decided()


def test_multiprocessing_is_asked_once(monkeypatch, asking_anew):
    """Without the GIL a fork() may find `sys.modules` locked, and then every result in the child hangs."""

    class Process(types.ModuleType):
        def __getattr__(self, name):
            asked.append(name)
            raise AttributeError(name)

    asked = []
    monkeypatch.setitem(sys.modules, "multiprocessing.process", Process("process"))
    x = np.ones(2**20, "u1")
    for _ in range(3):
        tilecore.tile(x, (40, 1))
    assert asked == ["_current_process"]


def test_one_object_entered_twice():
    """Nested, in several contexts, and left in an order of their own: what was there before comes back."""
    before, one = tilecore.get_num_threads(), tilecore.num_threads(1)
    with pytest.raises(KeyError), one:
        with one, tilecore.num_threads(3):
            assert tilecore.get_num_threads() == 3
        assert tilecore.get_num_threads() == 1
        raise KeyError
    assert tilecore.get_num_threads() == before

    contexts = [contextvars.copy_context() for _ in range(3)]
    for context in contexts:
        context.run(one.__enter__)
    for context in contexts:
        context.run(one.__exit__)
        assert context.run(tilecore.get_num_threads) == before
    other = tilecore.num_threads(3)
    one.__enter__(), other.__enter__(), one.__exit__()
    assert tilecore.get_num_threads() == 3
    other.__exit__()
    assert tilecore.get_num_threads() == before
    one.__exit__()  # never entered


def test_as_many_threads_as_one_can_say(oracle):
    tilecore.set_num_threads(10**30)
    a = np.arange(1 << 14, dtype="u1")
    assert tilecore.get_num_threads() == 256
    result = tilecore.tile(a, (1 << 12, 1))  # 64 MiB: several threads
    assert (result == a).all()
