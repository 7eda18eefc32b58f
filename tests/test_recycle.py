"""Recycled memory: results that look like any array, in memory that nothing else can see."""

import ctypes
import gc
import os
import pickle
import random
import sys
import threading
import tracemalloc

import numpy as np
import pytest

import tilecore

MIB = 2**20
LEAST = 32 * MIB  # of a recycled result

pytestmark = [
    pytest.mark.quick,
    pytest.mark.whole_process,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux recycles"),
]


def result(mib=32, value=0, dtype="u1"):
    """A new array of so many MiB, full of `value`."""
    return tilecore.tile(np.full(MIB, value, dtype), (mib, 1))


def address(array):
    return array.ctypes.data


@pytest.fixture(autouse=True)
def emptied():
    limit = tilecore.get_recycle_limit()
    tilecore.set_recycle_limit(512 * MIB)
    tilecore.release_memory()
    yield
    gc.collect()
    tilecore.release_memory()
    tilecore.set_recycle_limit(limit)


def test_an_ordinary_array():
    y = result(33)
    assert y.base is None
    flags = y.flags
    assert flags.owndata and flags.writeable and flags.aligned and flags.c_contiguous
    assert np.array_equal(pickle.loads(pickle.dumps(y)), y)
    assert sys.getsizeof(y) >= y.nbytes
    assert address(y) % (2 * MIB) == 0
    assert y.copy().flags.owndata


def test_tracemalloc_is_told():
    tracemalloc.start()
    try:
        y = result(40)
        assert tracemalloc.get_traced_memory()[0] >= y.nbytes
        del y
        assert tracemalloc.get_traced_memory()[0] < MIB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "make",
    [
        lambda: result(value=1),
        lambda: tilecore.tile_region(np.ones(MIB, "u1"), (99, 1), (0, 0), (32, MIB)),
        lambda: tilecore.TilePlan((MIB,), (32, 1), "u1").tile(np.ones(MIB, "u1")),
        lambda: tilecore.onnx.tile(np.ones((1, MIB), "u1"), [32, 1]),
    ],
)
def test_written_again(make):
    y = make()
    where = address(y)
    assert tilecore.recycled_bytes() == 0
    del y
    assert tilecore.recycled_bytes() == LEAST
    y = make()
    assert address(y) == where
    assert tilecore.recycled_bytes() == 0
    assert (y == 1).all()


def test_small_results_and_references_are_not_kept():
    for x, reps in ((np.zeros(MIB, "u1"), 31), (np.zeros(2**17, "O"), 64)):
        tilecore.tile(x, reps)  # and dropped at once
        assert tilecore.recycled_bytes() == 0


HOLDERS = {
    "view": lambda y: y[5:6, 7:8],
    "transposed": lambda y: y.T[::2, ::-1],
    "buffer": memoryview,
    "bytes of the buffer": lambda y: memoryview(y).cast("B")[100:200],
    "dlpack": np.from_dlpack,
    "dlpack capsule": lambda y: y.__dlpack__(),
    "interface": lambda y: np.asarray(Interface(y)),
    "ctypes": lambda y: y.ctypes.data_as(ctypes.c_void_p),
    "iterator": lambda y: iter(y.flat),
    "cycle": lambda y: Cycle(y),
}


class Interface:
    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


class Cycle:
    def __init__(self, array):
        self.array, self.me = array, self


@pytest.mark.parametrize("name", HOLDERS)
def test_never_while_anything_can_see_it(name):
    y = result(value=7)
    where = address(y)
    holder = HOLDERS[name](y)
    del y
    others = [result(value=9) for _ in range(3)]
    assert where not in [address(other) for other in others]
    assert tilecore.recycled_bytes() == 0
    if name == "dlpack capsule":
        holder = np.from_dlpack(Capsule(holder))
    if isinstance(holder, np.ndarray):
        assert (holder == 7).all()
    del others
    tilecore.release_memory()
    del holder
    gc.collect()
    assert tilecore.recycled_bytes() == LEAST


