"""Recycled memory: results that look like any array, in memory that nothing else can see."""

import ctypes
import gc
import os
import pickle
import random
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

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
    assert y.base is None and y.copy().flags.owndata
    flags = y.flags
    assert flags.owndata and flags.writeable and flags.aligned and flags.c_contiguous
    assert np.array_equal(pickle.loads(pickle.dumps(y)), y)
    assert sys.getsizeof(y) >= y.nbytes
    assert address(y) % (2 * MIB) == 0


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


class Holder:
    """What shows an array by what it is given."""

    def __init__(self, array, **protocol):
        self.array, self.me = array, self
        self.__dict__.update(protocol)


class Capsule(Holder):
    def __dlpack__(self, **_):
        return self.array

    def __dlpack_device__(self):
        return 1, 0


HOLDERS = {
    "view": lambda y: y[5:6, 7:8],
    "transposed": lambda y: y.T[::2, ::-1],
    "buffer": memoryview,
    "bytes of the buffer": lambda y: memoryview(y).cast("B")[100:200],
    "dlpack": np.from_dlpack,
    "dlpack capsule": lambda y: y.__dlpack__(),
    "interface": lambda y: np.asarray(Holder(y, __array_interface__=y.__array_interface__)),
    "ctypes": lambda y: y.ctypes.data_as(ctypes.c_void_p),
    "iterator": lambda y: iter(y.flat),
    "cycle": Holder,
}


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
    [*[(n, ValueError) for n in (-1, 2**63, "", "-1", "1.5G", "much")], *[(n, TypeError) for n in (1.0, None, b"4G")]],
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
    """What is cut off goes back; what becomes smaller than any result is not kept."""
    y = result(33, 5)
    y.resize(70 * MIB, refcheck=False)
    assert (y[: 33 * MIB] == 5).all() and not y[33 * MIB :].any()
    assert tilecore.recycled_bytes() == 34 * MIB
    del y
    tilecore.release_memory()
    for size in (33, 3):
        y = result(64, 5)
        y.resize(size * MIB, refcheck=False)
        assert (y == 5).all()
        del y
        assert tilecore.recycled_bytes() == 34 * MIB
    assert (result(33, 6) == 6).all()


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="Linux before 4.14")
def test_the_system_may_take_idle_memory():
    def lazily_free():
        with open("/proc/self/smaps_rollup") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("LazyFree:"))

    before = lazily_free()
    y = result(64)
    assert lazily_free() < before + MIB
    del y
    assert lazily_free() >= before + 60 * MIB
    y = result(64, 3)
    assert lazily_free() < before + MIB
    assert (y == 3).all()


@pytest.mark.process
def test_a_forked_child_starts_empty(program):
    program("""
x, bytes = numpy.ones(2**20, "u1"), 40 * 2**20
inherited, idle = tilecore.tile(x, 40), tilecore.tile(x, 40)
del idle
assert tilecore.recycled_bytes() == bytes
child = os.fork()
if not child:
    assert tilecore.recycled_bytes() == 0
    own = tilecore.tile(x, 40)
    inherited += 1
    assert (inherited == 2).all() and (own == 1).all()
    del inherited
    assert tilecore.recycled_bytes() == 0   # it goes back: its pages were shared
    del own
    assert tilecore.recycled_bytes() == bytes
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert tilecore.recycled_bytes() == bytes
assert (inherited == 1).all() and (tilecore.tile(x, 40) == 1).all()
""")


@pytest.mark.process
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_off_in_multiprocessing_children(method, program):
    code = f"""
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
"""
    asked = 40 * MIB
    assert program(code) == f"0 {asked}\n"
    if method != "forkserver":  # it imports as spawn does
        assert program(code, TILECORE_RECYCLE_BYTES="256M") == f"{asked} {asked}\n"


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
for text in ("nonsense", "nonsense", "1G"):
    os.environ["TILECORE_RECYCLE_BYTES"] = text
    try:
        import tilecore
    except ValueError: pass
signal.alarm(60)
if not (child := os.fork()): os._exit(0)
print(tilecore.get_recycle_limit(), os.waitpid(child, 0)[1])
"""
    assert run(sys.executable, "-c", code, cwd=tmp_path) == f"{2**30} 0\n"


@pytest.mark.process
def test_at_exit(program):
    """Results in globals, cycles, threads and module state outlive the interpreter's own tear-down."""
    program("""
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
""")


@pytest.mark.process
def test_results_when_the_globals_are_gone(program):
    """A recycled one, and one that workers write."""
    program("""
class Late:
    def __init__(self):
        self.x, self.out = numpy.ones(2**20, "u1"), numpy.zeros((80, 2**20), "u1")
        self.tile, self.exit = tilecore.tile, os._exit
    def __del__(self):
        y = self.tile(self.x, 40)
        self.tile(self.x, (80, 1), self.out)
        self.exit(0 if y.min() == 1 and y.size == 40 * 2**20 and self.out.all() else 1)
late = Late()
late.modules = [module for name, module in sys.modules.items() if name.startswith("tilecore")]
sys.last_of_all = late                  # sys is the last module to go
del late
""")


def test_a_memory_handler_of_the_users_own_is_respected():
    """Whoever tells NumPy where memory comes from gets results from there."""
    api, at, size = ctypes.pythonapi, ctypes.c_void_p, ctypes.c_size_t
    pointer = ctypes.PYFUNCTYPE(at, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    new = ctypes.PYFUNCTYPE(ctypes.py_object, at, ctypes.c_char_p, at)(("PyCapsule_New", api))
    table = ctypes.cast(pointer(np._core._multiarray_umath._ARRAY_API, None), ctypes.POINTER(at))
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[304])  # PyDataMem_SetHandler
    libc = ctypes.CDLL(None)
    kinds = {"malloc": (at, size), "calloc": (at, size, size), "realloc": (at, at, size), "free": (None, at)}
    kinds = {name: ctypes.CFUNCTYPE(*kind)((name, libc)) for name, kind in kinds.items()}
    calls = [
        ctypes.CFUNCTYPE(at, at, size)(lambda _, n: kinds["malloc"](n)),
        ctypes.CFUNCTYPE(at, at, size, size)(lambda _, n, m: kinds["calloc"](n, m)),
        ctypes.CFUNCTYPE(at, at, at, size)(lambda _, p, n: kinds["realloc"](p, n)),
        ctypes.CFUNCTYPE(None, at, at, size)(lambda _, p, n: kinds["free"](p)),
    ]

    class Handler(ctypes.Structure):
        _fields_ = [
            *(("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("context", at)),
            *((name, type(call)) for name, call in zip(kinds, calls, strict=True)),
        ]

    handler = Handler(b"users_own", 1, None, *calls)
    name = np._core.multiarray.get_handler_name
    before = set_handler(new(ctypes.addressof(handler), b"mem_handler", None))
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
                assert array[0, 0] == array[-1, -1] == value and (array[::5, ::4096] == value).all(), step
        assert all((array == value).all() for value, array in live)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert tilecore.recycled_bytes() <= 160 * MIB
