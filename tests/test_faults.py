"""Where the system refuses: a MemoryError that tells what was asked for, or a right answer that takes longer.

In programs of their own, faults.c interposes functions of the C library, and makes the n-th call of one fail.
"""

import platform
import sys
import sysconfig
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.skipif(
        sys.platform != "linux" or platform.libc_ver()[0] != "glibc", reason="faults.c interposes glibc's functions"
    ),
]


with_the_gil = pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    reason="without the GIL, CPython's own PyList_New crashes where it has no memory for the items (3.13.5)",
)


@pytest.fixture(scope="module")
def library(tmp_path_factory, compile_c):
    path = tmp_path_factory.mktemp("faults") / "faults.so"
    source = Path(__file__).with_name("faults.c")
    compile_c("-O1", "-Wno-pedantic", "-shared", "-fPIC", source, "-o", path, "-ldl")
    return path


START = """
import gc
x = np.ones(MIB, "u1")
faults = ctypes.CDLL(None)
faults.faults_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_size_t, ctypes.c_int]
faults.faults_disarm.restype = ctypes.c_long
handler_name = np._core.multiarray.get_handler_name

def numbered(n, dtype="f4"):
    return (np.arange(n) % 32749).astype(dtype)

def state():
    gc.collect()
    return descriptors_now(""), handler_name()

def without(n, call):
    "A call in which the interpreter has no memory for its n-th allocation: the result, and the error."
    import _testcapi
    y = error = None
    stderr, sys.stderr = sys.stderr, None       # Python 3.12.1 itself shows errors that it has no memory to pass on
    _testcapi.set_nomemory(n, n + 1)
    try: y = call()
    except Exception as e: error = e
    _testcapi.remove_mem_hooks()
    sys.stderr = stderr
    return y, error
"""

CALLS = """
x = numbered(2**18)                     # 1 MiB
small = np.arange(6).reshape(2, 3)
strided = numbered(2**18).reshape(512, 512).T
objects = np.array([None, [], "x"] * 100, "O")
strings = np.array(["a", "a longer string than fits an item"] * 50, "T")
record = np.array([(1, "x"), (2, [])] * 60, [("n", "i4"), ("o", "O")])
rows = numbered(2000).reshape(2, 1000)  # each repeated, so made in scratch
masked = np.ma.array(x, mask=x > 5)
plan = tilecore.TilePlan(x.shape, (17, 1), "f4")
out = np.empty((17, 2**18), "f4")       # large enough for threads

def into_out(call, *arguments):
    out[...] = -1
    assert call(*arguments, out=out, threads=4) is out
    return out

CALLS = {
    "small": (lambda: tilecore.tile(small, (2, 2)), np.tile(small, (2, 2))),
    "1 MiB": (lambda: tilecore.tile(x[:2**16], 4), np.tile(x[:2**16], (4,))),
    "recycled": (lambda: tilecore.tile(x, (12, 1), threads=4), np.tile(x, (12, 1))),
    "strided": (lambda: tilecore.tile(strided, (4, 4), threads=4), np.tile(strided, (4, 4))),
    "transposed": (lambda: tilecore.tile(strided, (1, 1)), strided),
    "out": (lambda: into_out(tilecore.tile, x, (17, 1)), np.tile(x, (17, 1))),
    "region": (lambda: tilecore.tile_region(x, (99, 1), (7, 1), (19, 2**18)), np.tile(x, (12, 1))[:, 1:]),
    "plan": (lambda: tilecore.TilePlan((2, 3), (2, 2), "i8").tile(small), np.tile(small, (2, 2))),
    "plan, out": (lambda: into_out(plan.tile, x), np.tile(x, (17, 1))),
    "objects": (lambda: tilecore.tile(objects, (300, 2)), np.tile(objects, (300, 2))),
    "strings": (lambda: tilecore.tile(strings, (300, 2)), np.tile(strings, (300, 2))),
    "structures": (lambda: tilecore.tile(record, (300, 2)), np.tile(record, (300, 2))),
    "view": (lambda: tilecore.tile_view(small[:, :1], (1, 4)), np.tile(small[:, :1], (1, 4))),
    "mapped": (lambda: tilecore.tile_mapped(x, (40, 1)), np.tile(x, (40, 1))),
    "mapped, made in scratch": (lambda: tilecore.tile_mapped(rows, (3200, 2)), np.tile(rows, (3200, 2))),
    "masked": (lambda: tilecore.tile(masked, 4).data, np.tile(x, (4,))),
    "onnx": (lambda: tilecore.onnx.tile(x.reshape(1, -1), [40, 1]), np.tile(x, (40, 1))),
}
for call, want in CALLS.values():       # and whatever is set up at the first call
    assert np.array_equal(call(), want)
gc.freeze()                             # what is there for good is looked at no more
"""


