"""The same random requests, put to the systems whose rule each dialect is.

Where a peer is known to be wrong, or cannot run at all, a predicate named after the peer says which
inputs are left out and why. Everything else must agree to the last bit.
"""

import numpy as np
import pytest

import tilecore
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
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    if dtype == np.dtype(bool):
        return rng.integers(0, 2, shape).astype(bool)
    count = int(np.prod(shape))
    return np.frombuffer(rng.bytes(count * dtype.itemsize), dtype).reshape(shape)


def assert_same(ours, theirs, request):
    """Same dtype, shape and bytes: NaNs with their payloads, and the sign of zero."""
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), request
    assert ours.tobytes() == theirs.tobytes(), request


# --- NumPy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [*NUMBERS, *"gG", "S3", "U2", "V5", "M8[s]", ">f4", ">c16"])
def test_numpy(code):
    for seed, (shape, repeats) in enumerate(requests(1, same_rank=False)):
        x = random_tensor(shape, np.uint32 if code == "U2" else code, seed)
        x = (x % 0x10FFFF % 0xD800).astype("U2") if code == "U2" else x
        assert_same(tilecore.tile(x, repeats), np.tile(x, repeats), (shape, repeats))


# --- ONNX's reference evaluator ------------------------------------------------------------------


def onnx_model(dtype, rank, opset):
    helper = pytest.importorskip("onnx.helper")
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    dims = [None] * rank
    graph = helper.make_graph(
        [helper.make_node("Tile", ["x", "repeats"], ["y"])],
        "tile",
        [
            helper.make_tensor_value_info("x", kind, dims),
            helper.make_tensor_value_info("repeats", helper.TensorProto.INT64, [rank]),
        ],
        [helper.make_tensor_value_info("y", kind, dims)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.mark.parametrize("opset", [6, 12, 13, 21])
def test_onnx_reference(opset):
    # Only requests of matching length: on others the evaluator promotes, as numpy.tile does.
    reference = pytest.importorskip("onnx.reference")
    tile = onnx.for_opset(opset)
    evaluators = {}
    for seed, (shape, repeats) in enumerate(requests(opset, same_rank=True)):
        dtype = NUMBERS[seed % len(NUMBERS)]
        key = (dtype, len(shape))
        if key not in evaluators:
            evaluators[key] = reference.ReferenceEvaluator(onnx_model(*key, opset))
        x = random_tensor(shape, dtype, seed)
        (theirs,) = evaluators[key].run(None, {"x": x, "repeats": np.array(repeats, np.int64)})
        assert_same(tile(x, repeats), theirs, (shape, repeats, dtype))


def test_onnx_shape_inference():
    helper = pytest.importorskip("onnx.helper")
    shape_inference = pytest.importorskip("onnx.shape_inference")
    for seed, (shape, repeats) in enumerate(requests(2, same_rank=True)):
        symbolic = np.random.default_rng(seed).random(len(shape)) < 0.3
        shape = tuple("N" if unknown else dim for dim, unknown in zip(shape, symbolic, strict=True))
        float32 = helper.TensorProto.FLOAT
        graph = helper.make_graph(
            [helper.make_node("Tile", ["x", "repeats"], ["y"])],
            "tile",
            [helper.make_tensor_value_info("x", float32, shape)],
            [helper.make_tensor_value_info("y", float32, None)],
            [helper.make_tensor("repeats", helper.TensorProto.INT64, [len(repeats)], repeats)],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
        inferred = shape_inference.infer_shapes(model, strict_mode=True)
        dims = inferred.graph.output[0].type.tensor_type.shape.dim
        ours = onnx.infer_shape(shape, repeats)
        assert len(ours) == len(dims)
        for our, dim in zip(ours, dims, strict=True):
            # ONNX forgets a symbol even where the repeat is 1, so an unknown says nothing.
            assert our == dim.dim_value or not dim.HasField("dim_value"), (shape, repeats)


# --- onnxruntime ---------------------------------------------------------------------------------


def onnxruntime_is_exact(dtype, x):
    """It has no complex kernel, and float16 goes through float32, which changes NaN payloads."""
    return dtype not in "FD" and not (dtype == "e" and np.isnan(x).any())


@pytest.mark.parametrize("opset", [6, 13])
def test_onnxruntime(opset):
    runtime = pytest.importorskip("onnxruntime")
    tile = onnx.for_opset(opset)
    options, sessions = runtime.SessionOptions(), {}
    options.intra_op_num_threads = 1  # otherwise each session starts threads, and they spin
    for seed, (shape, repeats) in enumerate(requests(opset + 1, same_rank=True)):
        dtype = NUMBERS[seed % len(NUMBERS)]
        x = random_tensor(shape, dtype, seed)
        if not onnxruntime_is_exact(dtype, x):
            continue
        key = (dtype, len(shape))
        if key not in sessions:
            model = onnx_model(*key, opset).SerializeToString()
            sessions[key] = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        (theirs,) = sessions[key].run(None, {"x": x, "repeats": np.array(repeats, np.int64)})
        assert_same(tile(x, repeats), theirs, (shape, repeats, dtype))


def test_onnxruntime_strings():
    runtime = pytest.importorskip("onnxruntime")
    model = onnx_model(object, 2, 13)
    session = runtime.InferenceSession(model.SerializeToString())
    x = np.array([["a", "", "é"], ["bc", "d", "longer than sixteen bytes"]], object)
    for repeats in ([2, 3], [1, 0], [1, 1]):
        (theirs,) = session.run(None, {"x": x, "repeats": np.array(repeats, np.int64)})
        np.testing.assert_array_equal(onnx.tile(x, repeats), theirs, strict=True)


# --- OpenVINO ------------------------------------------------------------------------------------


def openvino_runs(shape, repeats):
    """Its reference crashes on empty data and on empty repeats."""
    return 0 not in shape and len(repeats) > 0


def test_openvino():
    ov = pytest.importorskip("openvino")
    ops = pytest.importorskip("openvino.opset1")
    inputs, nodes, ours = [], [], []
    for seed, (shape, repeats) in enumerate(requests(4, same_rank=False)):
        if not openvino_runs(shape, repeats):
            continue
        # Its Python binding knows one class of each width. Its CPU plugin computes on 32 bits: the
        # values are small enough for every type to hold.
        dtype = "?bhilBHILefd"[seed % 12]
        x = np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)
        inputs.append((ops.parameter(shape, x.dtype), x))
        constant = ops.constant(np.array(repeats, "bhilBHIL"[seed % 8]))
        nodes.append(ops.tile(inputs[-1][0], constant))
        ours.append((openvino.tile(x, repeats), (shape, repeats, dtype)))
    # All in one model: to compile one takes longer than to run it.
    model = ov.Model(nodes, [data for data, _ in inputs])
    results = ov.Core().compile_model(model, "CPU")([x for _, x in inputs])
    for theirs, (our, request) in zip(results.values(), ours, strict=True):
        assert_same(our, theirs, request)


def test_openvino_shape_inference():
    ov = pytest.importorskip("openvino")
    ops = pytest.importorskip("openvino.opset1")
    rng = np.random.default_rng(5)
    known = [None, 0, 1, 2, 3, (1, 2), (2, 5), (0, 3), (1, None), (3, None)]
    for _ in range(REQUESTS):
        shape = [known[i] for i in rng.integers(0, len(known), rng.integers(0, 5))]
        repeats = rng.integers(-2, 4, rng.integers(1, 5))  # its constants are not empty
        dims = [(-1 if dim is None else dim) for dim in shape]
        bounds = [dim if isinstance(dim, tuple) else (dim, dim) for dim in dims]
        partial = ov.PartialShape([ov.Dimension(low, -1 if high is None else high) for low, high in bounds])
        node = ops.tile(ops.parameter(partial, np.float32), ops.constant(repeats))
        theirs = [
            (dim.get_min_length(), dim.get_max_length() if dim.get_max_length() >= 0 else None)
            for dim in node.output(0).partial_shape
        ]
        expected = tuple(
            low if low == high else None if (low, high) == (0, None) else (low, high) for low, high in theirs
        )
        assert openvino.infer_shape(tuple(shape), repeats) == expected, (shape, repeats)
