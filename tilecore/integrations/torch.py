"""Tilings of PyTorch's tensors: eager, with gradients, and in compiled and exported programs.

A call takes one of four ways:

- Most calls read and write memory directly: tensors on the CPU and NumPy arrays share it.
- With a gradient, they do so in the forward half of a `torch.autograd.Function`.
- Under a compiler, a mode or a transform, it is a call of the operator ``tilecore::tile``, which has a fake kernel, a
  gradient and a rule for `torch.vmap`.
- All else goes to PyTorch's own function: small results with a gradient, other devices and layouts, subclasses,
  forward-mode differentiation, `torch.func.grad`, `torch.jit.trace`.
"""

from __future__ import annotations

# For checks with PyTorch, whose types lack `torch.jit.is_tracing`, and without PyTorch:
# mypy: allow-untyped-calls, allow-untyped-decorators, allow-subclassing-any, no-warn-return-any
# mypy: disable-error-code="import-not-found,attr-defined"
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch._subclasses import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.autograd import forward_ad
from torch.compiler import is_dynamo_compiling

from tilecore._core.arrays import tile_plain
from tilecore._core.request.errors import RequestError, format_error, pass_on, type_name
from tilecore._core.resources.threads import get_num_threads

__all__ = ["repeat", "tile"]
__dir__ = __all__.copy

# Other classes may override `tile`. The last two represent a Tensor while a program is traced.
KINDS = {Tensor, torch.nn.Parameter, FakeTensor, FunctionalTensor}
SMALL_BYTES = 2**15  # below, a gradient's code in Python takes more time than tilecore saves
# NumPy lacks these types: their elements are copied as integers of the same size.
_FLOAT8 = [getattr(torch, name) for name in dir(torch) if name.startswith("float8_")]
INTEGERS = dict.fromkeys(_FLOAT8, torch.uint8) | {torch.bfloat16: torch.int16, torch.complex32: torch.int32}


def tile(input: Tensor, dims: int | Sequence[int]) -> Tensor:
    """Repeat a whole tensor along its axes, as `torch.tile` does.

    >>> import torch
    >>> from tilecore.integrations.torch import tile
    >>> x = torch.tensor([[1, 2, 3],
    ...                   [4, 5, 6]])            # shape (2, 3)
    >>> tile(x, (2, 2)).shape
    torch.Size([4, 6])
    >>> tile(x, (2, 1, 2)).shape                 # the shorter of shape and dims gets 1s in front
    torch.Size([2, 2, 6])
    >>> weight = torch.ones(3, requires_grad=True)
    >>> tile(weight, 4).sum().backward()
    >>> weight.grad                              # the sum over the repeats
    tensor([4., 4., 4.])

    Parameters
    ----------
    input : torch.Tensor
        Of any shape, dtype and strides. For all but plain tensors on the CPU, `torch.tile` is called.
    dims : int or sequence of int
        Repeats per axis, 0 or more; at most 64 of them. They may be symbolic while a program is traced.

    Returns
    -------
    torch.Tensor
        New and contiguous. Its storage is a NumPy array's, which PyTorch cannot resize (`Tensor.resize_`).

    Raises
    ------
    TypeError
        `dims` that are not integers, an input that is not a tensor.
    RuntimeError
        Negative `dims`, sizes that overflow 64 bits or exceed `tilecore.get_max_bytes()`.

    The number of threads is at most the smaller of `torch.get_num_threads()` and `tilecore.get_num_threads()`.

    Source: PyTorch 2.13, `torch.tile`.
    """
    return tiled(input, dims, torch.tile)


def repeat(input: Tensor, *repeats: int | Sequence[int]) -> Tensor:
    """Repeat a whole tensor along its axes, as `torch.Tensor.repeat` does.

    >>> import torch
    >>> from tilecore.integrations.torch import repeat
    >>> x = torch.tensor([1, 2, 3])              # shape (3,)
    >>> repeat(x, 4, 2).shape
    torch.Size([4, 6])
    >>> repeat(x, (4, 2)).shape
    torch.Size([4, 6])

    Parameters
    ----------
    input : torch.Tensor
        As in `tile`.
    repeats : ints, or one sequence of int
        As the `dims` of `tile`, but not fewer than the input has axes.

    Raises
    ------
    TypeError, RuntimeError
        As `tile`, and a RuntimeError for too few repeats.

    Source: PyTorch 2.13, `torch.Tensor.repeat`.
    """
    counts: Any = repeats[0] if len(repeats) == 1 and isinstance(repeats[0], (tuple, list)) else repeats
    if not hasattr(input, "__torch_function__"):  # the proxies of `torch.fx` have it too
        raise TypeError(f"repeat: input must be a tensor, got {type_name(input)}")
    if not isinstance(input, Tensor) or not repeats or len(counts) < Tensor.dim(input):
        return input.repeat(*repeats)  # its error says what is wrong
    return tiled(input, counts, Tensor.repeat)