@pytest.fixture
def faulty(program, library):
    """A program in which calls can be told to fail."""
    env = {"LD_PRELOAD": str(library), "TILECORE_NUM_THREADS": "4"}
    return lambda code: program(code, "-X", "faulthandler", **env)


@pytest.fixture
def faulty_calls(faulty):
    return lambda code: faulty(CALLS + code)


def test_every_call_that_can_fail(faulty_calls):
    """Each function, each call of it, once or from then on, with and without idle memory."""
    faulty_calls("""
before = state()
met = dict.fromkeys("malloc mmap mprotect munmap madvise memfd_create pwrite pthread_create".split(), 0)
refused = right = 0

def fail(name, function, n, every, idle):
    "Whether there was an n-th call of the function to fail."
    global refused, right
    call, want = CALLS[name]
    tilecore.release_memory()
    if idle:
        tilecore.tile(x, (16, 1))
    if function == "pthread_create":
        forked(list)    # workers end before every fork(), so that the next large result makes others
    y = error = None
    # The interpreter's own allocations are smaller; a failure of theirs is its own.
    least = {"malloc": 2**15, "mmap": 2**19, "munmap": 2**19}.get(function, 0)
    faults.faults_arm(function.encode(), n, least, every)
    try:
        y = call()
    except MemoryError as e:
        error = e
    failures = faults.faults_disarm()
    where = f"{name}: {function} number {n}, {'all later, ' if every else ''}idle {idle}"
    if error is None:
        assert np.array_equal(y, want), where
        right += failures > 0
    else:
        assert failures and "no memory for a result of" in str(error) and "input shape (" in str(error), (where, error)
        refused += 1
    met[function] += failures > 0
    y = None
    assert state() == before, where
    return failures > 0

for name in CALLS:
    for idle in (False, True)[:1 + (name in ("recycled", "strided", "objects", "mapped"))]:
        for function in met:
            n = 1
            while fail(name, function, n, False, idle):
                fail(name, function, n, True, idle)
                n += 1 + n // 4         # in longer steps, for later calls are alike
                assert n < 500, (name, function)
assert refused and right and all(met.values()), met
""")


def test_a_signal_while_a_file_is_written(faulty_calls):
    """Linux reports it; tilecore writes again."""
    faulty_calls("""
call, want = CALLS["mapped, made in scratch"]
faults.faults_arm(b"pwrite, interrupted", 1, 0, False)
y = call()
assert faults.faults_disarm() == 1
assert mapped(y) and np.array_equal(y, want)
""")


def test_idle_memory_follows_use(faulty):
    """Idle memory is at most the last minute's peak plus 64 MiB; the minute is counted by halves."""
    faulty("""
tilecore.set_recycle_limit(2**30)
faults.faults_wait(0)                   # now the clock stands still
def idle(): return tilecore.recycled_bytes() // MIB
burst = [tilecore.tile(x, n) for n in (1, 1, 1, 3, 3, 200)]
last = tilecore.tile(x, 1)              # its address is the highest
burst.clear()
assert idle() == 209
faults.faults_wait(25)
tilecore.tile(x, 3)
assert idle() == 209
for _ in range(2):
    faults.faults_wait(25)
    tilecore.tile(x, 2)                 # all were alive more than a minute ago
assert 66 <= idle() <= 4 + 64
tilecore.tile(x, 100)                   # a new burst
assert idle() == 100
assert (last == 1).all()
""")


def test_no_thread_to_release_memory(faulty):
    """Then a later result releases it."""
    faulty("""
tilecore.set_recycle_limit(2**30)
faults.faults_arm(b"pthread_create", 1, 0, True)
tilecore.tile(x, 100, threads=1)
assert faults.faults_disarm() == 1 and tilecore.recycled_bytes() == 100 * MIB
faults.faults_wait(61)
tilecore.tile(x, 1)
assert tilecore.recycled_bytes() <= 65 * MIB
""")


