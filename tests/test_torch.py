"""Tilings of tensors: values, gradients, and who else looks at PyTorch's calls: compilers, modes and transforms."""

import copy
import os
import pickle
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import tilecore

pytestmark = [
    pytest.mark.quick,
    pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental"),
    pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning"),  # PyTorch itself uses it
    pytest.mark.filterwarnings("ignore:.torch.jit:FutureWarning"),  # as PyTorch 2.15 says it
]

torch = pytest.importorskip("torch", exc_type=ImportError)
from torch.autograd import forward_ad, gradcheck, gradgradcheck  # noqa: E402

from tilecore.integrations.torch import INTEGERS, operator, repeat, tile  # noqa: E402

MODULE = sys.modules[tile.__module__]
DIMS = [(2, 3), (2,), (), (2, 1, 3), (0, 2), (1, 1)]
NUMPY_HAS = """bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 complex64
complex128""".split()
TYPES = [getattr(torch, name) for name in NUMPY_HAS] + list(INTEGERS)


def matrix(dtype=torch.float32):
    return torch.arange(6).reshape(2, 3).to(dtype)


def bits(tensor):
    """As integers: NaNs and signs of zero count, and PyTorch compares what it otherwise could not."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    sizes = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    if tensor.dtype == torch.complex128:
        tensor = torch.view_as_real(tensor)
    return tensor.contiguous().view(sizes[tensor.dtype.itemsize])


def assert_same(ours, theirs):
    assert (type(ours), ours.dtype, ours.shape) == (type(theirs), theirs.dtype, theirs.shape)
    assert ours.is_contiguous() and ours.requires_grad == theirs.requires_grad
    assert ours.numel() or ours.stride() == theirs.stride()  # which some views ask of empty tensors too
    assert torch.equal(bits(ours), bits(theirs))


def test_views_of_every_kind_as_pytorch():
    """Kinds of views that test_random_tensors does not make."""
    x, z = matrix(), torch.tensor([1 + 2j, 3])
    views = [torch.as_strided(x, (2, 2), (1, 1), 1), z.conj().imag, z.to(torch.complex32).conj()]
    for view in (*views, torch._neg_view(x.bfloat16()), torch._efficientzerotensor(3), torch.ones((1,) * 65)):
        for dims in DIMS:
            assert_same(tile(view, dims), torch.tile(view, dims))
            if len(dims) >= view.dim():
                assert_same(repeat(view, dims), view.repeat(dims))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_memory_is_shared_and_recycled(dtype):
    x = torch.ones(1000, 1000, dtype=dtype)
    result = tile(x, (4, 10))
    result.mul_(torch.ones(10_000, dtype=dtype, requires_grad=True))  # as a view of integers it would have no gradient
    place = result.data_ptr()
    del result
    assert tilecore.recycled_bytes() >= x.nbytes * 40
    result = tile(x, (4, 10))
    assert result.data_ptr() == place
    result[0, 0] = 7
    assert x[0, 0] == 1


def test_repeat_is_traced():
    class Twice(torch.nn.Module):
        def forward(self, x):
            return repeat(x, 2, x.shape[0]) + repeat(x, (2, 2))

    traced = torch.fx.symbolic_trace(Twice())
    assert_same(traced(matrix()), Twice()(matrix()))


FORMS = {
    "int": (tile, 2), "list": (tile, [2, 3]), "size": (tile, torch.Size([2, 3])), "ints": (repeat, 2, 3),
    "mixed": (tile, (torch.tensor(2), np.int8(3))), "tuple": (repeat, (2, 3)),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_repeats(form, monkeypatch):
    monkeypatch.setattr(MODULE, "SMALL_BYTES", 0)
    (call, *dims), x = copy.deepcopy(FORMS[form]), matrix()
    wanted = x.tile((1, 2) if form == "int" else (2, 3))
    assert_same(call(x, *dims), wanted)
    parameter = torch.nn.Parameter(x)
    result = call(parameter, *dims)
    if form == "list":
        dims[0][:] = [7, 7]  # the gradient is that of the call
    result.sum().backward()
    assert torch.equal(parameter.grad, torch.full((2, 3), wanted.numel() / 6))


ERRORS = {
    "negative": ((-1, 2), "must not be negative, got -1 for axis 0"),
    "float": ((2.0, 2), "must be integers, but item 0 is of type float"),
    "bool": ((True, 2), "must be integers, but item 0 is of type bool"),
    "array": ((np.array([2, 2]), 1), "item 0 is of type ndarray"),
    "overflow of an axis": ((2**62, 1), "axis 0 overflows"),
    "overflow": ((2**40, 2**40), "more than 9223372036854775807 elements"),
    "memory": ((2**45, 1), "bytes .844 TB., more than the limit of"),
}


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("needs", [False, True])
def test_errors_are_of_pytorch_kinds(name, needs):
    dims, text = ERRORS[name]
    x = matrix().requires_grad_(needs)
    for ours, theirs, argument in ((tile, torch.tile, "dims"), (repeat, torch.Tensor.repeat, "repeats")):
        with pytest.raises((TypeError, RuntimeError)) as wanted:
            theirs(x, dims)
        with pytest.raises(wanted.type, match=rf"^{ours.__name__}: .*{text}.*; input shape \(2, 3\), {argument}"):
            ours(x, dims)


def test_errors_of_repeat_and_of_other_inputs():
    with pytest.raises(RuntimeError, match="Number of dimensions of repeat dims"):
        repeat(matrix(), 2)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        repeat(torch.tensor(1))
    for wrong in ([1, 2], np.ones(2)):
        with pytest.raises(TypeError, match="^repeat: input must be a tensor, got (list|ndarray)$"):
            repeat(wrong, 2)
    for wrong in ([1, 2], 2), (matrix(), None):
        with pytest.raises(TypeError, match="must be (Tensor|tuple of ints), not (list|NoneType)"):
            tile(*wrong)


def test_others_go_to_pytorch():
    x, Named = matrix(), type("Named", (torch.Tensor,), {})
    assert type(tile(x.as_subclass(Named), (2, 2))) is type(repeat(x.as_subclass(Named), 2, 2)) is Named
    assert tile(x.to("meta"), (2, 2)).device.type == "meta"
    with torch.device("meta"):  # a mode
        assert_same(tile(x, (2, 2)), x.tile(2, 2))
    for other in (x.to_sparse(), torch.empty(3, dtype=torch.uint4)):
        with pytest.raises(RuntimeError):  # PyTorch's own cannot do it
            tile(other, (2, 2))


def test_threads_are_those_that_both_allow(monkeypatch):
    asked = []
    tile_plain = tilecore._core.arrays.tile_plain
    spy = lambda a, reps, threads: asked.append(threads) or tile_plain(a, reps)  # noqa: E731
    monkeypatch.setattr(MODULE, "tile_plain", spy)
    for theirs, ours in ((1, 3), (3, 1), (3, 2)):
        monkeypatch.setattr(torch, "get_num_threads", lambda theirs=theirs: theirs)
        with tilecore.num_threads(ours):
            tile(matrix(), 2)
    assert asked == [1, None, None]  # at most ours, and the default learns


def test_random_tensors(oracle):
    """Of any type, view and repeats; with a gradient where they can have one."""
    rng = np.random.default_rng(27)
    for number in range(300):
        dtype = TYPES[number % len(TYPES)]
        rank = rng.integers(0, 5)
        shape = tuple(rng.choice([0, 1, 1, 2, 2, 3, 5], rank))
        room = tuple(n * k for n, k in zip(shape, rng.integers(1, 3, rank), strict=True))
        count = int(np.prod(room, initial=1))
        if dtype == torch.bool:
            x = torch.from_numpy(rng.integers(0, 2, room).astype(bool))
        else:
            x = torch.frombuffer(bytearray(rng.bytes((count + 1) * dtype.itemsize)), dtype=dtype)[1:].reshape(room)
        x = x[tuple(slice(None, None, k // max(n, 1) or 1) for n, k in zip(shape, room, strict=True))]
        x = x.permute(rng.permutation(rank).tolist())
        if rank and rng.random() < 0.2:
            x = x[:1].expand(3, *x.shape[1:]) if x.shape[0] else x
        if x.is_complex() and rng.random() < 0.5:
            x = x.conj()
        if (x.is_floating_point() or x.is_complex()) and rng.random() < 0.3:
            x = x.detach().requires_grad_()
        dims = tuple(map(int, rng.choice([0, 1, 1, 2, 3], rng.integers(0, 6))))
        with torch.inference_mode(bool(rng.random() < 0.2)):
            result = tile(x, dims)
            assert_same(result, torch.tile(x, dims))
            of_bits = (*dims, 1) if dtype == torch.complex128 else dims  # with their axis of two numbers
            np.testing.assert_array_equal(bits(result).numpy(), oracle(bits(x).numpy(), of_bits))
            if len(dims) >= x.dim():
                assert_same(repeat(x, dims), x.repeat(dims))


@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize("way", [tile, operator], ids=["eager", "operator"])
def test_gradients(way, dims, monkeypatch):
    monkeypatch.setattr(MODULE, "SMALL_BYTES", 0)
    for x in (matrix(torch.float64), torch.tensor(2.0, dtype=torch.float64), matrix(torch.complex128).T):
        x = x.detach().requires_grad_()
        assert gradcheck(lambda x: way(x, dims), (x,), check_batched_grad=True)
        assert gradgradcheck(lambda x: way(x, dims), (x,))


@pytest.mark.parametrize("small", [0, 2**15])
def test_gradients_of_other_kinds(small, monkeypatch):
    monkeypatch.setattr(MODULE, "SMALL_BYTES", small)
    x = matrix().requires_grad_()
    for weight in (torch.ones(1).expand(4, 9), torch.rand(9, 4).T):
        ours, theirs = (torch.autograd.grad(call(x, (2, 3)), x, weight)[0] for call in (tile, torch.tile))
        torch.testing.assert_close(ours, theirs)
    result = tile(x, (2, 3))
    result.mul_(2)[0] = 0
    result.sum().backward()
    assert torch.equal(x.grad, torch.tensor([[6.0] * 3, [12.0] * 3]))
    with torch.no_grad():
        assert_same(tile(x, 2), torch.tile(x, (2,)))
    with torch.inference_mode():
        assert tile(x, 2).is_inference()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_same(tile(x, 2), torch.tile(x, (2,)))


def forward_mode(t, x):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(t(forward_ad.make_dual(x, x + 1), (2, 3)))


TRANSFORMED = {
    "forward mode": forward_mode,
    "vmap": lambda t, x: torch.vmap(lambda v: t(v, (2, 3)))(x),
    "vmap of the last axis, twice": lambda t, x: torch.vmap(torch.vmap(lambda v: t(v, (2, 3))), in_dims=-1)(x),
    "vmap with fewer dims": lambda t, x: torch.vmap(lambda v: t(v, (2,)), in_dims=1)(x),
    "grad": lambda t, x: torch.func.grad(lambda v: (t(v, (2, 3)) ** 2).sum())(x),
    "grad of vmap": lambda t, x: torch.func.grad(lambda x: torch.vmap(lambda v: t(v, (2,)) ** 2)(x).sum())(x),
    "vmap of grad": lambda t, x: torch.vmap(torch.func.grad(lambda v: (t(v, (2, 3)) ** 2).sum()))(x),
    "jacrev": lambda t, x: torch.func.jacrev(lambda v: t(v, (2, 3)))(x),
    "hessian": lambda t, x: torch.func.hessian(lambda v: (t(v, (2, 3)) ** 3).sum())(x),
    "jvp": lambda t, x: torch.func.jvp(lambda v: t(v, (2, 3)), (x,), (x + 1,)),
    "functionalize": lambda t, x: torch.func.functionalize(lambda v: t(v, (2, 3)))(x),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transforms(name):
    x = torch.arange(24.0).reshape(2, 3, 4)
    ours, theirs = (TRANSFORMED[name](call, x) for call in (tile, torch.tile))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # opcheck of PyTorch 2.15
@pytest.mark.parametrize("dims", DIMS)
def test_operator_is_registered_as_pytorch_wants_it(dims):
    for x in (matrix(), matrix().T, matrix()[:0], torch.tensor(1.0), matrix(torch.complex64)):
        torch.library.opcheck(operator, (x.detach().requires_grad_(), dims))


def program(x, n):
    return tile(x.sin(), (n, x.shape[0])).cos().sum() + repeat(x.bfloat16(), n, 2).float().sum()


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("backend", [
    "aot_eager", pytest.param("inductor", marks=[pytest.mark.package, pytest.mark.filterwarnings("ignore")]),
])  # fmt: skip
def test_compiled_as_eager(backend, dynamic):
    torch.compiler.reset()
    compiled = torch.compile(program, fullgraph=True, dynamic=dynamic, backend=backend)
    for shape, n in (((2, 3), 2), ((4, 5), 3), ((6, 3), 2)):
        x = torch.rand(shape).requires_grad_()
        values = [call(x, n) for call in (compiled, program)]
        torch.testing.assert_close(*values)
        torch.testing.assert_close(*(torch.autograd.grad(value, x)[0] for value in values))


@pytest.mark.parametrize("name", ["vmap", "grad", "grad of vmap", "hessian"])
def test_compiled_transforms(name):
    torch.compiler.reset()
    x = torch.arange(6.0).reshape(2, 3)
    compiled = torch.compile(lambda x: TRANSFORMED[name](tile, x), fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(x), TRANSFORMED[name](torch.tile, x))


class Model(torch.nn.Module):
    def forward(self, x, n):
        return tile(x, (x.shape[0], 2)), repeat(x, n, 1)


@pytest.mark.parametrize("strict", [False, True])
def test_exported_programs_keep_the_operator(strict, tmp_path):
    torch.compiler.reset()
    any_size = torch.export.Dim.DYNAMIC
    exported = torch.export.export(Model(), (matrix(), 3), dynamic_shapes=({0: any_size}, any_size), strict=strict)
    assert str(exported.graph).count("torch.ops.tilecore.tile.default") == 2
    torch.export.save(exported, tmp_path / "model.pt2")
    loaded = torch.export.load(tmp_path / "model.pt2").module()
    x = torch.rand(5, 3)
    first, second = loaded(x, 4)
    assert_same(first, x.tile(5, 2))
    assert_same(second, x.repeat(4, 1))


def test_modes_see_the_operator():
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Record(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = matrix()
    with Record():
        result = tile(x, 2)
    assert seen == [torch.ops.tilecore.tile.default]
    assert_same(result, torch.tile(x, (2,)))
    assert "torch.ops.tilecore.tile" in make_fx(lambda x: tile(x, 2), tracing_mode="symbolic")(matrix()).code


def test_traced_by_jit():
    """The traced program runs without tilecore."""
    traced = torch.jit.trace(lambda x: tile(x, (x.shape[0], 2)), (matrix(),))
    assert "tilecore::" not in str(traced.graph)
    assert traced(torch.ones(3, 3)).shape == (9, 6)


@pytest.mark.package
@pytest.mark.tree
def test_model_of_the_docs(run, tmp_path):
    text = (Path(__file__).parent.parent / "docs/pytorch.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(# latents.py\n.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "latents.py").write_text(code)
    *losses, same = run(sys.executable, "latents.py", cwd=tmp_path).splitlines()
    losses = [float(line.split()[-1]) for line in losses]
    assert same == "as eager: True" and losses == sorted(losses, reverse=True) and losses[-1] < losses[0] / 3


def test_results_travel():
    result = tile(matrix(), (2, 3))
    assert torch.equal(pickle.loads(pickle.dumps(result)), result)
    assert torch.equal(tile(matrix(), (2, 3)).share_memory_(), result)
    with pytest.raises(RuntimeError, match="not resizable"):  # as the docs say
        result.resize_(100)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_threads_and_a_fork_after_use(program):
    program("""
import torch
from tilecore.integrations.torch import tile
torch.set_num_threads(2)
x = torch.rand(1000, 300)
wanted = x.tile(3, 4)
def work():
    for _ in range(10):
        assert torch.equal(tile(x, (3, 4)), wanted)
        y = x.clone().requires_grad_()
        tile(y, (3, 4)).sum().backward()
        assert (y.grad == 12).all()
together(*[work] * 4)
def child():
    torch.set_num_threads(1)  # PyTorch's own threads do not survive a fork
    assert torch.equal(tile(x, (3, 4)), tile(x, (3, 4)))
forked(child)
""")
