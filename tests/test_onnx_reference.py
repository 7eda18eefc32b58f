"""Tile of every opset in the reference evaluator and in onnxruntime: graphs, functions, random and published cases."""

from pathlib import Path

import numpy as np
import pytest

from tilecore.onnx import for_opset, infer_shape

pytestmark = pytest.mark.quick

onnx = pytest.importorskip("onnx")
helper = pytest.importorskip("onnx.helper")
numpy_helper = pytest.importorskip("onnx.numpy_helper")
parse_model = pytest.importorskip("onnx.parser").parse_model
ReferenceEvaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator
OpRun = pytest.importorskip("onnx.reference.op_run").OpRun
integration = pytest.importorskip("tilecore.integrations.onnx_reference")
OPS = integration.OPS

NEWEST = onnx.defs.onnx_opset_version()
NUMBERS = "?bhilqBHILQefdFD"


def model(opset, body, signature, functions=""):
    header = f'<ir_version: 8, opset_import: ["": {opset}, "mine": 1]>'
    return parse_model(f"{header} example {signature} {{ {body} }} {functions}")


def run(model, *inputs):
    names = [value.name for value in model.graph.input]
    (output,) = ReferenceEvaluator(model, new_ops=OPS).run(None, dict(zip(names, inputs, strict=True)))
    return output


TILE = "y = Tile(x, n)", "(float[A, B] x, int64[C] n) => (float[D, E] y)"
CHOICE = TILE[1].replace("(float", "(bool yes, float", 1)
BRANCHES = """y = If(yes) <then_branch = then () => (float[D, E] a) { a = Tile(x, n) },
                           else_branch = other () => (float[D, E] b) { b = Identity(x) }>"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("opset", range(1, 6))
@pytest.mark.parametrize("dtype", ["float32", "int64"])  # of tiles and axis: models hold both
def test_tile_1(oracle, opset, dtype):
    one = np.array([1], dtype)
    signature = "(float[A, B] x, float[1] tiles, float[1] axis) => (float[A, D] y)"
    old = model(opset, "y = Tile(x, tiles, axis)", signature)
    np.testing.assert_array_equal(run(old, X, 3 * one, one), oracle(X, (1, 3)), strict=True)
    with pytest.raises(ValueError, match=r"Tile-1: axis is 2, expected -2 to 1"):
        run(old, X, 3 * one, 2 * one)


@pytest.mark.parametrize("opset", range(6, NEWEST + 1))
def test_later_versions(oracle, opset):
    new = model(opset, *TILE)
    for repeats in ([2, 3], [1, 1], [0, 2]):
        result = run(new, X, np.array(repeats))
        np.testing.assert_array_equal(result, oracle(X, repeats), strict=True)
    name = "Tile-6" if opset < 13 else "Tile-13"
    with pytest.raises(ValueError, match=f"{name}: repeats has length 1, expected"):
        run(new, X, np.array([2]))  # numpy.tile would prepend a 1
    # The evaluator does not hide it in a TypeError of its own.
    with pytest.raises(TypeError, match=f"^ONNX {name}: repeats has dtype int32, expected int64"):
        run(new, X, np.array([2, 2], np.int32))


@pytest.mark.parametrize("opset", [1, 6, 13])
def test_number_of_inputs(opset):
    # With the other signature, a third input would become `out`.
    node = "y = Tile(x, n)" if opset == 1 else "y = Tile(x, n, n)"
    with pytest.raises(ValueError, match=f"Tile of opset {opset}: . inputs, .*; expected input, "):
        ReferenceEvaluator(model(opset, node, TILE[1]), new_ops=OPS)


def test_attributes():
    with pytest.raises(ValueError, match="^ONNX Tile of opset 13: expected no attributes, got axis, tiles$"):
        ReferenceEvaluator(model(13, "y = Tile <axis = 1, tiles = 2> (x, n)", TILE[1]), new_ops=OPS)


@pytest.mark.parametrize("kind", ["string", "bfloat16"])
def test_tensors_as_the_evaluator_holds_them(oracle, kind):
    """From a tensor in the model: object arrays of str, and ml_dtypes' bfloat16 or its bits."""
    if kind == "string":
        tensor = numpy_helper.from_array(np.array([["a", "", "é\0"]], object), "x")
    else:
        tensor = helper.make_tensor("x", onnx.TensorProto.BFLOAT16, [1, 3], [1.5, -2.0, float("nan")])
    proto = model(13, TILE[0], TILE[1].replace("float", kind).replace(f"{kind}[A, B] x, ", ""))
    proto.graph.initializer.append(tensor)
    tiled = run(proto, np.array([2, 2]))
    expected = oracle(numpy_helper.to_array(tensor), (2, 2))
    assert (tiled.dtype, tiled.shape) == (expected.dtype, (2, 6))
    assert tiled.tolist() == expected.tolist() if kind == "string" else tiled.tobytes() == expected.tobytes()


