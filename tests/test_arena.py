"""The arena of recycled memory: against a model, and the pages that it takes from the system."""

import ctypes
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytestmark = [
    pytest.mark.process,
    pytest.mark.tree,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux recycles"),
]

HERE = Path(__file__).parent
GRANULE = 2**15
HUGE = 64  # granules of a huge page
LIMIT = 400  # of idle granules, in the model


@pytest.fixture(scope="module")
def library_path(tmp_path_factory, compile_c):
    path = tmp_path_factory.mktemp("arena") / "arena.so"
    core = HERE.parent / "tilecore" / "_core"
    compile_c("-O1", "-pthread", "-shared", "-fPIC", f"-I{core}", HERE / "arena.c", "-o", path)
    return path


@pytest.fixture(scope="module")
def library(library_path):
    arena = ctypes.CDLL(library_path)
    assert arena.start() == 0
    arena.take.restype = arena.idle.restype = ctypes.c_ssize_t
    arena.take.argtypes = [ctypes.c_ssize_t, ctypes.POINTER(ctypes.c_int)]
    for name in ("give_back", "trim", "set_limit"):
        getattr(arena, name).argtypes = [ctypes.c_ssize_t]
    return arena


class Model:
    """Granules as sets of integers."""

    def __init__(self):
        self.used, self.paged, self.results = set(), set(), {}

    def run(self, n):
        """The first free run that is long enough."""
        start = 0
        while taken := self.used.intersection(range(start, start + n)):
            start = max(taken) + 1
        return start

    def take(self, start, n):
        prefaulted = len(self.paged.intersection(range(start, start + n))) * 2 >= n
        self.used.update(range(start, start + n))
        self.paged.update(range(start, start + n))
        self.results[start] = n
        return prefaulted

    def give_back(self, start):
        n = self.results.pop(start)
        self.trim(LIMIT - n)  # other pages first
        self.used.difference_update(range(start, start + n))
        self.trim(LIMIT)

    def idle(self):
        return self.paged - self.used

    def trim(self, most):
        """The highest huge pages first, and parts of them last; always to the end of a free run."""
        for parts in (False, True):
            for page in range(max(self.paged, default=0) // HUGE, -1, -1):
                inside = set(range(page * HUGE, page * HUGE + HUGE))
                if len(self.idle()) <= most or not inside & self.idle() or (inside & self.used and not parts and most):
                    continue
                for granule in inside - self.used:
                    end = min((other for other in self.used if other > granule), default=10**9)
                    self.paged -= {other for other in self.paged if granule <= other < end}


SIZES = st.one_of(st.integers(1, 9), st.sampled_from([63, 64, 65, 128, 200]))
STEPS = st.one_of(
    st.tuples(st.just("take"), SIZES),
    st.tuples(st.just("give_back"), st.integers(0, 99)),
    st.tuples(st.just("trim"), st.sampled_from([0, 5, 70, 200])),
)


@given(st.lists(STEPS, max_size=60))
@example([("take", 96), ("take", 160), ("take", 224), ("take", 64), *[("give_back", 1)] * 2, ("take", 384)]
         + [("give_back", 1), ("trim", 200), ("take", 70), ("take", 30), ("give_back", 0), ("trim", 70)]
         + [("take", 224), ("take", 90), ("take", 64), ("take", 9)])  # fmt: skip
def test_the_arena_gives_and_takes_as_its_model(library, steps):
    """First fit, runs that merge, what is idle, what is given back first."""
    library.set_limit(LIMIT * GRANULE)
    model, prefaulted = Model(), ctypes.c_int()
    base = library.take(1, prefaulted)  # the first granule of an empty arena
    library.give_back(base)
    library.trim(0)
    try:
        for step, *numbers in steps:
            start = sorted(model.results)[numbers[0] % len(model.results)] if model.results else None
            if step == "take":
                n = numbers[0]
                at = library.take(n * GRANULE - 5, prefaulted)
                assert (at - base) / GRANULE == (start := model.run(n))
                assert prefaulted.value == model.take(start, n)
                ctypes.memset(at, n, 8)
                ctypes.memset(at + n * GRANULE - 13, n, 8)
            elif step == "trim":
                library.trim(numbers[0] * GRANULE)
                model.trim(numbers[0])
            elif start is not None:
                n = model.results[start]
                data = ctypes.string_at(base + start * GRANULE, n * GRANULE - 5)
                assert {*data[:8], *data[-8:]} == {n % 256}
                model.give_back(start)
                assert library.give_back(base + start * GRANULE)
            assert library.idle() == len(model.idle()) * GRANULE
    finally:
        for start in model.results:
            assert library.give_back(base + start * GRANULE)
        library.trim(0)
    assert library.idle() == 0 and not library.give_back(base) and not library.give_back(base + 5)
    prefaulted.value = 1
    assert (library.take(2**60, prefaulted), prefaulted.value) == (0, 0)  # no memory has no pages


def test_holes_that_are_too_short_cost_nothing(library):
    """A search that looked at each hole took 87 us after 20 000 results, of which every second one had died."""
    looked, prefaulted = ctypes.c_long.in_dll(library, "looked"), ctypes.c_int()
    library.set_limit(2**40)

    def looks(alive):
        results = [library.take(4 * GRANULE, prefaulted) for _ in range(alive)]
        for at in results[::2]:
            library.give_back(at)
        before = looked.value
        last = library.take(6 * GRANULE, prefaulted)
        count = looked.value - before
        for at in (last, *results[1::2]):
            library.give_back(at)
        library.trim(0)
        return count

    assert looks(3000) < looks(300) + 10


@pytest.mark.parametrize("pairs, limit", [(20, 64), (300, 2048 + 310)], ids=["the program's", "the last minute's"])
def test_at_the_limit_a_result_finds_its_own_pages(library, pairs, limit):
    """They went back first, as the highest ones, though the caches held them. So each call got new pages."""
    getrusage, prefaulted, faults = pytest.importorskip("resource").getrusage, ctypes.c_int(), []
    library.set_limit(limit * GRANULE if pairs == 20 else 2**40)
    results = [library.take(n * GRANULE, prefaulted) for n in (9, 1) * pairs]
    for at in results[::2]:
        library.give_back(at)
    for _ in range(4):
        library.forget_peak()
        before = getrusage(1).ru_minflt  # of this thread
        ctypes.memset(at := library.take(10 * GRANULE, prefaulted), 1, 10 * GRANULE)
        faults.append(getrusage(1).ru_minflt - before)
        library.give_back(at)
        assert (limit - 64) * GRANULE < library.idle() <= limit * GRANULE
    for at in results[1::2]:
        library.give_back(at)
    library.trim(0)
    assert sorted(faults[1:])[1] < 10  # the system takes pages away meanwhile, but not each time


WATCHED = """
import random
from ctypes import c_ssize_t as size
arena, waits = ctypes.CDLL("PATH"), ctypes.PyDLL(None).usleep     # which keeps the GIL
arena.take.restype = arena.idle.restype = size
assert arena.start() == arena.start() == 0      # again after an import that failed
arena.set_limit(size(2**30))
minute, prefaulted = ctypes.c_longlong.in_dll(arena, "minute"), ctypes.c_int()
def take(mib, byte=1):
    at = size(arena.take(size(mib * MIB), ctypes.byref(prefaulted)))
    ctypes.memset(at.value, byte, mib * MIB)
    return at
def wait_until(condition):
    for _ in range(3000):
        if condition(): return
        waits(10000)
    raise AssertionError("30 s")
"""


@pytest.fixture
def watched(library_path, program):
    """A program with an arena of its own, in which the minute is as short as `minute.value` says, in milliseconds."""
    return lambda code, *options: program(WATCHED.replace("PATH", str(library_path)) + code, *options)


def test_idle_memory_goes_back_in_a_program_that_waits(watched):
    """It does a minute after the last result died, and glibc's heap goes with it."""
    watched("""
alone, long = threads(), 10**8
minute.value = long                             # nothing goes back before it is short again, on a busy machine too
at, kept = take(200), take(1)
others = [numpy.ones(MIB, "u1") for _ in range(100)]
last, before = others.pop(), status("VmRSS")    # it keeps the others from the end of the heap
del others
arena.give_back(at)
assert arena.idle() == 200 * MIB and len(threads() - alone) == 1
waits(200000)
last = time.monotonic()
arena.give_back(take(1))                        # and another minute begins
minute.value = 500
arena.wake()
wait_until(lambda: arena.idle() == 0)
assert time.monotonic() - last > 0.49
wait_until(lambda: status("VmRSS") < before - 280 * MIB)
assert ctypes.string_at(kept.value, MIB) == bytes([1]) * MIB
wait_until(lambda: threads() == alone)
minute.value = long
for _ in range(2):
    arena.give_back(take(1))                    # again
    assert len(threads() - alone) == 1
arena.set_limit(size(0))
arena.wake()
wait_until(lambda: threads() == alone)
arena.give_back(take(200))
assert arena.idle() == 0 and threads() == alone
arena.set_limit(size(2**30))
arena.give_back(take(100))                      # at exit
assert len(threads() - alone) == 1
""")


def test_calls_and_forks_while_memory_goes_back(watched):
    """Python warns of the program's own threads."""
    watched("""
minute.value = 20
empty, stop = 0, threading.Event()
def work(seed):
    global empty
    rng = random.Random(seed)
    while not stop.is_set():
        mib = rng.randrange(30, 90)
        at = take(mib, seed)
        assert ctypes.string_at(at.value, mib * MIB) == bytes([seed]) * (mib * MIB)
        arena.give_back(at)
        time.sleep(rng.choice([0, 0.02, 0.021, 0.1]))
        empty += not arena.idle()
def child():
    assert arena.idle() == 0 and len(threads()) == 1
    arena.give_back(take(70))
    assert len(threads()) == 2 or not arena.idle()       # a busy machine
    wait_until(lambda: len(threads()) == 1 and not arena.idle())
def forks():
    try:
        for _ in range(8): forked(child)
        while not empty: time.sleep(0.01)
    finally: stop.set()
together(forks, *(lambda seed=seed: work(seed) for seed in (1, 2, 3)))
wait_until(lambda: arena.idle() == 0 and len(threads()) == 1)
""", "-W", "ignore:This process:DeprecationWarning")  # fmt: skip


START = """
x = numpy.ones(MIB, "u1")
tilecore.set_recycle_limit(2**30)
import re
def advised(at):
    "Whether the system may fill huge pages; how many mappings there are; where the address's one ends."
    with open("/proc/self/smaps") as file: text = file.read()
    flags = [line for line in text.split("\\n") if re.match("[0-9a-f]+-|VmFlags", line)]
    for place, words in zip(flags[::2], flags[1::2]):
        begin, end = (int(word, 16) for word in place.split()[0].split("-"))
        if begin <= at < end: return "hg" in words.split(), len(flags) // 2, end
"""


def test_huge_pages_are_not_filled_again(program):
    """When they were, they took eight times the memory in 20 minutes. One mapping serves many results."""
    program("""
y = tilecore.tile(x[:2**17], 1)
at = y.ctypes.data
before = advised(at)
del y
assert advised(at)[2] == before[2]
tilecore.set_recycle_limit(MIB)
kept = [tilecore.tile(x[:2**17], 1)]
huge, mappings, _ = advised(at)
results = [tilecore.tile(x[:137 * 1024], 1) for _ in range(1400)]
kept += results[::14]
del results
assert tilecore.recycled_bytes() <= MIB
assert not any(advised(y.ctypes.data)[0] for y in kept[1:])
assert advised(at)[1] <= mappings + 4
del kept
tilecore.release_memory()
tilecore.set_recycle_limit(100 * MIB)
assert advised(tilecore.tile(x, 100).ctypes.data)[0] == huge
""")


def test_no_huge_pages_by_numpys_switch(program):
    """There are none after memory went back either, which lifts the advice against them."""
    program("""
at = tilecore.tile(x, 40).ctypes.data
tilecore.release_memory()
assert not advised(at)[0]
""", NUMPY_MADVISE_HUGEPAGE="0")  # fmt: skip


def test_generations_of_forks_leave_nothing_behind(program):
    """Each child begins without idle memory, keeps a result of its own, and drops a parent's: its shared pages go."""
    program("""
ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)     # PR_SET_THP_DISABLE: more would be resident
kept = [tilecore.tile(x[:2**17], 2)]
before = status("VmSize"), status("VmRSS")
for generation in range(40):
    pid = os.fork()
    if pid:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    assert tilecore.recycled_bytes() == 0
    kept.append(tilecore.tile(x[:2**17], 2))
    if len(kept) > 4: kept.pop(0)
    assert tilecore.recycled_bytes() == 0
    assert all((y == 1).all() for y in kept)
assert status("VmSize") < before[0] + 16 * MIB
assert status("VmRSS") < before[1] + 16 * MIB
kept.pop()
assert tilecore.recycled_bytes() == 2**18
os._exit(0)
""")


@pytest.mark.parametrize(("kind", "field"), [("RLIMIT_AS", 0), ("RLIMIT_DATA", 5)])
def test_nothing_is_kept_under_an_address_limit(kind, field, program):
    """Idle memory would count towards the limit, and other allocations would fail."""
    program(f"""
limit = tilecore.get_recycle_limit()
y = tilecore.tile(x, 99); z = tilecore.tile(x, 99); w = tilecore.tile(x, 40); del y
assert tilecore.recycled_bytes() == 99 * 2**20
with open("/proc/self/statm") as file: used = int(file.read().split()[{field}]) * resource.getpagesize()
resource.setrlimit(resource.{kind}, (used + 100 * 2**20, resource.RLIM_INFINITY))
tilecore.tile(x, 40)        # what is idle goes with the next large result,
assert tilecore.recycled_bytes() == 0
del z                       # and nothing is kept any more
assert tilecore.recycled_bytes() == tilecore.get_recycle_limit() == 0
w.resize(42 * MIB, refcheck=False)    # an older result may grow
assert w[:40 * MIB].min() == 1
numpy.ones(260 * 2**20, "u1")     # the arena's addresses went with its last result
assert tilecore.tile(x, 260).min() == 1
refused = "no memory for a result of 3145728000 bytes (3.15 GB); input shape (1048576,)"
refuse(lambda: tilecore.tile(x, 3000), MemoryError, refused)
resource.setrlimit(resource.{kind}, (resource.RLIM_INFINITY,) * 2)
tilecore.tile(x, 40)
assert tilecore.recycled_bytes() == 40 * 2**20 and tilecore.get_recycle_limit() == limit
""")
