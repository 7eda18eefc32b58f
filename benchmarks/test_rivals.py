"""Functions that do the same work as a tiling of some shapes."""

from functools import partial
from itertools import product
from unittest import SkipTest

import numpy as np
import peers
from timing import Call
from workloads import WORKLOADS, verify

import tilecore


def repeated(x, reps):
    """The only axis that is repeated, or None."""
    axes = [axis for axis, count in enumerate(reps) if count > 1]
    return axes[0] if len(axes) == 1 else None


def is_broadcast(x, reps):
    return all(n == 1 or count == 1 for n, count in zip(x.shape, reps, strict=True))


def is_gray(x, reps):
    return x.ndim == 3 and reps == (1, 1, 3) and x.shape[2] == 1


# ---------------------------------------------------------------- functions: None if they do not do this work


def numpy_repeat(x, reps):
    axis = repeated(x, reps)
    return partial(np.repeat, x, reps[axis], axis) if axis is not None and x.shape[axis] == 1 else None


def numpy_broadcast(x, reps):
    shape = tilecore.output_shape(x.shape, reps)
    return (lambda: np.broadcast_to(x, shape).copy()) if is_broadcast(x, reps) else None


def numpy_stack(x, reps):
    """`numpy.vstack`, `hstack` or `dstack`, by the axis."""
    axis = repeated(x, reps)
    stack = {0: np.vstack if x.ndim > 1 else np.hstack, 1: np.hstack, 2: np.dstack}.get(axis)
    return partial(stack, [x] * reps[axis]) if stack else None


def torch_expand(x, reps):
    import torch

    shape, tensor = tilecore.output_shape(x.shape, reps), torch.from_numpy(x)
    return (lambda: tensor.expand(shape).contiguous()) if is_broadcast(x, reps) else None


def cv2_color(x, reps):
    import cv2

    return partial(cv2.cvtColor, x, cv2.COLOR_GRAY2RGB) if is_gray(x, reps) else None


def cv2_merge(x, reps):
    import cv2

    return partial(cv2.merge, [x[..., 0]] * 3) if is_gray(x, reps) else None


def cv2_repeat(x, reps):
    import cv2

    channels = x.ndim == 3 and x.shape[2] in (3, 4) and reps[2] == 1
    return partial(cv2.repeat, x, *reps[:2]) if x.ndim == 2 or channels else None


FUNCTIONS = {
    "tilecore": peers.tilecore, "numpy": peers.numpy, "numpy.repeat": numpy_repeat,
    "broadcast_to().copy()": numpy_broadcast, "numpy.?stack": numpy_stack, "torch.expand": torch_expand,
    "einops.repeat": peers.einops, "cv2.cvtColor": cv2_color, "cv2.merge": cv2_merge, "cv2.repeat": cv2_repeat,
}  # fmt: skip


def choose(kind, full):
    return product(WORKLOADS, FUNCTIONS)


def prepare(kind, workload, case):
    x, reps = workload.input(), workload.reps
    call = FUNCTIONS[case](x, reps)
    if call is None:
        raise SkipTest(f"{case} does other work")
    verify(call(), x, reps)
    return Call(call)


def test_rival(record):
    """Each result is dropped before the next call."""
