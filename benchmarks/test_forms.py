"""What callers write: each form of the repeats over many inputs, and each kind of input; against numpy.tile.

The cases are those of the test suites of other projects: half of them repeat nothing, most are small, a few are large.
"""

from functools import partial
from itertools import product
from math import prod

import numpy as np
from timing import Call
from workloads import Workload

import tilecore

FORMS = {
    "tuple": tuple,
    "list": list,
    "int": lambda reps: reps[-1],
    "NumPy int": lambda reps: np.int64(reps[-1]),
    "integer array": np.array,
}

# (dtype, shape of the input, repeats)
# fmt: off
INPUTS = [
    ("f8", (0,), (2,)), ("f8", (0,), (1,)), ("f8", (0, 3), (2, 2)), ("i4", (3, 0), (4, 1)),
    ("f8", (), (3,)), ("f8", (), (1_000_001,)), ("f8", (1,), (1,)), ("i8", (3,), (2,)),
    ("f8", (10,), (5, 1)), ("f4", (2, 3), (2, 2)), ("f8", (4, 4), (1, 1)), ("u1", (4, 4, 1), (1, 1, 3)),
    ("f8", (1, 16), (64, 1)), ("f8", (50,), (100,)), ("f8", (512,), (1,)), ("f8", (2048,), (120, 1)),
    ("f8", (64, 64), (1, 1)), ("f4", (1000,), (10,)), ("f4", (2000, 3), (1, 5)), ("u1", (64, 64, 1), (1, 1, 3)),
    ("f4", (32, 32), (2, 2)), ("f8", (100_000,), (1,)), ("f8", (256, 256), (1, 1)), ("f4", (256, 256), (2, 2)),
    ("u1", (256, 256, 1), (1, 1, 3)), ("f4", (50_000,), (4, 1)), ("f4", (1024, 1024), (1, 1)),
    ("f4", (1024, 1024), (2, 2)), ("f8", (1024, 1024), (1, 2)), ("f4", (200_000, 3), (1, 5)), ("f4", (2048, 4096), (1,)),
]
# fmt: on
QUICK = INPUTS[:14]  # to 1 KB
CASE_SECONDS = {"form": 0.1, "input": 0.1}
TILE = {"tilecore": tilecore.tile, "numpy": np.tile}


class Own(np.ndarray):
    """As a caller writes one, with an attribute."""

    def __array_finalize__(self, obj):
        self.unit = getattr(obj, "unit", None)


KINDS = {
    "float": lambda x: float(x.flat[0]),
    "list": np.ndarray.tolist,
    "tuple": lambda x: tuple(x.tolist()),
    "matrix": lambda x: x.view(np.matrix),
    "record array": lambda x: x.view(np.recarray),
    "own class": lambda x: x.view(Own),
    "masked array": lambda x: np.ma.array(x, mask=x > 5),
}
KIND_SHAPES = [(4, 4), (64, 64)]
KIND_REPS = [(1, 1), (1, 3), (2, 2)]


def written(kind, full):
    """Each name begins with the form or the kind."""
    if kind == "form":
        for form, (dtype, shape, reps) in product(FORMS, INPUTS if full else QUICK):
            yield Workload(f"{form}, {dtype} {shape} × {reps}", shape, reps, dtype)
    else:
        for name, shape, reps in product(KINDS, KIND_SHAPES if full else KIND_SHAPES[:1], KIND_REPS):
            yield Workload(f"{name}, {shape} × {reps}", shape, reps, "f8")


def choose(kind, full):
    return product(written(kind, full), TILE)


def prepare(kind, workload, case):
    x = np.arange(prod(workload.shape)).reshape(workload.shape).astype(workload.dtype)
    name, reps = workload.name.partition(",")[0], workload.reps
    x, reps = (x, FORMS[name](reps)) if kind == "form" else (KINDS[name](x), reps)
    np.testing.assert_array_equal(tilecore.tile(x, reps), np.tile(x, reps), strict=True)
    return Call(partial(TILE[case], x, reps))


def test_form(record):
    """Of the repeats."""


def test_input(record):
    """Of each kind."""
