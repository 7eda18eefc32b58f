"""How many threads: what was chosen, what the machine has, what a child process may use."""

import contextvars
import multiprocessing
import asyncio
import os
import subprocess
import sys
import threading
import types

import numpy as np
import pytest

import tilecore
from tilecore._core.resources import limits

pytestmark = pytest.mark.process


@pytest.fixture(autouse=True)
def restore():
    yield
    tilecore.set_num_threads(None)


def test_set_and_get():
    tilecore.set_num_threads(5)
    assert tilecore.get_num_threads() == 5
    with tilecore.num_threads(2):
        assert tilecore.get_num_threads() == 2
        with tilecore.num_threads(np.int8(3)):
            assert tilecore.get_num_threads() == 3
        seen = []
        # Python without the GIL gives a thread a copy of the context from 3.14 on, unless told otherwise.
        fresh, look = contextvars.Context(), lambda: seen.append(tilecore.get_num_threads())
        thread = threading.Thread(target=fresh.run, args=(look,))
        thread.start()
        thread.join()
        assert seen == [5]  # another thread is another context
        assert tilecore.get_num_threads() == 2
    assert tilecore.get_num_threads() == 5


@pytest.mark.whole_process
@pytest.mark.quick
@pytest.mark.parametrize(
    ("n", "kind"), [(0, ValueError), (-1, ValueError), (1.0, TypeError), ("2", TypeError), (None, TypeError)]
)
def test_refused(n, kind):
    before = tilecore.get_num_threads()
    if n is not None:
        with pytest.raises(kind, match="set_num_threads: expected"):
            tilecore.set_num_threads(n)
    with pytest.raises(kind, match="^num_threads: expected"):
        tilecore.num_threads(n)  # at the call, not only where the block begins
    assert tilecore.get_num_threads() == before


def test_of_a_decorated_function():
    @tilecore.num_threads(3)
    def chosen(depth):
        return tilecore.get_num_threads() if depth == 0 else chosen(depth - 1)

    before = tilecore.get_num_threads()
    assert chosen(0) == chosen(5) == 3
    assert tilecore.get_num_threads() == before


def test_back_to_the_default(program):
    code = """
before = tilecore.get_num_threads()
tilecore.set_num_threads(77)
assert tilecore.get_num_threads() == 77
tilecore.set_num_threads(None)
print(tilecore.get_num_threads(), before)
"""
    now, before = program(code).split()
    assert now == before != "77"
    assert program(code, TILECORE_NUM_THREADS="3").split() == ["3", "3"]


def test_left_in_another_context():
    """An async generator that was broken off, say, is closed by the event loop in a context of its own."""

    class Exit(Exception):
        pass

    def numbers():
        with tilecore.num_threads(3):
            yield tilecore.get_num_threads()

    before = tilecore.get_num_threads()
    for end in ("close", "throw"):
        broken_off = numbers()
        assert contextvars.copy_context().run(next, broken_off) == 3
        if end == "close":
            broken_off.close()
        else:
            with pytest.raises(Exit):
                broken_off.throw(Exit)
    assert tilecore.get_num_threads() == before


def run(code, tmp_path, **env):
    env = {**os.environ, **env}
    return subprocess.run([sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True)


def test_default_and_environment(tmp_path):
    code = "import tilecore; print(tilecore.get_num_threads())"
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert 1 <= int(run(code, tmp_path).stdout) <= min(8, cpus)
    assert run(code, tmp_path, TILECORE_NUM_THREADS="13").stdout.strip() == "13"
    for bad in ("0", "x", "-2", ""):
        assert (
            "ValueError: environment variable TILECORE_NUM_THREADS"
            in run(code, tmp_path, TILECORE_NUM_THREADS=bad).stderr
        )


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux has affinity masks")
def test_affinity(tmp_path):
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); import tilecore; print(tilecore.get_num_threads())"
    assert run(code, tmp_path).stdout.strip() == "1"


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux has affinity masks")
def test_the_default_follows_the_affinity(program):
    """Of the thread that asks: other threads may have processors of their own."""
    program("""
import threading
before, all_of_them = tilecore.get_num_threads(), os.sched_getaffinity(0)
os.sched_setaffinity(0, {min(all_of_them)})
assert tilecore.get_num_threads() == 1
seen = []
def work():
    os.sched_setaffinity(0, all_of_them)
    seen.append(tilecore.get_num_threads())
thread = threading.Thread(target=work)
thread.start()
thread.join()
assert seen == [before] and tilecore.get_num_threads() == 1
os.sched_setaffinity(0, all_of_them)
assert tilecore.get_num_threads() == before
""")


