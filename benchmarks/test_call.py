"""Calls, of which nine in ten are small: beside the creation of their result (creation.c), which is their limit; by
each of tilecore's functions; calls of other projects, and inputs of every kind, against numpy.tile.

The inputs are those of the test suites of other projects: half of them repeat nothing, most are small, a few are large.
"""

import importlib.util
import sysconfig
import tempfile
from functools import cache, partial
from itertools import product
from math import prod

import numpy as np
import peers
from kernels import compile_c
from timing import Call
from workloads import Workload

import tilecore

# (dtype, shape of the input, repeats)
# fmt: off
INPUTS = [
    ("f8", (0,), (2,)), ("f8", (0,), (1,)), ("f8", (0, 3), (2, 2)), ("i4", (3, 0), (4, 1)), ("f8", (), (3,)),
    ("f8", (), (1_000_001,)), ("f8", (1,), (1,)), ("i8", (3,), (2,)), ("f8", (10,), (5, 1)), ("f4", (2, 3), (2, 2)),
    ("f8", (4, 4), (1, 1)), ("u1", (4, 4, 1), (1, 1, 3)), ("f8", (1, 16), (64, 1)), ("f8", (50,), (100,)),
    ("f8", (512,), (1,)), ("f8", (2048,), (120, 1)), ("f8", (64, 64), (1, 1)), ("f4", (1000,), (10,)),
    ("f4", (2000, 3), (1, 5)), ("u1", (64, 64, 1), (1, 1, 3)), ("f4", (32, 32), (2, 2)), ("f8", (100_000,), (1,)),
    ("f8", (256, 256), (1, 1)), ("f4", (256, 256), (2, 2)), ("u1", (256, 256, 1), (1, 1, 3)), ("f4", (50_000,), (4, 1)),
    ("f4", (1024, 1024), (1, 1)), ("f4", (1024, 1024), (2, 2)), ("f8", (1024, 1024), (1, 2)),
    ("f4", (200_000, 3), (1, 5)), ("f4", (2048, 4096), (1,)),
]
QUICK = INPUTS[:14]  # to 1 KB
# Results of 16 bytes to 8 KB, as often of each size as programs make them: three quarters of up to 256 bytes.
SMALL = [
    ("f8", (2,), (1,)), ("?", (6,), (2,)), ("f4", (4,), (3,)), ("u1", (5, 5), (2, 1)), ("i8", (1,), (8,)),
    ("f8", (3,), (4, 1)), ("f4", (2, 3), (2, 2)), ("f8", (10, 1), (1, 2)), ("?", (50,), (3, 1)),
    ("f8", (1, 3), (10, 1)), ("u1", (8, 1), (1, 3)), ("f8", (2, 2), (2, 2)), ("i4", (3, 4), (2, 1)),
    ("f8", (1, 1), (4, 5)), ("f8", (20,), (1, 1)), ("f8", (3, 2, 2), (1, 2, 2)), ("f8", (3, 3), (4, 1, 1)),
    ("f4", (7, 3), (1, 5)), ("f8", (2,), (50, 1)), ("f8", (30, 1), (1, 4)), ("f4", (16,), (16,)),
    ("f8", (4, 4), (3, 3)), ("f4", (16, 16), (2, 2)), ("u1", (28, 28, 1), (1, 1, 3)), ("f8", (100,), (5, 1)),
    ("f8", (1000,), (1, 1)), ("f4", (250, 4), (1, 2)),
]
# fmt: on
CASE_SECONDS = {"small": 0.2, "door": 0.2, "form": 0.1, "input": 0.1}
TILE = {"tilecore": tilecore.tile, "numpy": np.tile}


class Own(np.ndarray):
    """As a caller writes one, with an attribute."""

    def __array_finalize__(self, obj):
        self.unit = getattr(obj, "unit", None)


KINDS = {
    "float": lambda x: float(x.flat[0]), "list": np.ndarray.tolist, "tuple": lambda x: tuple(x.tolist()),
    "matrix": lambda x: x.view(np.matrix), "record array": lambda x: x.view(np.recarray),
    "own class": lambda x: x.view(Own), "masked array": lambda x: np.ma.array(x, mask=x > 5),
}  # fmt: skip


