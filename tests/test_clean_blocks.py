"""Recycled memory is kept only as it was when new, and only where idle memory costs nobody anything."""

import sys

import pytest

pytestmark = [pytest.mark.process, pytest.mark.skipif(sys.platform != "linux", reason="only Linux recycles")]

START = """
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.madvise.argtypes = libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
MIB = 2**20
x = numpy.ones(MIB, "u1")
tilecore.set_recycle_limit(2**30)
"""

ATTRIBUTES = {
    "left out of children": "libc.madvise(at, n, 10)",
    "wiped in children": "libc.madvise(at, n, 18)",
    "left out of core dumps": "libc.madvise(at, n, 16)",
    "no huge pages": "libc.madvise(at, n, 15)",
    "read at random": "libc.madvise(at, n, 1)",
    "merged with others": "libc.madvise(at, n, 12)",
    "guarded": "libc.madvise(at, n, 102)",
    "read-only": "libc.mprotect(at, n, 1)",
    "unreadable": "libc.mprotect(at, n, 0)",
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_only_clean_blocks(name, program):
    """What an owner has asked the system for, of its memory, is no concern of the next owner's."""
    program(
        START
        + f"""
def flags(address, bytes):
    "Of each mapping of the block."
    found = []
    with open("/proc/self/smaps") as file:
        for line in file:
            word = line.split()[0]
            if "-" in word and word[-1] != ":":
                start, stop = (int(number, 16) for number in word.split("-"))
                inside = start < address + bytes and stop > address
            elif word == "VmFlags:" and inside:
                found.append(set(line.split()[1:]) & set("rd wr dc wf dd nh hg rr sr mg lo".split()))
    return found
y = tilecore.tile(x, (32, 1))
clean, address = flags(y.ctypes.data, y.nbytes), y.ctypes.data
for begin, length in ((0, 32), (6, 5), (30, 2)):
    at, n = address + begin * MIB, length * MIB
    if {ATTRIBUTES[name]} and ctypes.get_errno() == 22:
        sys.exit(0)     # this kernel does not know it
    del y
    assert tilecore.recycled_bytes() == 32 * MIB, begin
    y = tilecore.tile(x, (32, 1))
    assert y.ctypes.data == address, begin
    assert flags(address, y.nbytes) == clean, (begin, flags(address, y.nbytes), clean)
    child = os.fork()
    child or os._exit(0 if (y == 1).all() else 1)
    assert os.waitpid(child, 0)[1] == 0 and (y == 1).all(), begin
"""
    )


def test_what_is_no_longer_ours_goes(program):
    """Pages that an owner has unmapped, or mapped something else over."""
    program(
        START
        + """
y = tilecore.tile(x, (32, 1))
shared_anonymous_fixed = 0x31
assert libc.mmap(y.ctypes.data + 2**22, 2**22, 3, shared_anonymous_fixed, -1, 0) == y.ctypes.data + 2**22
del y
assert tilecore.recycled_bytes() == 0
assert (tilecore.tile(x, (32, 1)) == 1).all()
"""
    )


@pytest.mark.parametrize(("kind", "field"), [("RLIMIT_AS", 0), ("RLIMIT_DATA", 5)])
def test_nothing_is_kept_where_memory_is_counted(kind, field, program):
    """Idle memory would count, and other allocators would fail for it."""
    program(
        START
        + f"""
import resource
limit = tilecore.get_recycle_limit()
y = tilecore.tile(x, 300); z = tilecore.tile(x, 300); w = tilecore.tile(x, 40); del y
assert tilecore.recycled_bytes() == 300 * 2**20
with open("/proc/self/statm") as file: used = int(file.read().split()[{field}]) * resource.getpagesize()
resource.setrlimit(resource.{kind}, (used + 300 * 2**20, resource.RLIM_INFINITY))
tilecore.tile(x, 40)        # what is idle goes with the next large result,
assert tilecore.recycled_bytes() == 0
del z                       # and nothing is kept any more
assert tilecore.recycled_bytes() == tilecore.get_recycle_limit() == 0
w.resize(42 * MIB, refcheck=False)    # an older result may grow
assert w[:40 * MIB].min() == 1
numpy.ones(800 * 2**20, "u1")
assert tilecore.tile(x, 800).min() == 1
refused = "no memory for a result of 3145728000 bytes; input shape (1048576,)"
refuse(lambda: tilecore.tile(x, 3000), MemoryError, refused)
resource.setrlimit(resource.{kind}, (resource.RLIM_INFINITY,) * 2)
tilecore.tile(x, 40)
assert tilecore.recycled_bytes() == 40 * 2**20 and tilecore.get_recycle_limit() == limit
"""
    )


def test_locked_memory_is_not_kept(program):
    """The system does not take back what is locked, so keeping it would cost somebody else."""
    program(
        START
        + """
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
"""
    )