@pytest.mark.quick
@pytest.mark.parametrize(
    ("files", "cpus", "memory"),
    [
        ({}, sys.maxsize, None),
        ({"/proc/self/cgroup": "0::/a/b", "/sys/fs/cgroup/a/cpu.max": "150000 100000"}, 2, None),
        (
            {
                "/proc/self/cgroup": "0::/a",
                "/sys/fs/cgroup/cpu.max": "max 100000",
                "/sys/fs/cgroup/a/memory.max": "4096",
            },
            sys.maxsize,
            4096,
        ),
        (
            {
                "/proc/self/cgroup": "3:cpu,cpuacct:/x\n5:memory:/y",
                "/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "300000",
                "/sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000",
                "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
                "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
                "/sys/fs/cgroup/memory/y/memory.limit_in_bytes": "8192",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
            },
            3,
            8192,
        ),
        (
            {"/proc/self/cgroup": "0::/my jobs/\x85 a\n", "/sys/fs/cgroup/my jobs/\x85 a/memory.max": "4096\n"},
            sys.maxsize,
            4096,
        ),
    ],
)
def test_control_groups(monkeypatch, files, cpus, memory):
    monkeypatch.setattr(limits, "read_text", lambda path: files.get(path, ""))
    assert limits.cpu_quota() == cpus
    if memory is not None:
        assert limits.physical_memory() == memory


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_one_thread_in_multiprocessing_children(method, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing, sys, warnings\n"
        "warnings.simplefilter('error')\n"
        "import numpy as np, tilecore\n"
        "def work(_):\n"
        "    x = np.arange(700_000)\n"
        "    assert (tilecore.tile(x, 3) == np.concatenate([x] * 3)).all()\n"
        "    return tilecore.get_num_threads()\n"
        "if __name__ == '__main__':\n"
        "    work(0); tilecore.tile(np.zeros(700_000), 3, threads=2)\n"
        "    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:\n"
        "        print(pool.map(work, range(4)))\n"
    )
    env = {name: value for name, value in os.environ.items() if name != "TILECORE_NUM_THREADS"}
    done = subprocess.run([sys.executable, script, method], env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[1, 1, 1, 1]", done.stderr
    assert not done.stderr


@pytest.fixture
def asking_anew():
    limits.forget_process()
    yield
    limits.forget_process()


@pytest.mark.quick
def test_while_another_thread_imports_multiprocessing(monkeypatch, asking_anew):
    """Its modules are there before what they define."""

    def decided():
        limits.forget_process()
        return limits.in_multiprocessing_child()

    module = types.ModuleType("multiprocessing.process")
    monkeypatch.setitem(sys.modules, "multiprocessing.process", module)
    assert not decided()
    exec("def current_process(): return _current_process", module.__dict__)
    assert not decided()
    module._current_process = types.SimpleNamespace()
    exec("def parent_process(): return _parent_process", module.__dict__)
    assert not decided()
    module._parent_process = object()
    assert decided()


@pytest.mark.quick
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
    assert asked == ["_current_process", "_parent_process"]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_main_module_that_tiles_while_a_child_imports_it(method, tmp_path):
    """It is a child already, though multiprocessing does not yet say whose."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"there is no {method} here")
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing, sys, tilecore\n"
        "at_import = tilecore.get_num_threads()\n"
        "def work(_): return at_import, tilecore.get_num_threads()\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:\n"
        "        print(pool.map(work, range(1)))\n"
    )
    env = {name: value for name, value in os.environ.items() if name != "TILECORE_NUM_THREADS"}
    done = subprocess.run([sys.executable, script, method], env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[(1, 1)]", done.stderr


@pytest.mark.whole_process
@pytest.mark.quick
def test_sixteen_threads_and_every_setting():
    """Shared inputs, one plan, slices of one `out`, while others change what the process has chosen."""
    x = np.arange(3000, dtype="u2").reshape(60, 50)
    mebibyte = np.arange(2**17)
    plan = tilecore.TilePlan(x.shape, (3, 5), x.dtype)
    want, long = np.tile(x, (3, 5)), np.tile(mebibyte, (17, 1))
    out = np.zeros((16, *want.shape), x.dtype)
    limits = tilecore.get_max_bytes(), tilecore.get_recycle_limit()
    start, stop, wrong = threading.Barrier(18), threading.Event(), []

    def tiles(number):
        start.wait()
        for step in range(40):
            results = [
                tilecore.tile(x, (3, 5)) == want,
                plan.tile(x, out=out[number]) == want,
                plan.region(x, (10 + number, 20), (150, 240)) == want[10 + number : 150, 20:240],
                out[number] == want,
            ]
            if step % 20 == number:
                results.append(tilecore.tile(mebibyte, (17, 1), threads=2) == long)
                results.append(tilecore.tile(mebibyte, (34, 1))[17:] == long)
                results.append(tilecore.tile_mapped(mebibyte, (34, 1))[:17] == long)
            with tilecore.num_threads(number + 1):
                results.append(np.array(tilecore.get_num_threads() == number + 1))
            if not all(result.all() for result in results):
                wrong.append((number, step))

    def changes(number):
        start.wait()
        while not stop.is_set():
            tilecore.set_num_threads(1 + number)
            tilecore.set_max_bytes(2**40 + number)
            tilecore.set_recycle_limit((50 + 50 * number) * 2**20)
            tilecore.release_memory()
            if not (
                tilecore.get_num_threads() in (1, 2)
                and tilecore.get_max_bytes() in (2**40, 2**40 + 1)
                and tilecore.get_recycle_limit() in (50 * 2**20, 100 * 2**20)
                and tilecore.recycled_bytes() >= 0
            ):
                wrong.append("settings")

    workers = [threading.Thread(target=tiles, args=(number,)) for number in range(16)]
    others = [threading.Thread(target=changes, args=(number,)) for number in range(2)]
    for thread in workers + others:
        thread.start()
    for thread in workers:
        thread.join()
    stop.set()
    for thread in others:
        thread.join()
    assert tilecore.recycled_bytes() <= tilecore.get_recycle_limit()
    tilecore.set_max_bytes(limits[0])
    tilecore.set_recycle_limit(limits[1])
    assert not wrong
    assert (out == want).all()


def test_on_a_small_stack(tmp_path):
    """A thread's least is 32 KiB, of which a block of scratch would be all."""
    code = """
import threading, numpy as np, tilecore
threading.stack_size(2**17)
x = np.arange(2**20, dtype="u1")
deep = np.ones((1,) * 44 + (2,) * 20, "u1")
def work():
    tilecore.tile(x, (40, 1), threads=3)
    y = tilecore.tile(deep, (1,) * 60 + (2,) * 4)
    assert y.all()
    tilecore.tile(deep.transpose(range(63, -1, -1)), (2,) * 5 + (1,) * 59)
    tilecore.tile_region(deep, (3,) * 4 + (1,) * 60, (0,) * 64, (2,) + y.shape[1:60] + (1,) * 4)
    tilecore.tile_mapped(x, (40, 1))
    done.append(True)
done = []
thread = threading.Thread(target=work)
thread.start()
thread.join()
assert done
"""
    done = run(code, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.quick
def test_one_object_entered_twice():
    """Nested, in several contexts, and left in an order of their own: what was there before comes back."""
    before, one = tilecore.get_num_threads(), tilecore.num_threads(1)
    with pytest.raises(KeyError), one:
        with one, tilecore.num_threads(3):
            assert tilecore.get_num_threads() == 3
        assert tilecore.get_num_threads() == 1
        raise KeyError
    assert tilecore.get_num_threads() == before

    async def job():
        with one:
            await asyncio.sleep(0.001)
        return tilecore.get_num_threads()

    async def jobs():
        return await asyncio.gather(*[job() for _ in range(3)])

    assert asyncio.run(jobs()) == [before] * 3
    other = tilecore.num_threads(3)
    one.__enter__(), other.__enter__(), one.__exit__(), other.__exit__()
    assert tilecore.get_num_threads() == before
    one.__exit__()  # never entered
