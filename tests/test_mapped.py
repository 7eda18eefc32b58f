"""tile_mapped: repeats that share pages; and what it does where they cannot."""

import os
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prelude import MIB, mapped, mappings
from ways import bfloat16

import tilecore

pytestmark = pytest.mark.quick

available = True  # whether the system has files in memory; asked without tilecore
try:
    os.close(os.memfd_create("tilecore"))
except (AttributeError, OSError):
    available = False
needs_mapping = pytest.mark.skipif(not available, reason="only Linux maps")


def numbered(shape, dtype="f4"):
    """Values of which no two within 64 KiB are the same."""
    return (np.arange(prod(shape)) % 32749).astype(dtype).reshape(shape)


LAYOUTS = [np.asarray, np.transpose, np.asfortranarray, np.flip, lambda x: x[..., ::2], lambda x: x[None, ::-1]]
SHARED = [  # shape, reps, dtype
    ((2**16,), (64, 1), "f4"),  # pages, outermost
    ((2**18,), 40, "f4"),  # one axis
    ((750,), 20_000, "f4"),  # joined to whole pages
    ((43_712,), (100, 1), "f4"),  # 16 of 100 repeats: slower than copying, for a sixth of the memory
    ((1001, 4), (20_003, 1), "u1"),  # joined, the last one shorter
    *[((3,), 3_999_999, "u1"), ((1,), 1_500_000, "f8")],
    ((4, 2**15), (48, 2), "f4"),  # rows repeat within each of them
    ((1, 2, 1, 2**13), (20, 2, 6, 2), "f4"),
]
COPIED = [  # sharing does not pay
    ((2, 3), (2, 2), "f4"),  # small
    *[((2**20,), 1, "f4"), ((2**20,), 2, "f4")],
    ((2**18 + 1,), (50, 1), "f4"),  # never whole pages
    *[((1024,), (2000,), "O"), ((1024,), (300,), "T")],
    *[((0, 2**20), (1000, 5), "f4"), ((2**20,), (0, 7), "f4")],
]


@pytest.mark.whole_process
@pytest.mark.parametrize(("shape", "reps", "dtype"), SHARED + COPIED)
def test_shared_or_an_ordinary_copy(shape, reps, dtype, oracle):
    before = mappings() if available else 0
    x = numbered(shape, "i4").astype(dtype)
    y, want = tilecore.tile_mapped(x, reps), oracle(x, reps)
    shared = available and (shape, reps, dtype) in SHARED
    assert mapped(y) == shared and y.flags.owndata != shared
    assert y.flags.writeable and y.flags.c_contiguous and y.flags.aligned and y.dtype == x.dtype
    assert np.array_equal(y, want)
    x[...] = 0  # a copy of it, not the input itself, is what shows
    assert np.array_equal(y, want)
    del y  # and nothing was mapped after its end
    assert not available or mappings() <= before


