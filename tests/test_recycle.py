"""Recycled memory: results that look like any array, in memory that nothing else can see."""

import ctypes
import gc
import pickle
import platform
import sys

import numpy as np
import pytest

import tilecore
from tilecore._core.resources.memory import LEAST_RECYCLED_BYTES

KIB, MIB = 2**10, 2**20
START = 'x = numpy.ones(2**20, "u1")\n'

pytestmark = [
    pytest.mark.quick,
    pytest.mark.whole_process,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux recycles"),
]


def result(mib=4, value=0, dtype="u1"):
    """A new array of so many MiB, full of `value`."""
    return tilecore.tile(np.full(MIB, value, dtype), (mib, 1))


def address(array):
    return array.ctypes.data


@pytest.fixture(autouse=True, scope="module")
def collected():
    """Collect first, so that no memory that earlier tests left in cycles becomes idle meanwhile."""
    gc.collect()


@pytest.fixture(autouse=True)
def emptied(settings_stay):
    tilecore.set_recycle_limit(512 * MIB)
    tilecore.release_memory()
    yield
    tilecore.release_memory()


def test_results_look_like_any_array():
    y = result(33)
    assert y.base is None and y.copy().flags.owndata
    flags = y.flags
    assert flags.owndata and flags.writeable and flags.aligned and flags.c_contiguous
    assert np.array_equal(pickle.loads(pickle.dumps(y)), y)
    assert sys.getsizeof(y) >= y.nbytes
    assert address(y) % (2 * MIB) == 0


def test_tracemalloc_is_told(traced):
    y = result(40)
    assert traced.get_traced_memory()[0] >= y.nbytes
    del y
    assert traced.get_traced_memory()[0] < 20 * MIB  # other code may have grown a table meanwhile


WAYS = ["tile", "tile_region", "TilePlan.tile", "TilePlan.region", "TilePlan.batch of a list", "onnx", "masked"]