class Capsule:
    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


def test_best_fit_of_a_similar_size():
    kept = {mib: result(mib) for mib in (38, 34, 60)}
    where = {mib: address(y) for mib, y in kept.items()}
    kept.clear()
    gc.collect()
    assert address(y := result(33)) == where[34]
    assert address(z := result(36)) == where[38]
    assert tilecore.recycled_bytes() == 60 * MIB
    w = result(40)  # 60 is too much for it
    assert address(w) != where[60]
    assert len({address(a) for a in (y, z, w)}) == 3


def test_limit():
    tilecore.set_recycle_limit(70 * MIB)
    first, second, third = result(32), result(33), result(34)
    del first
    del second
    assert tilecore.recycled_bytes() == 32 * MIB + 34 * MIB  # blocks are of whole huge pages
    where = address(third)
    del third  # the oldest goes
    assert tilecore.recycled_bytes() == 34 * MIB + 34 * MIB
    tilecore.set_recycle_limit(40 * MIB)  # the older of the two goes
    assert tilecore.recycled_bytes() == 34 * MIB
    assert address(result(34)) == where
    y = result(41)  # larger than the limit
    del y
    assert tilecore.recycled_bytes() == 34 * MIB
    tilecore.set_recycle_limit(0)
    assert tilecore.recycled_bytes() == tilecore.get_recycle_limit() == 0
    result()
    assert tilecore.recycled_bytes() == 0


@pytest.mark.parametrize(
    ("n", "kind"),
    [
        *[(-1, ValueError), (2**63, ValueError), (1.0, TypeError), (None, TypeError)],
        *[("", ValueError), ("-1", ValueError), ("1.5G", ValueError), (b"4G", TypeError)],
    ],
)
def test_refused_limits(n, kind):
    before = tilecore.get_recycle_limit(), tilecore.get_max_bytes()
    with pytest.raises(kind, match="^set_recycle_limit: expected "):
        tilecore.set_recycle_limit(n)
    with pytest.raises(kind, match="^set_max_bytes: expected "):
        tilecore.set_max_bytes(n)
    assert (tilecore.get_recycle_limit(), tilecore.get_max_bytes()) == before


@pytest.mark.parametrize(("text", "bytes"), [("0", 0), ("256M", 2**28), (" 4 GiB ", 2**32), ("9999999T", sys.maxsize)])
def test_limits_with_a_unit(text, bytes):
    """As the environment variables take them."""
    before = tilecore.get_max_bytes()
    try:
        tilecore.set_recycle_limit(text)
        tilecore.set_max_bytes(text)
        assert tilecore.get_recycle_limit() == tilecore.get_max_bytes() == bytes
    finally:
        tilecore.set_max_bytes(before)


def test_resize_in_place():
    y = result(33, 5)
    y.resize(70 * MIB, refcheck=False)
    assert (y[: 33 * MIB] == 5).all() and not y[33 * MIB :].any()
    assert tilecore.recycled_bytes() == 34 * MIB
    y.resize(MIB, refcheck=False)
    assert (y == 5).all()


def test_what_resizing_cuts_off_goes_back():
    y = result(64, 5)
    y.resize(33 * MIB, refcheck=False)
    assert (y == 5).all()
    del y
    assert tilecore.recycled_bytes() == 34 * MIB
    y = result(64, 5)
    y.resize(3 * MIB, refcheck=False)
    assert (y == 5).all()
    del y  # smaller than any result that could be written there
    assert tilecore.recycled_bytes() == 34 * MIB
    assert (result(33, 6) == 6).all()


def resident(field):
    """Bytes of a field of /proc/self/smaps_rollup."""
    with open("/proc/self/smaps_rollup") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(field + ":"))


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="Linux before 4.14")
def test_the_system_may_take_idle_memory():
    before = resident("LazyFree")
    y = result(64)
    assert resident("LazyFree") < before + MIB
    del y
    assert resident("LazyFree") >= before + 60 * MIB
    y = result(64, 3)
    assert resident("LazyFree") < before + MIB
    assert (y == 3).all()


