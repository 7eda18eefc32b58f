"""The workers that write large results: made when wanted, parked between calls, gone with the process."""

import os
import platform
import sys
from functools import partial
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

HERE = Path(__file__).parent

START = """
def workers(): return threads() - {os.getpid()}
def more(): return len(threads() - before)
before = threads()
x = numpy.arange(2**18, dtype="u1")
out = numpy.empty((64, 2**18), "u1")
"""

needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="threads are counted in /proc")


@needs_proc
def test_workers_are_made_when_wanted_and_stay(program):
    program("""
kept = tilecore.tile(x, (2, 1), threads=8)      # too little; a dropped result would begin the watcher
tilecore.tile(x, (64, 1), out, threads=1)
also = tilecore.tile(x.astype("O"), (8, 1), threads=4)      # references, 16 MiB
assert more() == 0
tilecore.tile(x, (64, 1), out, threads=2)
assert more() == 1
for _ in range(5):
    tilecore.tile(x, (63, 1), out[:63], threads=3)
    assert more() == 2
tilecore.tile(x, (64, 1), out, threads=2)
tilecore.tile(x, (3, 1), out[:3], threads=8)    # not worth two
tilecore.tile(x, (23, 1), out[:23], threads=8)  # less than 6 MiB are worth two
assert more() == 2
tilecore.tile(x, (32, 1), out[:32], threads=4)  # 8 MiB are worth four, between checks for signals too
assert more() == 3
assert (out == x).all()
""")


@needs_proc
def test_every_way_to_tile_uses_them(program):
    program("""
wide = numpy.arange(2**24, dtype="u1")
plan = tilecore.TilePlan(x.shape, (64, 1), "u1")
ways = [
    lambda: tilecore.tile(x, (64, 1)),
    lambda: tilecore.tile_region(x, (99, 1), (7, 0), (71, 2**18)),
    lambda: tilecore.tile_region(x[::-1], (99, 2), (7, 5), (71, 2**18)),
    lambda: tilecore.tile_region(x.reshape(512, 512), (9, 9), (7, 5), (4000, 4000)),
    lambda: plan.tile(x),
    lambda: plan.region(x, (0, 0), (64, 2**18), out),
    lambda: tilecore.tile_mapped(wide.reshape(-1, 4096)[:, ::-1], (1, 64, 1)),
    lambda: tilecore.onnx.tile(x.reshape(1, -1), [64, 1]),
]
def work(way):
    assert len(threads()) == 1
    kept = way()    # a dropped result would begin the watcher
    assert len(threads()) == 2, ways.index(way)
for way in ways: forked(lambda: work(way))
""", TILECORE_NUM_THREADS="2")  # fmt: skip


@needs_proc
def test_parked_workers_take_no_time(program):
    program("""
def processor_time():
    times = []
    for worker in workers():
        with open(f"/proc/self/task/{worker}/stat") as file: fields = file.read().rpartition(")")[2].split()
        times.append(sum(map(int, fields[11:13])))
    return times
tilecore.tile(x, (63, 1), out[:63], threads=3)
patience = time.monotonic() + 60        # seconds: a busy machine parks them late
before, now = None, processor_time()
while now != before:
    assert time.monotonic() < patience, (before, now)
    time.sleep(0.5)
    before, now = now, processor_time()
assert len(now) == 2
""")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux has affinity masks")
def test_workers_run_where_their_caller_may(program):
    """But not on its own processor, where they would wait for it: it stays where it was last allowed alone."""
    program("""
all_of_them = os.sched_getaffinity(0)
def workers_run_on(processors):
    tilecore.tile(x, (63, 1), out[:63], threads=3)
    return [os.sched_getaffinity(worker) for worker in workers()] == [processors] * 2
def move(one):
    os.sched_setaffinity(0, {one})
    assert workers_run_on({one})
    os.sched_setaffinity(0, all_of_them)
    return workers_run_on(all_of_them - {one} or {one})
for one in (min(all_of_them), max(all_of_them)):
    assert any(move(one) for _ in range(20))        # unless the system moves the caller in between
assert (out[:63] == x).all()
""")


@pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64", reason="numbers of calls")
@pytest.mark.parametrize(("threads", "more"), [(2, ()), (1, (203, 319))])
def test_filters_of_system_calls(threads, more, program):
    """Of sched_setscheduler and its like; with one thread, sched_setaffinity (203) and memfd_create (319) too."""
    program(f"""
import struct
calls, libc = {(142, 143, 144, 145, 314, *more)}, ctypes.CDLL(None)
class Program(ctypes.Structure): _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]
# Load the call's number; jump to the last line, which ends the process, from each that has this number.
lines = [(0x20, 0, 0), *((0x15, len(calls) - k, number) for k, number in enumerate(calls))]
lines += [(6, 0, 0x7FFF0000), (6, 0, 0x80000000)]
code = b"".join(struct.pack("<HBBI", name, jump, 0, value) for name, jump, value in lines)
assert not libc.prctl(38, 1, 0, 0, 0) and not libc.prctl(22, 2, ctypes.byref(Program(len(lines), code)))
for _ in range(2):
    assert (tilecore.tile(x, (64, 1), out) == x).all() and len(threads()) == {threads}
""", TILECORE_NUM_THREADS=str(threads))  # fmt: skip


@pytest.fixture(scope="module")
def workers(tmp_path_factory, compile_c, run):
    """Run workers.c, a program of its own around runtime/workers.c: many jobs, callers and forks."""
    if sys.platform == "win32":
        pytest.skip("workers.c forks")
    path, core = tmp_path_factory.mktemp("workers") / "workers", HERE.parent / "tilecore" / "_core"
    compile_c("-O2", "-pthread", f"-I{core}", HERE / "workers.c", "-o", path)
    return partial(run, path)


@pytest.mark.tree
@pytest.mark.parametrize("callers", [1, 2, 8])
def test_jobs_and_forks(callers, workers):
    """The long form, by hand: workers run 8 1000000 3000."""
    # ThreadSanitizer cannot follow the threads of a child.
    forks = 0 if "thread" in os.environ.get("CC", "") else 60
    said = workers("run", str(callers), "20000", str(forks))
    assert said.startswith(f"20000 jobs of {callers} callers, {forks} forks")


@pytest.mark.tree
def test_all_workers_are_woken_in_a_child_too(workers):
    workers("wait", "0" if "thread" in os.environ.get("CC", "") else "1")


@pytest.mark.tree
def test_calls_are_alone_after_losses(workers):
    """w: a call with workers; s: a serial one. See learn_threads.c."""
    said = dict(line.split(": ") for line in workers().splitlines())
    for name in ("gains", "waking"):  # a serial call now and then, to compare
        assert "ss" not in said[name] and 2 < said[name].count("s") < len(said[name]) / 20, said[name]
    for name in ("busy", "small losses", "bandwidth"):  # workers ever more rarely
        calls = said[name]
        begin, end = (half.count("w") / len(half) for half in (calls[: len(calls) // 2], calls[len(calls) // 2 :]))
        assert 0 < end < min(begin, 0.3), calls
    assert "ww" not in said["busy"] and said["busy"].count("w") < 10, said["busy"]