def test_functions_are_put_into_the_graph(oracle):
    """Of another opset than the model."""
    inline = pytest.importorskip("onnx.inliner").inline_local_functions
    function = '<domain: "mine", opset_import: ["": 6]> Again (x, n) => (y) { y = Tile(x, n) }'
    inlined = inline(model(NEWEST, "y = mine.Again(x, n)", TILE[1], function), True)
    np.testing.assert_array_equal(run(inlined, X, np.array([1, 2])), oracle(X, (1, 2)), strict=True)
    with pytest.raises(ValueError, match="Tile-13: repeats has length 1"):
        run(inlined, X, np.array([2]))


@pytest.mark.parametrize("opset", [12, 13, NEWEST])
def test_branches(oracle, opset):
    proto = model(opset, BRANCHES, CHOICE)
    for repeats in ([2, 3], [2, 1]):
        tiled = run(proto, np.array(True), X, np.array(repeats))
        np.testing.assert_array_equal(tiled, oracle(X, repeats), strict=True)
    assert run(proto, np.array(False), X, np.array([2, 3])).shape == (2, 3)
    with pytest.raises(ValueError, match=f"Tile-{6 if opset < 13 else 13}: repeats has length 1"):
        run(proto, np.array(True), X, np.array([2]))


def requests(seed):
    """Random tensors of any number, and repeats: zeros and ones are often among them."""
    rng = np.random.default_rng(seed)
    for number in range(150):
        dtype, rank = np.dtype(NUMBERS[number % len(NUMBERS)]), rng.integers(0, 6)
        shape, repeats = rng.choice([0, 1, 1, 2, 2, 3, 3, 4], rank), rng.choice([0, 1, 1, 2, 2, 3], rank)
        if dtype.kind == "b":
            x = rng.integers(0, 2, shape).astype(bool)
        else:
            x = np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
        yield x, repeats


def model_of(x, opset, dims, body="y = Tile(x, n)", inputs=", int64[N] n"):
    kind = onnx.TensorProto.DataType.Name(helper.np_dtype_to_tensor_dtype(x.dtype)).lower()
    return model(opset, body, f"({kind}[{','.join(dims)}] x{inputs}) => ({kind}[{','.join('ABCDE'[: x.ndim])}] y)")


def onnxruntime(proto):
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1  # otherwise each session starts threads, and they spin
    return runtime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize(
    ("peer", "opset"), [*[(ReferenceEvaluator, n) for n in (6, 12, 13, 21)], *[(onnxruntime, n) for n in (6, 13)]]
)
def test_to_the_last_bit(peer, opset):
    """onnxruntime has no complex kernel, changes NaNs of float16, and refuses rank 0 before version 1.24."""
    made = {}
    old = peer is onnxruntime and np.lib.NumpyVersion(pytest.importorskip("onnxruntime").__version__) < "1.24.0"
    for x, repeats in requests(opset):
        if peer is onnxruntime and (x.dtype.kind == "c" or (x.dtype == np.float16 and np.isnan(x).any())):
            continue
        if old and x.ndim == 0:
            continue
        if (key := (x.dtype, x.ndim)) not in made:
            made[key] = peer(model_of(x, opset, "abcde"[: x.ndim]))
        (theirs,) = made[key].run(None, {"x": x, "n": repeats})
        ours = for_opset(opset)(x, repeats)
        assert (ours.dtype, ours.shape, ours.tobytes()) == (theirs.dtype, theirs.shape, theirs.tobytes())


def test_shape_inference():
    rng = np.random.default_rng(2)
    for x, repeats in requests(2):
        dims = ["N" if rng.random() < 0.3 else n for n in x.shape]
        count = f"n = Constant <value: tensor = int64[{x.ndim}] {{{','.join(map(str, repeats))}}}> ()"
        proto = model_of(x, 13, map(str, dims), count + " y = Tile(x, n)", "")
        inferred = onnx.shape_inference.infer_shapes(proto, strict_mode=True).graph.output[0].type.tensor_type.shape
        for our, dim in zip(infer_shape(dims, repeats), inferred.dim, strict=True):
            # ONNX forgets a symbol even where the repeat is 1, so an unknown says nothing.
            assert our == dim.dim_value or not dim.HasField("dim_value"), (dims, repeats)


def models_with_tile():
    """The models in the onnx package that hold a Tile."""
    for path in sorted(Path(onnx.__file__).parent.glob("backend/test/data/*/*/model.onnx")):
        if b"Tile" in path.read_bytes():
            yield pytest.param(path, id=path.parent.name)


@pytest.mark.parametrize("path", list(models_with_tile()))
def test_model_cases(path):
    def read(kind, name):
        return numpy_helper.to_array(onnx.load_tensor(path.parent / "test_data_set_0" / f"{kind}_{name}.pb"))

    proto = onnx.load(path)
    output = run(proto, *(read("input", i) for i, _ in enumerate(proto.graph.input)))
    np.testing.assert_array_equal(output, read("output", 0), strict=True)
