"""Without the GIL: many threads at once. With it, too."""

import sysconfig

import pytest

pytestmark = pytest.mark.process

free_threaded = pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has the GIL")


@free_threaded
def test_importing_leaves_the_gil_off(program, monkeypatch):
    """Every compiled module says that it does not need it; else Python turns it on, and warns."""
    monkeypatch.delenv("PYTHON_GIL", raising=False)
    program("""
import importlib, pkgutil
for module in pkgutil.walk_packages(tilecore.__path__, "tilecore."):
    if not module.name.startswith(("tilecore.integrations.", "tilecore.__main__")):
        importlib.import_module(module.name)
assert not sys._is_gil_enabled()
""")


def test_eight_threads(program):
    """Shared arrays, plans, repeats that change, settings."""
    program("""
import random
x = numpy.arange(3000, dtype="u2").reshape(60, 50)
big = numpy.arange(2**18)                           # 2 MiB
words = numpy.array([str(k) * (k % 40) for k in range(300)], numpy.dtypes.StringDType())
things = numpy.array([object() for _ in range(300)], object)
masked = numpy.ma.masked_less(x, 9)
plan, plan_of_things = tilecore.TilePlan(x.shape, (3, 5), x.dtype), tilecore.TilePlan(300, 7, object)
want = numpy.tile(x, (3, 5))
reps = [3, 5]
arrays = [x] * 4
recycled, limit = tilecore.get_recycle_limit(), tilecore.get_max_bytes()

def change():
    tilecore.set_num_threads(random.randrange(1, 4))
    tilecore.set_max_bytes(limit - random.randrange(9))
    tilecore.set_recycle_limit(recycled - random.randrange(9))
    if random.random() < 0.2: tilecore.release_memory()
    reps.append(1), reps.pop()
    arrays.append(x), arrays.pop()
    return [tilecore.get_num_threads() in (1, 2, 3), limit - tilecore.get_max_bytes() in range(9),
            recycled - tilecore.get_recycle_limit() in range(9), tilecore.recycled_bytes() >= 0]

def in_context():
    number = random.randrange(1, 99)
    with tilecore.num_threads(number):
        return [(plan.tile(x) == want).all(), tilecore.get_num_threads() == number]

CHECKS = [
    change, in_context,
    lambda: tilecore.tile(x, reps).shape in ((180, 250), (3, 300, 50)),
    lambda: len(y := plan.batch(arrays)) in (4, 5) and y == want,
    lambda: plan.tile(x) == want,
    lambda: plan_of_things.tile(things)[300:600] == things,
    lambda: tilecore.tile(x, (3, 5), out=numpy.empty_like(want)) == want,
    lambda: plan.region(x, (10, 20), (150, 240)) == want[10:150, 20:240],
    lambda: tilecore.tile(words, 3)[300:600] == words,
    lambda: tilecore.tile(masked, 2).mask[:, 50:] == masked.mask,
    lambda: tilecore.onnx.tile(x, numpy.array([3, 5])) == want,
]
LARGE = [
    lambda: tilecore.tile(big, (17, 1), threads=2)[16] == big,
    lambda: tilecore.tile(big, (34, 1))[17:] == big,
    lambda: tilecore.tile_mapped(big, (17, 1))[16] == big,
]

def work(seed):
    chosen = random.Random(seed)
    for step in range(200): assert numpy.all(chosen.choice(CHECKS if step % 40 else LARGE)())

together(*(lambda seed=seed: work(seed) for seed in range(8)))
assert tilecore.recycled_bytes() <= tilecore.get_recycle_limit()
assert len({sys.getrefcount(thing) for thing in things}) == 1
""")


@free_threaded
def test_memory_that_is_released_as_it_is_given_back(program):
    """Another thread may release it before its bookkeeping is read: without a lock, two runs in three met that."""
    program("""
tilecore.set_recycle_limit(2**30)
x, done = numpy.ones(2**19, "u1"), []
def make():
    for _ in range(10000): tilecore.tile(x, 3, threads=1)
    done.append(True)
def release():
    while not done: tilecore.release_memory()
together(*[make] * 6, release, release)
""")
