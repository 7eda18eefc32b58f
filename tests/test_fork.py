"""Processes: fork while others tile, pools of every start method, other programs. No hang, no warning of threads."""

import os
import sys

import pytest

pytestmark = [pytest.mark.process, pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")]


START = """
x = np.arange(2**20, dtype="u1")        # 1 MiB

def all_kinds(value):
    y = tilecore.tile(x + np.uint8(value), (12, 1), threads=3)      # recycled
    assert (y[::5] == x + np.uint8(value)).all()
    y[3] = 0
    out = np.empty_like(y)
    tilecore.tile(y[:6], (2, 1), out, threads=2)
    assert not out[3].any() and not out[9].any() and (out[5] == y[5]).all()
"""


def test_fork_while_others_tile(program):
    """The child can tile, and keep and release memory, whatever the other threads were doing. Python warns of them."""
    program(
        """
stop = threading.Event()

def work(value):
    while not stop.is_set():
        all_kinds(value)
        if value == 0: tilecore.release_memory()
        if value == 1: tilecore.set_recycle_limit(2**26 if tilecore.get_recycle_limit() > 2**26 else 2**28)

def forks():
    try:
        for _ in range(8):
            forked(lambda: all_kinds(99))
            forked(lambda: forked(lambda: all_kinds(98)))
    finally: stop.set()

together(forks, *(lambda value=value: work(value) for value in range(3)))
all_kinds(5)
""", "-W", "ignore:This process:DeprecationWarning")  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2])
def test_a_handler_forks_in_the_midst_of_a_call(threads, program):
    """Parent and child each write the rest, and can tile before that, in the handler."""
    program(f"""
out, pids = np.zeros((150, 2**20), "u1"), []

def handler(signum, frame):
    assert {threads} > 1 or not (out == x).all()     # a worker may have written all
    pids.append(os.fork())
    all_kinds(7)

signal.signal(signal.SIGINT, handler)
interrupted(tilecore.tile, x, (150, 1), out, threads={threads})
assert (out == x).all() and len(pids) == 1
if pids[0]: assert os.waitpid(pids[0], 0)[1] == 0
""")


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc, and only Linux recycles")
def test_no_thread_of_ours_lives_at_a_fork(program):
    """Workers end, and so does the thread that waits to release idle memory. Python counts threads, and would warn."""
    program("""
def work(number):
    assert len(threads()) == 1
    if number % 10 == 0: all_kinds(7)
tilecore.set_recycle_limit(2**30)
out = np.ones((16, 2**20), "u1")
for number in range(20):
    tilecore.tile(x, (100, 1), threads=1)       # and dropped at once
    tilecore.tile(x, (16, 1), out, threads=4)
    assert len(threads()) == 5 and tilecore.recycled_bytes() == 100 * 2**20 and (out == x).all()
    forked(lambda: work(number))
    assert len(threads()) == 1 and tilecore.recycled_bytes() == 64 * 2**20
""")


@pytest.mark.parametrize("library, method, limit", [
    *[("multiprocessing", *given) for given in (("fork", ""), ("fork", "256M"), ("spawn", "256M"), ("forkserver", ""))],
    *[(library, method, "") for library in ("billiard", "multiprocess") for method in ("fork", "spawn")],
])  # fmt: skip
def test_a_child_of_a_pool_has_one_thread_and_less_memory(library, method, limit, program):
    """A child has one thread, and keeps an eighth of the idle memory, unless the user chose: from its import on.

    Celery and pathos have forks of multiprocessing.
    """
    pytest.importorskip(library)
    program(f"""
import {library}
at_import = tilecore.get_num_threads()
def work(value):
    all_kinds(value)
    found = [at_import, tilecore.get_num_threads(), tilecore.get_recycle_limit()]
    tilecore.set_recycle_limit(found[2] + 2**20)
    assert tilecore.get_recycle_limit() == found[2] + 2**20
    tilecore.set_recycle_limit(found[2])
    return *found, tilecore.tile(np.full(2**20, value, "u1"), (3, 1))

if __name__ == "__main__":
    default = tilecore.get_recycle_limit()
    tilecore.set_recycle_limit(2**30)       # a forked child inherits it, if its parent has chosen
    expected = [1, 1, default // 8 if not "{limit}" else 2**30 if "{method}" == "fork" else 2**28]
    all_kinds(0)
    kept, at_import = tilecore.tile(x, (40, 1)), 1
    with {library}.get_context("{method}").Pool(2) as pool:
        for value, (*found, y) in enumerate(pool.imap(work, range(4))):
            assert found == expected and y.shape == (3, 2**20) and (y == value).all(), found
        pool.close()
        pool.join()
    assert (kept == x).all()
    all_kinds(0)
""", TILECORE_RECYCLE_BYTES=limit)  # fmt: skip


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="descriptors are listed in /proc")
def test_other_programs_are_started_while_others_tile(program):
    """Programs that are started by fork and exec inherit no descriptor: `tile_mapped` has one while it writes."""
    program("""
import subprocess
stop = threading.Event()
def work():
    while not stop.is_set(): tilecore.tile_mapped(x, (40, 1))
list_files = [sys.executable, "-I", "-S", "-c", "import os; print(*[os.readlink(f'/proc/self/fd/{n}') for n in "
              "os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{n}')])"]
def look():
    try:
        for _ in range(6):
            assert "tilecore" not in subprocess.check_output(list_files, close_fds=False, text=True)
    finally: stop.set()
together(work, look)
""")