@pytest.mark.process
def test_results_at_exit_look_up_no_names(program):
    """Module globals may be None by then."""
    program(
        """
class Late:
    def __init__(self): self.x, self.tile, self.exit = numpy.ones(2**20, "u1"), tilecore.tile, os._exit
    def __del__(self):
        y = self.tile(self.x, 40)
        self.exit(0 if y.min() == 1 and y.size == 40 * 2**20 else 1)
late = Late()
late.modules = [module for name, module in sys.modules.items() if name.startswith("tilecore")]
sys.last_of_all = late                  # sys is the last module to go
del late
"""
    )


@pytest.mark.process
def test_a_forked_child_starts_empty(program):
    program(
        """
x = numpy.ones(2**20, "u1")
inherited, idle = tilecore.tile(x, 40), tilecore.tile(x, 40)
del idle
assert tilecore.recycled_bytes() == 40 * 2**20
child = os.fork()
if not child:
    assert tilecore.recycled_bytes() == 0
    own = tilecore.tile(x, 40)
    inherited += 1
    assert (inherited == 2).all() and (own == 1).all()
    del inherited
    assert tilecore.recycled_bytes() == 0   # it goes back: its pages were shared
    del own
    assert tilecore.recycled_bytes() == 40 * 2**20
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert tilecore.recycled_bytes() == 40 * 2**20
assert (inherited == 1).all() and (tilecore.tile(x, 40) == 1).all()
"""
    )


@pytest.mark.process
@pytest.mark.parametrize("variable", [None, "256M"])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_off_in_multiprocessing_children(method, variable, program):
    out = program(
        f"""
import multiprocessing
def kept(x):
    tilecore.tile(x, 40)
    by_default = tilecore.recycled_bytes()
    tilecore.set_recycle_limit(2**28)
    tilecore.tile(x, 40)
    return by_default, tilecore.recycled_bytes()
if __name__ == "__main__":
    x = numpy.ones(2**20, "u1")
    tilecore.set_recycle_limit(2**28)
    tilecore.tile(x, 40)
    with multiprocessing.get_context("{method}").Pool(1) as pool:
        print(*pool.apply(kept, (x,)))
        pool.close()
        pool.join()
""",
        **({"TILECORE_RECYCLE_BYTES": variable} if variable else {}),
    )
    asked = 40 * MIB
    assert out.split() == [str(asked if variable else 0), str(asked)]


@pytest.mark.process
def test_environment(program):
    for text, bytes in [("0", 0), ("64M", 64 * MIB), ("999999999999T", sys.maxsize)]:
        code = "print(tilecore.get_recycle_limit())"
        assert program(code, TILECORE_RECYCLE_BYTES=text) == f"{bytes}\n"
    code = """
import subprocess
env = {**os.environ, "TILECORE_RECYCLE_BYTES": "much"}
done = subprocess.run([sys.executable, "-c", "import tilecore"], env=env, capture_output=True, text=True)
assert done.returncode and "TILECORE_RECYCLE_BYTES: expected a number of bytes" in done.stderr
"""
    program(code)


@pytest.mark.process
def test_by_default_a_part_of_the_memory(program):
    code = "print(tilecore.get_recycle_limit(), tilecore._core.resources.limits.physical_memory())"
    limit, memory = map(int, program(code).split())
    assert limit == min(2**30, memory // 16)


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="not on this system")
def test_fork_after_an_import_that_failed(run, tmp_path):
    """What happens at fork() is registered once, however often the module is imported."""
    code = """
import os, signal
os.environ["TILECORE_RECYCLE_BYTES"] = "nonsense"
for _ in range(2):
    try:
        import tilecore
    except ValueError:
        pass
os.environ["TILECORE_RECYCLE_BYTES"] = "1G"
import tilecore
signal.alarm(60)
child = os.fork()
if not child:
    os._exit(0)
print(tilecore.get_recycle_limit(), os.waitpid(child, 0)[1])
"""
    assert run(sys.executable, "-c", code, cwd=tmp_path) == f"{2**30} 0\n"


