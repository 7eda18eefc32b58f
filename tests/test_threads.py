"""How many threads: what was chosen, what the machine has, what a child process may use."""

import multiprocessing
import os
import subprocess
import sys
import threading
import types

import numpy as np
import pytest

import tilecore
from tilecore import _limits


@pytest.fixture(autouse=True)
def restore():
    before = tilecore._threads._process
    yield
    tilecore._threads._process = before


def test_set_and_get():
    tilecore.set_num_threads(5)
    assert tilecore.get_num_threads() == 5
    with tilecore.num_threads(2):
        assert tilecore.get_num_threads() == 2
        with tilecore.num_threads(np.int8(3)):
            assert tilecore.get_num_threads() == 3
        seen = []
        thread = threading.Thread(target=lambda: seen.append(tilecore.get_num_threads()))
        thread.start()
        thread.join()
        assert seen == [5]  # another thread is another context
        assert tilecore.get_num_threads() == 2
    assert tilecore.get_num_threads() == 5


@pytest.mark.parametrize(
    ("n", "kind"),
    [(0, ValueError), (-1, ValueError), (1.0, TypeError), ("2", TypeError), (None, TypeError)],
)
def test_refused(n, kind):
    before = tilecore.get_num_threads()
    with pytest.raises(kind, match="set_num_threads: expected"):
        tilecore.set_num_threads(n)
    with pytest.raises(kind, match="num_threads: expected"), tilecore.num_threads(n):
        pass
    assert tilecore.get_num_threads() == before


def run(code, tmp_path, **env):
    env = {**os.environ, **env}
    return subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True
    )


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


@pytest.mark.parametrize(
    ("files", "cpus", "memory"),
    [
        ({}, 64, None),
        ({"/proc/self/cgroup": "0::/a/b", "/sys/fs/cgroup/a/cpu.max": "150000 100000"}, 2, None),
        (
            {
                "/proc/self/cgroup": "0::/a",
                "/sys/fs/cgroup/cpu.max": "max 100000",
                "/sys/fs/cgroup/a/memory.max": "4096",
            },
            64,
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
    ],
)
def test_control_groups(monkeypatch, files, cpus, memory):
    monkeypatch.setattr(_limits, "read_words", lambda path: files.get(path, "").split())
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)), raising=False)
    assert _limits.available_cpus() == cpus
    if memory is not None:
        assert _limits.physical_memory() == memory


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
    done = subprocess.run(
        [sys.executable, script, method], env=env, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "[1, 1, 1, 1]", done.stderr
    assert not done.stderr


def test_while_another_thread_imports_multiprocessing(monkeypatch):
    """Its modules are there before what they define."""
    module = types.ModuleType("multiprocessing.process")
    monkeypatch.setitem(sys.modules, "multiprocessing.process", module)
    assert not _limits.in_multiprocessing_child()
    exec("def parent_process(): return _parent_process", module.__dict__)
    assert not _limits.in_multiprocessing_child()
    module._parent_process = object()
    assert _limits.in_multiprocessing_child()