@needs_mapping
@settings(max_examples=70)
@given(
    st.lists(st.tuples(st.sampled_from([1, 2, 3, 5, 8]), st.integers(1, 6)), max_size=2),
    st.sampled_from([1, 3, 500, 512, 4096, 4097]),
    st.integers(1, 16),
    st.sampled_from(["u1", "f4", "S7", "c16", "V6", bfloat16]),
    st.sampled_from(LAYOUTS),
)
def test_mapped_results_equal_those_of_tile(axes, extent, repeats, dtype, laid_out):
    shape, reps = [n for n, _ in axes] + [extent], [r for _, r in axes] + [repeats]
    x = numbered(shape, "S6").view(dtype) if dtype == "V6" else numbered(shape, dtype)
    x = laid_out(x)
    inner = tilecore.tile(x, reps)
    outer = max(1, 4 * MIB // inner.nbytes)
    y = tilecore.tile_mapped(x, [outer, *reps])
    assert y.tobytes() == inner.tobytes() * outer


@needs_mapping
@pytest.mark.skipif(
    available and Path("/proc/sys/vm/overcommit_memory").read_text().strip() == "2",
    reason="the system counts addresses as memory",
)
def test_larger_than_memory(settings_stay):
    x = numbered((2**24,))  # 64 MiB
    tilecore.set_max_bytes(100 * MIB)
    y = tilecore.tile_mapped(x, (2048, 1))
    assert y.nbytes == 2**37  # 128 GiB
    for row in (0, 1, 1000, 2047):
        assert np.array_equal(y[row, ::4099], x[::4099])
    y[2000, 77] = -5
    assert y[2000, 77] == -5 and y[1999, 77] == x[77] == 77
    del y
    tilecore.set_max_bytes(60 * MIB)  # less than its block
    with pytest.raises(MemoryError, match="tile_mapped: the block that its repeats share would take 67108864 bytes"):
        tilecore.tile_mapped(x, (2048, 1))


START = """
x = numpy.arange(2**16, dtype="f4")
def make(): return tilecore.tile_mapped(x, (256, 1))
"""


@needs_mapping
def test_a_forked_childs_writes_are_its_own(program):
    program("""
y = make()
y[3] = -1
assert mapped(y)
def work():
    global y
    assert (y[3] == -1).all() and (y[4] == x).all()
    y[:100] = -2
    own = make()
    assert mapped(own) and (own == x).all()
    del y
    assert (own == x).all()
forked(work)
assert (y[3] == -1).all() and (y[:3] == x).all() and (y[4:] == x).all()
""")


@needs_mapping
def test_no_more_mappings_than_its_share(program):
    """After that, the result is an ordinary copy, and the size limit counts all of it."""
    program("""
pattern = numpy.arange(750, dtype="f4")
with open("/proc/sys/vm/max_map_count") as file: most = int(file.read()) // 4
if most > 2**20: sys.exit(0)        # more than there is memory for
tilecore.set_max_bytes(2**30)
live = [tilecore.tile_mapped(pattern, 10**6)]
first = mappings()
def make_many():
    while len(live) < 2000: live.append(tilecore.tile_mapped(pattern, 10**6))   # 3 GB
refuse(make_many, MemoryError, "the result, whose repeats cannot share pages, would take 3000000000 bytes")
assert all(map(mapped, live)) and len(live) > 10
assert most // 2 < mappings() <= most
assert mappings() < len(live) * first   # the last ones take what is left
small = make()
assert (small == x).all()
assert all((y[-750:] == pattern).all() for y in live)
del small, live
assert mappings() == 0
assert mapped(make())
""")


@needs_mapping
def test_where_the_system_says_no(program):
    """Too little address space, too small files, locked memory: an ordinary copy, nothing left over."""
    program("""
make()
before = descriptors_now("")
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)       # Python ignores it; a program that embeds Python need not
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
y = make()
assert not mapped(y) and (y == x).all() and mappings() == 0
y = tilecore.tile_mapped(numpy.arange(750, dtype="f4"), 50_000)   # made in scratch
assert not mapped(y) and (y[-750:] == y[:750]).all() and mappings() == 0
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
y = make()
assert mapped(y)
del y
assert descriptors_now("") == before and mappings() == 0
libc = ctypes.CDLL(None)
if not libc.mlockall(2):    # MCL_FUTURE
    try:
        y = make()
        assert not mapped(y) and (y == x).all()
    except MemoryError:
        pass                # more than may be locked
    libc.munlockall()
    assert mapped(make())
del y
for spare in (0, 2**24):    # under a limit, reserved addresses are released too
    with open("/proc/self/statm") as file: used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + spare, resource.RLIM_INFINITY))
    tilecore.release_memory()
refuse(make, MemoryError, "tile_mapped: no memory for a result of 67108864 bytes")
assert mappings() == 0 and descriptors_now("") == before
""")


@pytest.mark.whole_process
@needs_mapping
@pytest.mark.parametrize("refused", [True, False])
@pytest.mark.parametrize("shape", [(1024, 1024), (2**20,), (2048, 512)])
def test_another_shape_before_it_is_mapped(shape, refused, while_threads_are_asked):
    """Other code runs as the number of threads is asked for; then the system may refuse the file."""
    resource = pytest.importorskip("resource")
    a = np.arange(2048 * 1024, dtype="f8").reshape(2048, 1024)[:, ::2]
    want = np.tile(a, (32, 1))
    while_threads_are_asked(lambda: setattr(a, "shape", shape))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16 if refused else before[0], before[1]))
    try:
        y = tilecore.tile_mapped(a, (32, 1))
        assert a.shape == (2048, 512) and (y == want).all() and mapped(y) != refused
    except ValueError as error:
        assert a.shape != (2048, 512) and str(error).startswith("tile_mapped: a changed its shape ")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@needs_mapping
def test_a_block_beyond_the_machines_memory_is_not_begun(program):
    """Linux would give the file more and more pages, and end the process when none is left."""
    program("""
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
begun = []
signal.signal(signal.SIGXFSZ, lambda *_: begun.append(1))
tilecore.set_max_bytes("999999999T")
for n, reps in (3, 2**55), (2**17, 2**35):
    refuse(lambda: tilecore.tile_mapped(numpy.zeros(n), reps), MemoryError, "no memory for a result of")
assert not begun
""")
