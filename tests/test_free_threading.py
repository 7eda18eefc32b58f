"""Without the GIL: others write to what is tiled, and nothing that they do breaks a count. With it, too."""

import sysconfig

import pytest

pytestmark = pytest.mark.process

free_threaded = pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has the GIL always"
)


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


# ---------------------------------------------------------------- another thread writes to the source

START = """
RECORD = numpy.dtype([("n", "i8"), ("o", "O"), ("p", "O", (2,))])
PACKED = numpy.dtype([("n", "i2"), ("o", "O"), ("p", "O", (2,))])   # no reference is aligned
N = 2000

KINDS = {"objects": numpy.dtype(object), "records": RECORD, "packed": PACKED}

def empty(kind): return numpy.zeros(N, KINDS[kind])

def fill(x, values):    # in C: each object dies as soon as another is there
    if x.dtype == object: x[:] = values
    else: x["n"], x["o"], x["p"][:, 0], x["p"][:, 1] = 1, values, values, values[::-1]

def objects(y):
    return y.ravel().tolist() if y.dtype == object else [*y["o"].ravel(), *y["p"].ravel()]
"""

WAYS = {
    "region": "tilecore.tile_region(x, 9, (7,), (7 + 2 * N,))",
    "whole": "tilecore.tile(x, (8, 1))",
    "out": "tilecore.tile(x, 2, mine)",
    "shared out": "tilecore.tile(x, 2, views.pop())",
    "plan": "plan.tile(x)",
    "batch": "plan.batch([x, x])",
}


@pytest.mark.parametrize("way", WAYS)
def test_another_thread_writes_to_the_source(way, program):
    """Numbers that nothing else holds die while they are read. Things live on: at the end each is counted as often
    as it is held."""
    program(f"""
class Thing: pass

def check(kind, write, rounds, items):
    # The results, the last of each thread's; `items` may stand in them.
    shared = numpy.zeros(2 * N, x.dtype)
    views = [shared[:] for _ in range(99)]
    plan = tilecore.TilePlan(x.shape, 2, x.dtype)
    done, kept = [], []

    def write_on():
        while len(done) < 3: write()

    def tile():
        mine = numpy.zeros(2 * N, x.dtype)
        for _ in range(rounds):
            y = {WAYS[way]}
            if y.base is not shared: assert {{type(item) for item in objects(y)}} <= {{items, type(None)}}
        kept.append(y.copy())
        done.append(True)

    together(write_on, tile, tile, tile)
    assert {{type(item) for item in objects(shared)}} <= {{items, int}}
    return [shared, *kept]

for kind in KINDS:
    x, values = empty(kind), numpy.random.default_rng(1).random(N)
    fill(x, values)
    check(kind, lambda: fill(x, values), 20, float)

    things = [Thing() for _ in range(5)]
    x = empty(kind)
    one, other = (numpy.array((things[k:] + things[:k]) * (N // 5), object) for k in (0, 2))
    def counts(): return [sys.getrefcount(thing) for thing in things]
    before = counts()
    fill(x, one)
    full = [n - m for n, m in zip(counts(), before)]
    results = check(kind, lambda: (fill(x, other), fill(x, one)), 10, Thing)
    held = dict.fromkeys(things, 0)
    for y in (x, *results):
        for item in objects(y):
            if type(item) is Thing: held[item] += 1
    want = [n + held.pop(thing) for n, thing in zip(before, things)]
    item = y = thing = None
    assert counts() == want, (kind, want, counts())
    results.clear()
    assert counts() == [n + m for n, m in zip(before, full)]
""")


def test_what_is_dying_is_read_as_none(program):
    """NumPy lets go of an object before another is in its place, and then code may run."""
    program("""
import weakref
class Thing: pass
new = Thing()
for dtype in (object, [("n", "i2"), ("o", "O")]):
    x = numpy.zeros(3, dtype)
    items = x if dtype is object else x["o"]
    seen = []
    def look(_):
        seen.append(tilecore.tile(x, 2))
        seen.append(tilecore.tile_region(x, 9, (1,), (5,)))
        seen.append(tilecore.tile(x, (60_000, 1)))
        seen.append(tilecore.tile(x, 2, numpy.zeros(6, dtype)))
    items[1] = Thing()
    watch = weakref.ref(items[1], look)
    items[1] = new
    assert len(seen) == 4 and items[1] is new
    for y in seen:
        for item in (y if dtype is object else y["o"]).flat: assert item is new or type(item) in (int, type(None))
""")


