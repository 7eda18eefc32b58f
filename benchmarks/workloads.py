"""What is tiled: named workloads, and whether a result is right."""

from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

import tilecore


class Workload(NamedTuple):
    """Tile an input of `shape` and `dtype` by `reps`."""

    name: str
    shape: tuple[int, ...]
    reps: tuple[int, ...]
    dtype: str

    @property
    def output_shape(self) -> tuple[int, ...]:
        return tilecore.output_shape(self.shape, self.reps)

    @property
    def nbytes(self) -> int:
        """The size of the output."""
        return prod(self.output_shape) * np.dtype(self.dtype).itemsize

    def input(self) -> np.ndarray:
        """Small whole numbers, exact in every dtype, with a period that no extent here shares."""
        return np.resize(np.arange(251).astype(self.dtype), self.shape)


WORKLOADS = [Workload(*row) for row in [
    ("a few numbers", (2, 3), (2, 2), "f4"), ("a small matrix", (64, 64), (4, 4), "f4"),
    ("short rows", (200_000, 3), (1, 5), "f4"), ("numbers, each 16 times", (200_000, 1), (1, 16), "f4"),
    ("bytes, each 3 times", (1_000_000, 1), (1, 3), "u1"), ("gray to RGB", (256, 256, 1), (1, 1, 3), "u1"),
    ("image, 4 by 4", (256, 256, 3), (4, 4, 1), "u1"), ("one image to a batch", (1, 64, 56, 56), (16, 1, 1, 1), "f4"),
    ("attention heads", (2, 8, 1, 512, 64), (1, 1, 4, 1, 1), "f2"),
    ("attention mask", (1, 1, 1, 512), (8, 12, 512, 1), "f4"), ("prime extents", (7, 5, 3, 2), (13, 11, 17, 7), "f8"),
    ("one long row", (1_000_000,), (64,), "f4"), ("a large matrix", (1024, 1024), (8, 8), "f4"),
    ("wide rows", (4096, 1024), (1, 8), "f4"),
]]  # fmt: skip

# One array to a batch of 20.
LONG = [Workload(f"{n} MB", (1, n * 12_500), (20, 1), "f4") for n in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)]


def verify(result: ArrayLike, x: np.ndarray, reps: tuple[int, ...]) -> None:
    """Check ``result[i] == x[i mod x.shape]``, for one repeat of the first axis after the other."""
    result, shape = np.asarray(result), tuple(n * r for n, r in zip(x.shape, reps, strict=True))
    if result.shape != shape or result.dtype != x.dtype:
        raise AssertionError(f"{result.shape}, {result.dtype}; not {shape}, {x.dtype}")
    others = np.ix_(*(np.arange(n * r) % n for n, r in zip(x.shape[1:], reps[1:], strict=True)))
    expected = x[:, *others]
    for start in range(0, len(result), len(x)):
        if not np.array_equal(result[start : start + len(x)], expected):
            raise AssertionError(f"wrong values from row {start} on")