def tiled(input: Tensor, dims: Any, torch_function: Callable[..., Tensor]) -> Tensor:
    """The tiling, in one of the four ways; `torch_function` is PyTorch's own function."""
    if dims is None:
        return torch_function(input, dims)  # its error says what is wrong
    counts = tuple(dims) if isinstance(dims, (tuple, list)) else (dims,)
    if type(input) not in KINDS or not input.is_cpu or lacks_rule(input):
        return torch_function(input, counts)
    if is_dynamo_compiling() or is_watched():
        return operator(input, counts)
    if not input.requires_grad or not torch.is_grad_enabled():
        return tile_memory(input, counts, torch_function)
    is_small = all(type(count) is int for count in counts) and 0 <= prod(counts) * input.nbytes < SMALL_BYTES
    return torch_function(input, counts) if is_small else Tiling.apply(input, counts, torch_function)


def lacks_rule(input: Tensor) -> bool:
    """Whether the operator lacks a rule for the active transform: forward mode, `torch.func.grad`, `jit.trace`.

    Dynamo reads this too. It cannot see which transform is active, only that one is.
    """
    if forward_ad._current_level >= 0 or torch.jit.is_tracing():
        return True
    active = torch._C._are_functorch_transforms_active()
    return active and (is_dynamo_compiling() or torch._C._functorch.is_gradtrackingtensor(input))


def is_watched() -> bool:
    """Whether a mode or a transform intercepts calls of PyTorch."""
    mode = torch._C._is_torch_function_mode_enabled() or torch._C._len_torch_dispatch_stack() > 0
    return mode or torch._C._are_functorch_transforms_active()


def tile_memory(input: Tensor, dims: Any, torch_function: Callable[..., Tensor] = torch.tile) -> Tensor:
    """The tiling, read from and written to memory."""
    integer = INTEGERS.get(input.dtype)
    try:
        bits = input if integer is None else input.resolve_conj().resolve_neg().view(integer)
        array = bits.numpy(force=True)  # takes tensors that require a gradient, and conjugates if need be
    except (RuntimeError, TypeError, ValueError) as reason:  # sparse, quantized, nested, of more than 64 axes
        pass_on(reason)
        return torch_function(input, dims)
    if not bits.data_ptr():  # empty, or zeros without memory
        return torch_function(input, dims)
    limit = torch.get_num_threads()
    threads = limit if limit < get_num_threads() else None  # the default learns whether a second thread is slower
    try:
        result = torch.from_numpy(tile_plain(array, dims, threads=threads))
    except RequestError as error:
        nested = any(getattr(count, "ndim", isinstance(count, (tuple, list))) for count in dims)
        error.kind = TypeError if nested or error.kind is TypeError else RuntimeError  # as PyTorch's own
        name, names = torch_function.__name__, {"repeats": "dims" if torch_function is torch.tile else "repeats"}
        raise format_error(error, name, array.shape, names, **{names["repeats"]: dims}) from error.__cause__
    if not result.numel():
        return input.new_empty(result.shape)  # NumPy's strides are 0, and PyTorch refuses some views of those
    return result if integer is None else result.view(input.dtype)


class Tiling(torch.autograd.Function):
    """A tiling with a gradient, without the operator: for little data, that would take three times as long."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, dims: Sequence[int], torch_function: Callable[..., Tensor]) -> Tensor:
        set_up(ctx, (input, dims))
        return tile_memory(input, dims, torch_function)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return *sum_repeats(ctx, gradient), None


def set_up(ctx: Any, inputs: tuple[Tensor, Sequence[int]], output: Tensor | None = None) -> None:
    ctx.shape, ctx.dims = inputs[0].shape, inputs[1]


def sum_repeats(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
    split: list[int] = []
    axes = []  # those of `split` that are repeats
    for n, count in zip(*pad_to_one_rank(ctx.shape, ctx.dims), strict=True):
        if not isinstance(count, int) or count != 1:  # comparing a symbol would fix its value
            axes.append(len(split))
            split.append(count)
        split.append(n)
    gradient = gradient.reshape(split)
    return (gradient.sum(axes) if axes else gradient).reshape(ctx.shape), None


def pad_to_one_rank(shape: Sequence[int], dims: Sequence[int]) -> tuple[list[int], list[int]]:
    """Shape and repeats, with 1s in front of the shorter one."""
    more = len(dims) - len(shape)
    return [1] * more + list(shape), [1] * -more + list(dims)


@torch.library.custom_op("tilecore::tile", mutates_args=(), tags=(torch.Tag.flexible_layout,))
def operator(input: Tensor, dims: Sequence[int]) -> Tensor:  # for modes, transforms and compilers
    return tile_memory(input, dims) if input.is_cpu else torch.tile(input, dims)


operator.register_autograd(sum_repeats, setup_context=set_up)


@operator.register_fake
def make_fake(input: Tensor, dims: Sequence[int]) -> Tensor:
    shape, counts = pad_to_one_rank(input.shape, dims)
    return input.new_empty([n * count for n, count in zip(shape, counts, strict=True)])


@operator.register_vmap
def tile_batch(info: Any, in_dims: tuple[int, None], input: Tensor, dims: Sequence[int]) -> tuple[Tensor, int]:
    batch = input.movedim(in_dims[0], 0)
    shape, counts = pad_to_one_rank(batch.shape[1:], dims)
    return tile(batch.reshape(batch.shape[:1] + tuple(shape)), [1, *counts]), 0