@pytest.mark.process
def test_at_exit(program):
    """Results in globals, cycles, threads and module state outlive the interpreter's own tear-down."""
    program(
        """
import threading, atexit
x = numpy.ones(2**20, "u1")
kept = [tilecore.tile(x, 40) for _ in range(3)]
kept.append(kept)
sys.kept = tilecore.tile(x, 41)
tilecore.tile(x, 40)
atexit.register(lambda: tilecore.tile(x, 42).sum())
class Late:
    def __del__(self, y=tilecore.tile(x, 40), tile=tilecore.tile, x=x): del y; tile(x, 40)
late = Late()
threading.Thread(target=lambda: [tilecore.tile(x, 40) for _ in range(50)], daemon=True).start()
"""
    )


def test_a_memory_handler_of_the_users_own_is_respected():
    """Whoever tells NumPy where memory comes from gets results from there."""
    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_New.restype = ctypes.py_object
    api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    table = api.PyCapsule_GetPointer(np._core._multiarray_umath._ARRAY_API, None)
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(
        ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[304]  # PyDataMem_SetHandler
    )
    libc = ctypes.CDLL(None)
    size, at = ctypes.c_size_t, ctypes.c_void_p
    libc.malloc.restype = libc.calloc.restype = libc.realloc.restype = at
    libc.malloc.argtypes, libc.calloc.argtypes = [size], [size, size]
    libc.realloc.argtypes, libc.free.argtypes = [at, size], [at]

    class Handler(ctypes.Structure):
        _fields_ = [
            ("name", ctypes.c_char * 127),
            ("version", ctypes.c_uint8),
            ("context", at),
            ("malloc", ctypes.CFUNCTYPE(at, at, size)),
            ("calloc", ctypes.CFUNCTYPE(at, at, size, size)),
            ("realloc", ctypes.CFUNCTYPE(at, at, at, size)),
            ("free", ctypes.CFUNCTYPE(None, at, at, size)),
        ]

    kinds = {name: kind for name, kind in Handler._fields_}
    handler = Handler(
        b"users_own",
        1,
        None,
        kinds["malloc"](lambda _, n: libc.malloc(n)),
        kinds["calloc"](lambda _, n, m: libc.calloc(n, m)),
        kinds["realloc"](lambda _, p, n: libc.realloc(p, n)),
        kinds["free"](lambda _, p, n: libc.free(p)),
    )
    capsule = api.PyCapsule_New(ctypes.addressof(handler), b"mem_handler", None)
    name = np._core.multiarray.get_handler_name
    before = set_handler(capsule)
    try:
        y = result(value=2)
        assert name(y) == "users_own"
        assert (y == 2).all()
        del y
        assert tilecore.recycled_bytes() == 0
    finally:
        set_handler(before)
    assert name(result()) == "tilecore"


def test_many_threads_many_results():
    """Random results, views and drops from several threads; whatever lives keeps its values."""
    tilecore.set_recycle_limit(160 * MIB)
    wrong = []

    def work(seed):
        rng = random.Random(seed)
        live = []
        for step in range(25):
            value = rng.randrange(256)
            y = tilecore.tile(np.full(MIB, value, "u1"), (rng.choice([32, 33, 36]), 1), threads=1)
            live.append((value, y if rng.random() < 0.5 else y[3:, 100:]))
            del y
            if len(live) > 3:
                live.pop(rng.randrange(len(live)))
            if step % 10 == 5:
                tilecore.release_memory()
            for value, array in live:
                if array[0, 0] != value or array[-1, -1] != value or (array[::5, ::4096] != value).any():
                    wrong.append((seed, step))
        for value, array in live:
            if (array != value).any():
                wrong.append((seed, "end"))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert tilecore.recycled_bytes() <= 160 * MIB
