"""PyTorch: tensors in, tensors out; nothing is copied that need not be. `test_docs.py` runs a DataLoader."""

import numpy as np
import pytest

import tilecore
from tilecore import onnx
from tilecore._core.request.arguments import read_array

pytestmark = pytest.mark.quick

torch = pytest.importorskip("torch", exc_type=ImportError)

X = np.arange(6, dtype="f4").reshape(2, 3)


def test_views_of_tensors_are_read_in_place(oracle):
    tensor = torch.from_numpy(X)
    for view in (tensor.T, tensor[:, ::2], tensor[:1].expand(4, 3), tensor[0, 0], tensor[:0]):
        assert np.shares_memory(read_array(view, "tile"), X) or not view.numel()
        for repeats in ((2, 2), torch.tensor([2, 2])):
            np.testing.assert_array_equal(tilecore.tile(view, repeats), oracle(view.numpy(), (2, 2)), strict=True)
    assert onnx.tile(X, torch.tensor([2, 2])).shape == (4, 6)


def test_into_a_tensor():
    tensor = torch.empty(4, 6)
    tilecore.tile(X, (2, 2), out=tensor.numpy())
    assert torch.equal(tensor, torch.from_numpy(X).tile((2, 2)))
    for out in (tensor, torch.nn.Parameter(tensor)):
        with pytest.raises(TypeError, match=r"^tile: out must be .*, got (Tensor|Parameter); pass out.numpy\(\);"):
            tilecore.tile(X, (2, 2), out=out)


NOT_PLAIN = {
    "gradient": (lambda: torch.ones(2, requires_grad=True), "requires grad; use tilecore.integrations.torch.tile, or"),
    "parameter": (lambda: torch.nn.Parameter(torch.ones(2)), "requires grad.*detach"),
    "conjugate": (lambda: torch.tensor([1 + 2j, 3]).conj(), "conjugate bit.*resolve_conj"),
    "negative": (lambda: torch.tensor([1 + 2j, 3]).conj().imag, "negative bit.*resolve_neg"),
    "bfloat16": (lambda: torch.ones(2).bfloat16(), "BFloat16; use tilecore.integrations.torch.tile"),
    "float8": (lambda: torch.ones(2).to(torch.float8_e4m3fn), "Float8_e4m3fn; use tilecore.integrations.torch.tile"),
    "sparse": (lambda: torch.ones(2).to_sparse(), "Sparse.*to_dense"),
    "sparse rows": (lambda: torch.ones(2, 2).to_sparse_csr(), "SparseCsr.*to_dense"),
    "elsewhere": (lambda: torch.ones(2, device="meta"), "meta device.*; use tilecore.integrations.torch.tile;"),
}


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.parametrize(("make", "text"), NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_what_is_not_in_plain_memory(make, text):
    tensor = make()
    for name, call in {
        "tile": lambda: tilecore.tile(tensor, 2),
        "tile_region": lambda: tilecore.tile_region(tensor, 2, (0,), (1,)),
        "TilePlan.tile": lambda: tilecore.TilePlan((2,), 2, "f4").tile(tensor),
        onnx.DIALECT.version().name: lambda: onnx.tile(tensor, [2]),
    }.items():
        argument = "input" if "ONNX" in name else "a"
        wanted = f"^{name}: {argument} of type (Tensor|Parameter) cannot be read as an array: .*{text}"
        with pytest.raises(TypeError, match=wanted):
            call()


def test_what_a_handler_raises_is_no_refusal(raised_between):
    module = pytest.importorskip("tilecore.integrations.torch")
    came = [*raised_between(lambda: module.tile(torch.ones(3), (2,)), module.tile_memory.__code__.__eq__)]
    assert all(came) and len(came) > 10
