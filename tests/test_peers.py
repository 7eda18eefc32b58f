"""The same random requests, put to the systems whose rule each dialect is.

Where a peer is known to be wrong, or cannot run at all, a predicate named after the peer says which
inputs are left out and why. Everything else must agree to the last bit.
"""

import numpy as np
import pytest

from tilecore import onnx, openvino

pytestmark = pytest.mark.quick

NUMBERS = [*"?bhilqBHILQefdFD"]
REQUESTS = 150


def requests(seed, *, same_rank):
    """Random (shape, repeats), small, with zeros and ones often among them."""
    rng = np.random.default_rng(seed)
    for _ in range(REQUESTS):
        rank = rng.integers(0, 6)
        length = rank if same_rank else rng.integers(0, 6)
        shape = rng.choice([0, 1, 1, 2, 2, 3, 3, 4], rank)
        repeats = rng.choice([0, 1, 1, 2, 2, 3], length)
        yield tuple(map(int, shape)), tuple(map(int, repeats))


def random_tensor(shape, dtype, seed=0):
    """Random bytes; only bool must be 0 or 1."""
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    if dtype == np.dtype(bool):
        return rng.integers(0, 2, shape).astype(bool)
    return np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)


def assert_same(ours, theirs, request):
    """Same dtype, shape and bytes: NaNs with their payloads, and the sign of zero."""
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), request
    assert ours.tobytes() == theirs.tobytes(), request


# --- ONNX's reference evaluator, and onnxruntime -------------------------------------------------


def onnx_model(dtype, dims, opset, repeats=None):
    """Repeats are an input, or these."""
    helper = pytest.importorskip("onnx.helper")
    kind, int64 = helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), helper.TensorProto.INT64
    inputs = [helper.make_tensor_value_info("x", kind, dims)]
    output = helper.make_tensor_value_info("y", kind, dims if repeats is None else None)
    constants = [] if repeats is None else [helper.make_tensor("repeats", int64, [len(repeats)], repeats)]
    if repeats is None:
        inputs.append(helper.make_tensor_value_info("repeats", int64, [len(dims)]))
    node = helper.make_node("Tile", ["x", "repeats"], ["y"])
    graph = helper.make_graph([node], "tile", inputs, [output], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def onnxruntime_is_exact(dtype, x):
    """It has no complex kernel, and float16 goes through float32, which changes NaN payloads."""
    return dtype not in "FD" and not (dtype == "e" and np.isnan(x).any())


def reference_evaluator(model):
    return pytest.importorskip("onnx.reference").ReferenceEvaluator(model)


def onnxruntime_session(model):
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1  # otherwise each session starts threads, and they spin
    return runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize(
    ("peer", "opset"),
    [*[(reference_evaluator, n) for n in (6, 12, 13, 21)], *[(onnxruntime_session, n) for n in (6, 13)]],
)
def test_onnx(peer, opset):
    # Only requests of matching length: on others the evaluator promotes, as numpy.tile does.
    tile, made = onnx.for_opset(opset), {}
    for seed, (shape, repeats) in enumerate(requests(opset, same_rank=True)):
        dtype = NUMBERS[seed % len(NUMBERS)]
        x = random_tensor(shape, dtype, seed)
        if peer is onnxruntime_session and not onnxruntime_is_exact(dtype, x):
            continue
        if (key := (dtype, len(shape))) not in made:
            made[key] = peer(onnx_model(dtype, [None] * len(shape), opset))
        (theirs,) = made[key].run(None, {"x": x, "repeats": np.array(repeats, np.int64)})
        assert_same(tile(x, repeats), theirs, (shape, repeats, dtype))


def test_onnx_shape_inference():
    infer_shapes = pytest.importorskip("onnx.shape_inference").infer_shapes
    for seed, (shape, repeats) in enumerate(requests(2, same_rank=True)):
        symbolic = np.random.default_rng(seed).random(len(shape)) < 0.3
        shape = tuple("N" if unknown else dim for dim, unknown in zip(shape, symbolic, strict=True))
        inferred = infer_shapes(onnx_model("f4", shape, 13, repeats), strict_mode=True)
        dims = inferred.graph.output[0].type.tensor_type.shape.dim
        for our, dim in zip(onnx.infer_shape(shape, repeats), dims, strict=True):
            # ONNX forgets a symbol even where the repeat is 1, so an unknown says nothing.
            assert our == dim.dim_value or not dim.HasField("dim_value"), (shape, repeats)


# --- OpenVINO ------------------------------------------------------------------------------------


def test_openvino_shape_inference():
    ov = pytest.importorskip("openvino")
    ops = pytest.importorskip("openvino.opset1")
    rng = np.random.default_rng(5)
    known = [None, 0, 1, 2, 3, (1, 2), (2, 5), (0, 3), (1, None), (3, None)]

    def interval(dim):
        low, high = dim if isinstance(dim, tuple) else (0, None) if dim is None else (dim, dim)
        return ov.Dimension(low, -1 if high is None else high)

    def our(dim):
        low, high = dim.get_min_length(), dim.get_max_length()
        return low if low == high else (low, high) if high >= 0 else (low, None) if low else None

    for _ in range(REQUESTS):
        shape = tuple(known[i] for i in rng.integers(0, len(known), rng.integers(0, 5)))
        repeats = rng.integers(-2, 4, rng.integers(1, 5))  # its constants are not empty
        data = ops.parameter(ov.PartialShape([interval(dim) for dim in shape]), np.float32)
        theirs = ops.tile(data, ops.constant(repeats)).output(0).partial_shape
        assert openvino.infer_shape(shape, repeats) == tuple(map(our, theirs)), (shape, repeats)