# ---------------------------------------------------------------- eight threads


def test_eight_threads(program):
    """Shared arrays, plans, `out`s, repeats that change, settings."""
    program("""
import random
x = numpy.arange(3000, dtype="u2").reshape(60, 50)
big = numpy.arange(2**18)                           # 2 MiB
words = numpy.array([str(k) * (k % 40) for k in range(300)], numpy.dtypes.StringDType())
things = numpy.array([object() for _ in range(300)], object)
masked = numpy.ma.masked_less(x, 9)
plan, plan_of_things = tilecore.TilePlan(x.shape, (3, 5), x.dtype), tilecore.TilePlan(300, 7, object)
want = numpy.tile(x, (3, 5))
out, out_of_things = numpy.zeros_like(want), numpy.zeros(2100, object)
reps = [3, 5]
arrays = [x] * 4
recycled, limit = tilecore.get_recycle_limit(), tilecore.get_max_bytes()

def change():
    tilecore.set_num_threads(random.randrange(1, 4))
    tilecore.set_max_bytes(limit - random.randrange(9))
    tilecore.set_recycle_limit(recycled - random.randrange(9))
    tilecore.release_memory() if random.random() < 0.2 else None
    assert tilecore.get_num_threads() in (1, 2, 3) and limit - tilecore.get_max_bytes() in range(9)
    assert recycled - tilecore.get_recycle_limit() in range(9) and tilecore.recycled_bytes() >= 0
    reps.append(1), reps.pop()
    arrays.append(x), arrays.pop()

def check_reps():
    y = tilecore.tile(x, reps)
    assert y.shape in ((180, 250), (3, 300, 50))

def check_batch():
    y = plan.batch(arrays)
    assert len(y) in (4, 5) and (y == want).all()

def check_things():
    y = tilecore.tile(things, 7, out_of_things)
    assert (plan_of_things.tile(things)[300:600] == things).all()

def check_context():
    number = random.randrange(1, 99)
    with tilecore.num_threads(number):
        y = plan.tile(x)
        assert tilecore.get_num_threads() == number and (y == want).all()

CHECKS = [
    check_reps, check_batch, check_things, check_context,
    lambda: (plan.tile(x) == want).all() or 1 / 0,
    lambda: plan.tile(x, out),
    lambda: (tilecore.tile(x, (3, 5), out=numpy.empty_like(want)) == want).all() or 1 / 0,
    lambda: (plan.region(x, (10, 20), (150, 240)) == want[10:150, 20:240]).all() or 1 / 0,
    lambda: (tilecore.tile(words, 3)[300:600] == words).all() or 1 / 0,
    lambda: (tilecore.tile(masked, 2).mask[:, 50:] == masked.mask).all() or 1 / 0,
    lambda: (tilecore.onnx.tile(x, numpy.array([3, 5])) == want).all() or 1 / 0,
    change,
]
LARGE = [
    lambda: (tilecore.tile(big, (17, 1), threads=2)[16] == big).all() or 1 / 0,
    lambda: (tilecore.tile(big, (34, 1))[17:] == big).all() or 1 / 0,
    lambda: (tilecore.tile_mapped(big, (17, 1))[16] == big).all() or 1 / 0,
]

def work(seed):
    chosen = random.Random(seed)
    for step in range(200): chosen.choice(CHECKS)() if step % 40 else chosen.choice(LARGE)()

together(*(lambda seed=seed: work(seed) for seed in range(8)))
assert tilecore.recycled_bytes() <= tilecore.get_recycle_limit()
assert (out == want).all() and (out_of_things[:300] == things).all()
held = [sum(1 for item in [*things, *out_of_things] if item is thing) for thing in things]
assert held == [8] * 300
""")


@free_threaded
def test_memory_that_is_released_as_it_is_given_back(program):
    """By other threads: it may be gone before the next word of its notes is read. Two runs in three met that."""
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