def test_workers_take_the_signals_of_their_own_faults_alone(faulty):
    """With SIGBUS blocked, a worker that reads a file cut short ends the program without a word."""
    faulty("""
tilecore.tile(x, 16, threads=2)         # makes one
for number in signal.valid_signals():
    name = signal.Signals(number).name if number in set(signal.Signals) else ""
    if number not in (32, 33):          # glibc's own
        blocks = name not in ("SIGBUS", "SIGSEGV", "SIGKILL", "SIGSTOP")
        assert faults.faults_worker_blocks(int(number)) == blocks, number
""")


def test_a_fork_waits_until_the_system_counts_no_worker(faulty):
    """The system may count ended workers for a while, and Python would warn of them."""
    faulty("""
tilecore.tile(x, (24, 1), np.empty((24, MIB), "u1"), threads=4)
faults.faults_arm(b"tgkill", 150, 0, True)
forked(list)
assert faults.faults_disarm() == 3
""")


@with_the_gil
def test_the_interpreters_own_allocations(faulty_calls):
    """Each of the first allocations of a call fails: a MemoryError or the right answer, and nothing is left behind."""
    pytest.importorskip("_testcapi")
    faulty_calls("""
assert handler_name() == "default_allocator"
refused = right = 0
def counts():
    return [sys.getrefcount(a) for a in (x, x.dtype, small, small.dtype, objects, record, record.dtype, out, plan)]
for name, (call, want) in CALLS.items():
    if name in ("masked", "strings"):   # numpy.ma's Python code; NumPy 2.4 follows a NULL here
        continue
    before, held = state(), counts()
    n = in_a_row = 0
    while in_a_row < 12:                # by then the call needs no more of them
        y, error = without(n, call)
        assert handler_name() == "default_allocator", (name, n)
        assert type(error) is MemoryError if error else np.array_equal(y, want), (name, n)
        right, refused = right + (error is None), refused + (error is not None)
        n, in_a_row = n + 1, 0 if error else in_a_row + 1
    y = error = None
    assert state() == before, name
    assert counts() == held, (name, held, counts())
assert refused > 15 and right > 50, (refused, right)
""")


def test_a_call_is_one_job(faulty):
    """Workers are woken once, also in the main thread: it looks at the clock between its chunks."""
    faulty("""
x, out = numbered(2**18), np.empty((24, 2**18), "f4")
def jobs(threads):
    faults.faults_arm(b"thread clock", 1, 0, 1)
    tilecore.tile(x, (24, 1), out, threads=threads)
    return faults.faults_disarm() / 2
assert [jobs(threads) for threads in (1, 2, 3, 2)] == [0, 1, 1, 1]
""")


@with_the_gil
def test_the_interpreters_own_allocations_for_errors(faulty):
    """A MemoryError or the error itself. Only of compiled code: Python 3.11's own may lose an error, and then crash."""
    pytest.importorskip("_testcapi")
    faulty("""
x, plan = np.arange(3), tilecore.TilePlan(3, 2, "i8")
pair = [x, np.arange(2)]
ERRORS = {
    "repeats of several axes": partial(tilecore.tile, x, 2, 3),
    "negative": partial(tilecore.tile, x, -1),
    "expected 0 <= start": partial(tilecore.tile_region, x, 2, 0, 99),
    "strides": partial(tilecore.tile_view, x, 2),
    "output_shape: ": partial(tilecore.output_shape, 3, -1),
    "TilePlan: ": partial(tilecore.TilePlan, 3, -1, "i8"),
    "TilePlan.tile: ": partial(plan.tile, pair[1]),
    "arrays[1]": partial(plan.batch, pair),
}
for text, call in ERRORS.items():
    kinds = [type(without(n, call)[1]) for n in range(200)]
    refuse(call, kinds[-1], text)
    assert MemoryError in kinds and set(kinds) == {MemoryError, kinds[-1]}, (text, kinds)

for n in range(10):
    replaced = [tilecore.replace_numpy_tile() for _ in range(9)]
    for each in replaced:
        without(n, each.restore)
    assert not np.tile(np.zeros((2, 3)), 2).flags.owndata, n
""")
