"""Inputs of every layout: copied into C order, and tiled twice along each axis; tilecore, its peers and memcpy.

By one thread. tilecore and numpy.copyto write to memory that was written to before; the others make results.
"""

from functools import partial
from itertools import product
from math import isqrt
from unittest import SkipTest

import numpy as np
from peers import memcpy, numpy, tilecore_out, torch, warm_output
from timing import Call, WithThreads
from workloads import Workload, verify

# A layout is a view of an array of at least n items.
LAYOUTS = {
    "transposed": lambda make, n: make(isqrt(n) - 5, n // (isqrt(n) - 5) + 1).T,
    "transposed, power of two": lambda make, n: make(2 ** (n.bit_length() // 2), 2 ** ((n.bit_length() - 1) // 2)).T,
    "reversed": lambda make, n: make(n)[::-1],
    "mirrored": lambda make, n: make(isqrt(n), isqrt(n))[:, ::-1],
    "every 2nd": lambda make, n: make(2 * n)[::2],
    "every 3rd": lambda make, n: make(3 * n)[::3],
    "channels first": lambda make, n: make(isqrt(n // 3), isqrt(n // 3), 3).transpose(2, 0, 1),
    "channels last": lambda make, n: make(3, isqrt(n // 3), isqrt(n // 3)).transpose(1, 2, 0),
    "colours reversed": lambda make, n: make(isqrt(n // 3), isqrt(n // 3), 3)[..., ::-1],
    "four axes reversed": lambda make, n: make(*[isqrt(isqrt(n))] * 4).T,
}
TYPES = ["u1", "i2", "f4", "f8", "c16"]
SIZES = [2**14, 2**18, 2**22, 2**26]
QUICK = [2**18]
MAX_BYTES = 2**27  # of a result
CASE_SECONDS = {"copied": 0.1, "tiled": 0.1}  # hundreds of cases are looked at together


class Layout(Workload):
    """Its name ends in the least size of the input, after those of the layout and the dtype."""

    def input(self):
        def make(*shape):
            return np.resize(np.arange(251).astype(self.dtype), shape)

        layout, _, size = self.name.rsplit(", ", 2)
        return LAYOUTS[layout](make, int(size.split()[0]) // np.dtype(self.dtype).itemsize)


def layouts(full, repeats):
    for name, layout in LAYOUTS.items():
        for dtype in TYPES:
            for nbytes in SIZES if full else QUICK:
                shape = layout(lambda *extents: np.broadcast_to(0, extents), nbytes // np.dtype(dtype).itemsize).shape
                if nbytes * repeats ** len(shape) <= MAX_BYTES:
                    yield Layout(f"{name}, {dtype}, {nbytes} bytes", shape, (repeats,) * len(shape), dtype)


def numpy_copyto(x, reps):
    out = warm_output(x, reps)
    return lambda: np.copyto(out, x) or out


def torch_contiguous(x, reps):
    import torch

    return torch.from_numpy(x).contiguous


CASES = {
    "copied": {"numpy": numpy_copyto, "torch": torch_contiguous, "memcpy": memcpy},
    "tiled": {"numpy": numpy, "torch": torch},
}


def choose(kind, full):
    return product(layouts(full, 1 if kind == "copied" else 2), ["tilecore", *CASES[kind]])


def prepare(kind, workload, case):
    x = workload.input()
    if case == "torch" and min(x.strides) < 0:
        raise SkipTest("torch has no negative strides")
    call = CASES[kind].get(case, partial(tilecore_out, threads=1))(x, workload.reps)
    if case != "memcpy":
        verify(call(), x, workload.reps)
    return WithThreads(call, 1) if case == "torch" else Call(call)


def test_copied(record):
    """All repeats 1: the peers copy."""


def test_tiled(record):
    """Two repeats along each axis."""
