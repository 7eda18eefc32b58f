"""Functions that do the same work as a tiling of some shapes, and whole programs with and without tilecore.

A program is timed three times: with `numpy.tile`, with tilecore, and with a result that was made before, which is the
time of its other work.
"""

from functools import partial
from itertools import product
from unittest import SkipTest

import numpy as np
import peers
from timing import Call
from workloads import WORKLOADS, Workload, verify

import tilecore

CASE_SECONDS = {"program": 1.5}


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
    "tilecore": peers.tilecore,
    "numpy": peers.numpy,
    "numpy.repeat": numpy_repeat,
    "broadcast_to().copy()": numpy_broadcast,
    "numpy.?stack": numpy_stack,
    "torch.expand": torch_expand,
    "einops.repeat": peers.einops,
    "cv2.cvtColor": cv2_color,
    "cv2.merge": cv2_merge,
    "cv2.repeat": cv2_repeat,
}

# ---------------------------------------------------------------- whole programs


def features(tile, x, reps):
    """A loop with other work: each row of positions beside its five offsets, then the distances."""
    offsets = np.linspace(0, 1, x.shape[0] * x.shape[1] * reps[1], dtype="f4").reshape(x.shape[0], -1)

    def run():
        for _ in range(4):
            moved = tile(x, reps) + offsets
            np.sqrt(np.square(moved).sum(axis=1)).mean()

    return run


def loader(tile, x, reps):
    """An epoch of PyTorch's DataLoader over gray images in memory, made RGB one by one."""
    import torch
    from torch.utils.data import DataLoader

    def collate(images):
        return torch.from_numpy(np.stack([tile(image, reps) for image in images]))

    images = DataLoader(np.stack([x] * 128), batch_size=64, collate_fn=collate)
    return lambda: [batch.sum() for batch in images]


def step(tile, x, reps):
    """A step of training: latents repeated for each of a batch, through a convolution and back."""
    import torch

    layer = torch.nn.Conv2d(x.shape[1], 32, 3)

    def run():
        layer.zero_grad()
        layer(torch.from_numpy(tile(x, reps))).square().mean().backward()

    return run


PROGRAMS = {
    Workload("a loop with other work", (100_000, 3), (1, 5), "f4"): features,
    Workload("a DataLoader", (224, 224, 1), (1, 1, 3), "u1"): loader,
    Workload("a training step", (1, 4, 64, 64), (16, 1, 1, 1), "f4"): step,
}
TILES = ("tilecore", "numpy", "other work")


def choose(kind, full):
    return product(PROGRAMS, TILES) if kind == "program" else product(WORKLOADS, FUNCTIONS)


def prepare(kind, workload, case):
    x, reps = workload.input(), workload.reps
    if kind == "program":
        made = np.tile(x, reps)
        tile = {"tilecore": tilecore.tile, "numpy": np.tile, "other work": lambda x, reps: made}[case]
        verify(tile(x, reps), x, reps)
        return Call(PROGRAMS[workload](tile, x, reps))
    call = FUNCTIONS[case](x, reps)
    if call is None:
        raise SkipTest(f"{case} does other work")
    verify(call(), x, reps)
    return Call(call)


def test_rival(record):
    """Each result is dropped before the next call."""


def test_program(record):
    """A loop, a data loader, a training step."""
