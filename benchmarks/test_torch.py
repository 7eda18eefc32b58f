"""Tensors: tilecore's tile and PyTorch's, by the number of threads; a call, and one with its gradient."""

from functools import partial
from itertools import product
from math import prod

import pytest
from timing import WithThreads
from workloads import WORKLOADS, verify

torch = pytest.importorskip("torch", exc_type=ImportError)
from tilecore.integrations.torch import tile  # noqa: E402

CASES = {
    f"{name} {threads} thread{'s' * (threads > 1)}": (call, threads)
    for threads in (1, 2)
    for name, call in {"tilecore": tile, "torch": torch.tile}.items()
}


def choose(kind, full):
    workloads = [workload for workload in WORKLOADS if kind == "call" or workload.dtype[0] == "f"]  # has a gradient
    return product(workloads, CASES)


def prepare(kind, workload, case):
    call, threads = CASES[case]
    x, reps = workload.input(), workload.reps
    tensor = torch.from_numpy(x)
    verify(call(tensor, reps).numpy(), x, reps)
    if kind == "call":
        return WithThreads(partial(call, tensor, reps), threads)
    parameter, gradient = torch.nn.Parameter(tensor), torch.ones(workload.output_shape, dtype=tensor.dtype)

    def step():
        return torch.autograd.grad(call(parameter, reps), parameter, gradient)

    assert (step()[0] == prod(reps)).all()
    return WithThreads(step, threads)


def test_call(record):
    """The result is dropped before the next call, as in test_tile.py."""


def test_step(record):
    """With the gradient of the input, as in one step of training."""
