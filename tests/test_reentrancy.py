"""Code that runs while references are written: another thread, an object that dies.

Whatever it does, each item holds its old or its new object, and the counts of all are exact.
"""

import collections
import gc
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tilecore

pytestmark = [pytest.mark.quick, pytest.mark.whole_process]

NEW, OTHER = object(), object()


def counts(items):
    return [sys.getrefcount(item) for item in items]


# ---------------------------------------------------------------- objects that die


class Dying:
    def __init__(self, last_words):
        self.last_words = last_words

    def __del__(self):
        self.last_words()


def test_what_is_let_go_sees_new_references():
    """It dies when what replaces it stands, and may write itself; what is written later replaces that."""
    out = np.full(1000, None)
    seen = []

    def last_words():
        seen.append(out[3] is NEW)
        out[4] = OTHER
        tilecore.tile(np.array([OTHER], object), 10, out[-10:])

    before = counts([NEW, OTHER])
    out[3] = Dying(last_words)
    tilecore.tile(np.array([NEW], object), 1000, out)
    assert seen == [True]
    assert (out[:900] == NEW).all()
    last = sum(1 for item in out if item is OTHER)
    assert counts([NEW, OTHER]) == [before[0] + 1000 - last, before[1] + last]


def test_collections_while_they_are_let_go():
    """Each old object collects garbage, and tiles into the same place; every count is exact at the end."""
    out = np.full(2000, None)
    source = np.array([NEW, OTHER], object)
    before = counts([NEW, OTHER])

    def last_words():
        gc.collect(0)
        tilecore.tile(source[::-1], 1000, out)

    for k in range(0, 2000, 100):
        cycle = [Dying(last_words)]
        cycle.append(cycle)
        out[k], out[k + 1] = cycle, Dying(last_words)
    del cycle
    tilecore.tile(source, 1000, out)
    gc.collect()
    held = [sum(1 for item in out if item is which) for which in (NEW, OTHER)]
    assert sum(held) == 2000
    assert counts([NEW, OTHER]) == [a + b for a, b in zip(before, held, strict=True)]


def test_the_source_changes_in_the_midst():
    """What was read has been counted."""
    x, out = np.array([NEW] * 4000, object), np.full(8000, None)
    before = counts([NEW, OTHER])
    out[1] = Dying(lambda: x.fill(OTHER))
    tilecore.tile(x, 2, out)
    written = int((out == NEW).sum())
    assert 0 < written < 8000 and (out[written:] == OTHER).all()
    assert counts([NEW, OTHER]) == [before[0] - 4000 + written, before[1] + 12000 - written]


def test_threads_that_write_to_each_others_sources():
    """Sources and results of other threads at once: every count is exact at the end."""
    items = [object() for _ in range(5)]
    before = counts(items)
    arrays = [np.array([items[k]] * 6000, object) for k in range(4)]

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(60):
            a, b = rng.choice(4, 2, replace=False)
            if seed % 2:
                tilecore.tile(arrays[a][: 6000 // 3], 3, arrays[b])
            else:
                tilecore.tile_region(arrays[a], 3, (7,), (6007,), arrays[b])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    held = collections.Counter(id(item) for array in arrays for item in array)
    assert counts(items) == [n + held[id(item)] for n, item in zip(before, items, strict=True)]