@cache
def creation():
    """The function in creation.c."""
    with tempfile.TemporaryDirectory() as folder:
        path = compile_c(folder, "creation", f"-I{np.get_include()}", f"-I{sysconfig.get_path('include')}")
        spec = importlib.util.spec_from_file_location("creation", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module.create


SMALL_CASES = peers.PEERS | {
    "creation": lambda x, reps: partial(creation(), x, tilecore.output_shape(x.shape, reps)),
    "numpy.empty": lambda x, reps: partial(np.empty, tilecore.output_shape(x.shape, reps), x.dtype),
    "tilecore": peers.tilecore,
}


class Replaced(Call):
    """A call while `numpy.tile` is replaced: the other calls are NumPy's own."""

    def __init__(self, call):
        with tilecore.replace_numpy_tile():
            super().__init__(call)

    def sample(self):
        with tilecore.replace_numpy_tile():
            return super().sample()


DOORS = {
    "numpy": lambda x, reps: partial(TILE["numpy"], x, reps),
    "tilecore": peers.tilecore,
    "tilecore, list of repeats": lambda x, reps: partial(tilecore.tile, x, list(reps)),
    "tilecore, int64 array": lambda x, reps: partial(tilecore.tile, x, np.array(reps)),
    "tilecore, int32 array": lambda x, reps: partial(tilecore.tile, x, np.array(reps, "i4")),
    "tilecore, axis": lambda x, reps: partial(tilecore.tile, x, reps, axis=(0, 1)),
    "tilecore, Fortran order": lambda x, reps: partial(tilecore.tile, np.asfortranarray(x), reps),
    "tilecore, plan": lambda x, reps: partial(tilecore.TilePlan(x.shape, reps, x.dtype).tile, x),
    "tilecore, region": lambda x, reps: partial(tilecore.tile_region, x, reps, (0, 0), (4, 6)),
    "tilecore, numpy.tile replaced": lambda x, reps: lambda: np.tile(x, reps),
    "tilecore, numpy.tile replaced, keywords": lambda x, reps: partial(np.tile, A=x, reps=reps),
    "tilecore, numpy.tile replaced, bound before": lambda x, reps: partial(TILE["numpy"], x, reps),
    "tilecore, onnx": lambda x, reps: partial(tilecore.onnx.tile, x, reps),
    "tilecore, openvino": lambda x, reps: partial(tilecore.openvino.tile, x, reps),
    "tilecore, directml": lambda x, reps: partial(tilecore.directml.tile, x, reps),
}


def written(kind, full):
    """Each name of the last kind begins with the kind of input."""
    if kind == "small":
        for dtype, shape, reps in SMALL if full else SMALL[::3]:
            shape = (1,) * (len(reps) - len(shape)) + shape  # some peers want one repeat for each axis
            yield Workload(f"{shape} × {reps} {dtype}", shape, reps, dtype)
    elif kind == "door":
        yield Workload("a few numbers", (2, 3), (2, 2), "f4")
    elif kind == "form":
        for dtype, shape, reps in INPUTS if full else QUICK:
            yield Workload(f"{dtype} {shape} × {reps}", shape, reps, dtype)
    else:
        for name, shape, reps in product(KINDS, [(4, 4), (64, 64)][: 1 + full], [(1, 1), (1, 3), (2, 2)]):
            yield Workload(f"{name}, {shape} × {reps}", shape, reps, "f8")


CASES = {"small": SMALL_CASES, "door": DOORS, "form": TILE, "input": TILE}


def choose(kind, full):
    return product(written(kind, full), CASES[kind])


def prepare(kind, workload, case):
    x = np.arange(prod(workload.shape)).reshape(workload.shape).astype(workload.dtype)
    name, reps = workload.name.partition(",")[0], workload.reps
    if kind in {"small", "door"}:
        call = CASES[kind][case](x, reps)
        if case not in {"creation", "numpy.empty"}:
            np.testing.assert_array_equal(call(), TILE["numpy"](x, reps), strict=True)
        return (Replaced if "replaced" in case else Call)(call)
    x = x if kind == "form" else KINDS[name](x)
    np.testing.assert_array_equal(tilecore.tile(x, reps), np.tile(x, reps), strict=True)
    return Call(partial(TILE[case], x, reps))


def test_small(record):
    """Results of up to 8 KB."""


def test_door(record):
    """Each of tilecore's functions, for one small result."""


def test_form(record):
    """What other projects call."""


def test_input(record):
    """Of every kind."""
