"""Random tilings, to find what the named workloads miss: shapes, layouts, dtypes and repeats; against numpy.tile.

The draw is the same each time. The environment variable SEED chooses another one. The report names the forms in which
tilecore is clearly slower.
"""

import os
from functools import partial
from itertools import product
from math import prod
from random import Random

import numpy as np
from timing import Call
from workloads import Workload, verify

import tilecore

FORMS = {"drawn": 145, "references": 60}
QUICK = 20
MIN_BYTES, MAX_BYTES = 2**14, 2**24  # of a result
TYPES = ["u1", "i2", "f4", "f8", "c16"]
STRINGS = np.dtypes.StringDType()
KINDS = ["object"]
if np.lib.NumpyVersion(np.__version__) < "2.5.0":  # later ones make no view with given strides of such strings
    KINDS += ["short strings", "long strings"]
LAYOUTS = ["C", "F", "transposed", "reversed", "every 2nd", "mixed"]


class Form(Workload):
    """Its name: a number, the layout, the strides over the itemsize, and what the items are."""

    def input(self):
        *_, strides, items = self.name.split(", ", 3)
        strides = tuple(map(int, strides.split()))
        reaches = [stride * (n - 1) for stride, n in zip(strides, self.shape, strict=True)]
        least, most = sum(min(0, reach) for reach in reaches), sum(max(0, reach) for reach in reaches)
        base = make(items, most - least + 1)
        strides = [base.itemsize * stride for stride in strides]
        return np.ndarray(self.shape, base.dtype, base, -least * base.itemsize, strides)


def make(items, n):
    if items == "object":
        return np.arange(n).astype(float).astype(object)
    if "strings" in items:
        return np.array([f"{'longer than an item ' * (items == 'long strings')}{k % 997}" for k in range(n)], STRINGS)
    return np.resize(np.arange(251).astype(items), n)


def draw(random, number, kind):
    """Most forms repeat one axis, and most layouts have one property."""
    items = random.choice(TYPES if kind == "drawn" else KINDS)
    rank = random.choice([1, 2, 2, 3, 3, 4])
    reps = [1] * rank
    for axis in random.sample(range(rank), random.choice([1, 1, min(2, rank)])):
        reps[axis] = random.choice([2, 3, 4, 6, 8, 16, int(2 ** random.uniform(1, 5))])
    size = np.dtype(items).itemsize if kind == "drawn" else 16
    n = MIN_BYTES * (MAX_BYTES / MIN_BYTES) ** random.random() / size / prod(reps)
    shares = [random.random() ** 2 + 0.02 for _ in reps]
    shape = [max(1, round(n ** (share / sum(shares)))) for share in shares]
    layout = random.choice(LAYOUTS)
    order, steps = list(range(rank)), [1] * rank
    if layout == "F":
        order.reverse()
    if layout in ("transposed", "mixed"):
        random.shuffle(order)
    if layout in ("reversed", "mixed"):
        steps[random.randrange(rank)] = -1
    if layout in ("every 2nd", "mixed"):
        steps[random.randrange(rank)] *= random.choice([2, 2, 3])
    strides, pitch = [0] * rank, 1
    for axis in reversed(order):
        strides[axis] = pitch * steps[axis]
        pitch *= shape[axis] * abs(steps[axis])
    name = f"{number}, {layout}, {' '.join(map(str, strides))}, {items}"
    return Form(name, tuple(shape), tuple(reps), items if kind == "drawn" else "O")


def choose(kind, full):
    random = Random(os.environ.get("SEED", "1"))
    forms = [draw(random, number, kind) for number in range(FORMS[kind] if full else QUICK)]
    return product(forms, ("tilecore", "numpy"))


def prepare(kind, workload, case):
    x, reps = workload.input(), workload.reps
    call = partial(tilecore.tile if case == "tilecore" else np.tile, x, reps)
    verify(call(), x, reps)
    return Call(call)


def test_drawn(record):
    """Numbers of 1 to 16 bytes, by the default call."""


def test_references(record):
    """Objects and strings."""