@pytest.mark.parametrize("nbytes", [LEAST_RECYCLED_BYTES, LEAST_RECYCLED_BYTES + 8, 3 * MIB, 8 * MIB])
@pytest.mark.parametrize("name", WAYS)
def test_memory_is_written_again(name, nbytes, calls_of):
    x = np.ones(nbytes // 2, "u1")
    others = {
        "onnx": lambda: tilecore.onnx.tile(x[None], [2, 1]),
        "masked": lambda: tilecore.tile(np.ma.array(x), (2, 1)).data,
    }
    call = (calls_of(x, 2) | others)[name]
    y = call()
    where = address(y)
    assert tilecore.recycled_bytes() == 0
    del y
    idle = tilecore.recycled_bytes()
    assert idle >= nbytes  # the mask of a masked array is a result too
    y = call()
    assert address(y) == where
    assert tilecore.recycled_bytes() <= idle - nbytes
    assert (y == 1).all()


@pytest.mark.parametrize("dtype", ["O", [("number", "i8"), ("object", "O")]], ids=repr)
def test_memory_of_references_is_written_again(dtype):
    item = np.zeros(1, dtype)
    item[0] = (5, "item" * 10) if item.dtype.names else "item" * 10
    y = tilecore.tile(item, 2**14)
    where = address(y)
    del y
    assert tilecore.recycled_bytes() == 2**14 * item.itemsize
    y = tilecore.tile(item, 2**14)
    assert address(y) == where and (y == item[0]).all()
    y[:] = tilecore.tile(item, 2**14)[::-1]
    assert (y == item[0]).all()


def test_smaller_results_are_numpys():
    tilecore.tile(np.zeros(LEAST_RECYCLED_BYTES // 2 - 4, "u1"), 2)  # and dropped at once
    assert tilecore.recycled_bytes() == 0


class Holder:
    """In a cycle, which only a collection of garbage ends."""

    def __init__(self, array):
        self.array, self.me = array, self
        self.__array_interface__ = array.__array_interface__


HOLDERS = {
    "view": lambda y: y[5:6, 7:8], "transposed": lambda y: y.T[::2, ::-1], "iterator": lambda y: iter(y.flat),
    "buffer": memoryview, "bytes of the buffer": lambda y: memoryview(y).cast("B")[100:200],
    "dlpack": np.from_dlpack, "dlpack capsule": lambda y: y.__dlpack__(), "cycle": Holder,
    "interface": lambda y: np.asarray(Holder(y)), "ctypes": lambda y: y.ctypes.data_as(ctypes.c_void_p),
}  # fmt: skip


@pytest.mark.parametrize("name", HOLDERS)
def test_never_while_anything_can_see_it(name):
    y = result(value=7)
    where = address(y)
    holder = HOLDERS[name](y)
    del y
    others = [result(value=9) for _ in range(3)]
    assert where not in [address(other) for other in others]
    assert tilecore.recycled_bytes() == 0
    if isinstance(holder, np.ndarray):
        assert (holder == 7).all()
    del others
    tilecore.release_memory()
    del holder
    gc.collect()
    assert tilecore.recycled_bytes() == 4 * MIB


def test_the_limit_of_idle_memory():
    """The highest addresses go first, so that the next result finds pages."""
    tilecore.set_recycle_limit(70 * MIB)
    first, second, third = result(32), result(34), result(36)
    where = address(first)
    del third, first
    assert tilecore.recycled_bytes() == 68 * MIB
    del second  # more than the limit with the others
    assert tilecore.recycled_bytes() == 70 * MIB
    tilecore.set_recycle_limit(40 * MIB)
    assert tilecore.recycled_bytes() == 40 * MIB
    y = result(40)
    assert address(y) == where and tilecore.recycled_bytes() == 0
    del y
    y = result(41)  # larger than the limit: NumPy's
    assert np._core.multiarray.get_handler_name(y) == "default_allocator"
    del y
    assert tilecore.recycled_bytes() == 40 * MIB
    tilecore.set_recycle_limit(0)
    assert tilecore.recycled_bytes() == tilecore.get_recycle_limit() == 0
    result()
    assert tilecore.recycled_bytes() == 0


def test_resize_in_place():
    """By the method of arrays: `realloc`, in NumPy's terms."""
    for before, after in ((33, 70), (64, 33), (64, 3), (1, 2), (3, 2), (3, 1)):
        y = result(before, 5)
        y.resize(after * MIB, refcheck=False)
        both = min(before, after) * MIB
        assert (y[:both] == 5).all() and not y[both:].any()
        del y
        assert (result(after, 6) == 6).all()
    y = result(3, 5)
    tilecore.release_memory()
    y.resize(MIB, refcheck=False)  # moves
    assert tilecore.recycled_bytes() == 3 * MIB
    y = result(1, 5)
    y.resize(10, refcheck=False)
    assert (y == 5).all()
    before = tilecore.tile(np.zeros(128 * KIB, "u1"), 1)  # so `y` does not begin the arena
    y = tilecore.tile(np.zeros(129 * KIB, "u1"), 1)
    where = address(y)
    y.resize(144 * KIB, refcheck=False)  # in the same granules
    assert address(y) == where
    tilecore.release_memory()
    y.resize(256 * KIB, refcheck=False)  # moves
    assert tilecore.recycled_bytes() == 160 * KIB
    del before


@pytest.mark.parametrize("bytes", [2**61 - 1, 2**61, 2**62, sys.maxsize])
def test_resize_to_more_than_there_is(bytes):
    """Memory of such a length is refused, and the array stays as it is."""
    y = result(1, 5)
    result(1)
    with pytest.raises(MemoryError):
        y.resize(bytes, refcheck=False)
    assert (y == 5).all()


def test_locked_memory_is_not_kept(program):
    """The system cannot take locked pages back, so idle ones would cost other programs."""
    program("""
libc = ctypes.CDLL(None)
if libc.mlockall(2):        # MCL_FUTURE
    sys.exit(0)             # not permitted
try:
    y = tilecore.tile(x, 40)
except MemoryError:
    sys.exit(0)             # more than may be locked
assert (y == 1).all()
del y
assert tilecore.recycled_bytes() == 0
libc.munlockall()
y = tilecore.tile(x, 40)
del y
assert tilecore.recycled_bytes() == 40 * 2**20
""")


HEAP = """
ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)     # PR_SET_THP_DISABLE: there would be fewer faults
def count():
    "Page faults of a step whose arrays glibc maps, or trims from the end of its heap, while its thresholds are low."
    before = resource.getrusage(0).ru_minflt
    [numpy.ones(2**20, "u1") for _ in range(8)]
    return resource.getrusage(0).ru_minflt - before
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's heap")
class TestTheHeap:
    def test_other_arrays_keep_their_pages_until_memory_is_released(self, program):
        program(f"""{HEAP}
count(), count()
assert count() > 1000
sys.stderr = None
with tilecore.profile():        # which leaves the heap as it is
    numpy.tile(x, 2), count()
    assert count() > 1000
tilecore.tile(x, 2), count()
assert count() < 100
for release in tilecore.release_memory, lambda: tilecore.set_recycle_limit(0):
    others = [numpy.ones(2**20, "u1") for _ in range(100)]
    last, full = others.pop(), status("VmRSS")      # it keeps the others from the end of the heap
    del others
    assert status("VmRSS") > full - 10 * 2**20
    release()
    assert status("VmRSS") < full - 90 * 2**20
""")

    @pytest.mark.parametrize("name, value", [
        ("TILECORE_RECYCLE_BYTES", "0"), ("MALLOC_MMAP_THRESHOLD_", "200000"), ("MALLOC_TRIM_THRESHOLD_", "200000"),
        ("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=200000"), ("LIMIT", "1"),
    ])  # fmt: skip
    def test_it_stays_as_it_is(self, name, value, program):
        """If nothing is recycled, also under an address limit; and where glibc's own variables are set."""
        program(f"""{HEAP}
if "LIMIT" in os.environ: resource.setrlimit(resource.RLIMIT_AS, (2**40, resource.RLIM_INFINITY))
tilecore.tile(x, 2), count(), count()
assert count() > 1000
""", **{name: value})  # fmt: skip


def test_results_outlive_the_interpreter(program):
    """Results in globals, cycles, threads and module state outlive the interpreter's own tear-down; so do workers."""
    program("""
import atexit
kept = [tilecore.tile(x, 40) for _ in range(3)]
kept.append(kept)
sys.kept = tilecore.tile(x, 41)
tilecore.tile(x, 40)
atexit.register(lambda: tilecore.tile(x, 42).sum())
class Late:
    def __del__(self, y=tilecore.tile(x, 40), tile=tilecore.tile, x=x): del y; tile(x, 40)
late = Late()
begun = threading.Barrier(3)
def work():
    tilecore.tile(x, 40, threads=4)
    begun.wait()
    while True: tilecore.tile(x, 40, threads=4)
for _ in range(2): threading.Thread(target=work, daemon=True).start()
begun.wait()
""")


def test_a_memory_handler_of_the_programs_own_is_used():
    """NumPy's default one, under another name: arrays that come from it are not ours to recycle."""
    api, at = ctypes.pythonapi, ctypes.c_void_p
    pointer = ctypes.PYFUNCTYPE(at, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    new = ctypes.PYFUNCTYPE(ctypes.py_object, at, ctypes.c_char_p, at)(("PyCapsule_New", api))
    table = ctypes.cast(pointer(np._core._multiarray_umath._ARRAY_API, None), ctypes.POINTER(at))
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[304])  # PyDataMem_SetHandler
    before = ctypes.PYFUNCTYPE(ctypes.py_object)(table[305])()  # PyDataMem_GetHandler
    name = np._core.multiarray.get_handler_name
    handler = ctypes.string_at(pointer(before, b"mem_handler"), 128 + 5 * ctypes.sizeof(at))  # PyDataMem_Handler
    handler = ctypes.create_string_buffer(b"own".ljust(127, b"\0") + handler[127:])
    set_handler(new(ctypes.addressof(handler), b"mem_handler", None))
    try:
        y = result(value=2)
        assert name(y) == "own" and (y == 2).all()
        del y
        assert tilecore.recycled_bytes() == 0
    finally:
        set_handler(before)
    assert name(result()) == "tilecore"
