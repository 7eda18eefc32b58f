"""ONNX Tile-1, Tile-6 and Tile-13: legal requests, results, errors."""

import numpy as np
import pytest

from tilecore import onnx
from tilecore._dialects import version

pytestmark = pytest.mark.quick
SMALL = ("float8_e4m3fn", "float4_e2m1fn", "int4", "uint4", "int2")
MISSING = np.array(["a", None], np.dtypes.StringDType(na_object=None))


def extension(name):
    return getattr(pytest.importorskip("ml_dtypes"), name)


@pytest.mark.parametrize("dtype", [*"S3 V4 g G M8[s] m8[s]".split(), [("x", "f4")], *SMALL], ids=str)
def test_types_that_no_version_has(dtype):
    x = np.zeros((2, 3), extension(dtype) if dtype in SMALL else dtype)
    with pytest.raises(TypeError, match=r"tilecore.tile takes .*\(2, 3\)"):
        onnx.tile_13(x, [1, 1])


def test_types_of_one_version(monkeypatch):
    for dtype in ("i", "l", "?", "F", "U3", "g"):
        with pytest.raises(TypeError, match=r"^ONNX Tile-1: .*expected tensor\(float16\)"):
            onnx.tile_1(np.ones((2, 3), dtype), 1, 0)
    x = np.ones((2, 3), extension("bfloat16"))
    assert onnx.tile_13(x, [2, 1]).shape == (4, 3)
    with monkeypatch.context() as patch:  # from the second call on it is known by its number, without Python code
        patch.setattr(version, "read_array", None)
        assert onnx.tile_13(x, [2, 1]).shape == (4, 3)
    with pytest.raises(TypeError, match=r"^ONNX Tile-6: input is of type bfloat16"):
        onnx.tile_6(x, [2, 1])


@pytest.mark.parametrize("x", [MISSING, *(np.array(["a", it], object) for it in (b"a", 1, None, np.bytes_(b"a")))])
def test_an_item_that_is_no_string(x):
    many = np.full((1,) * 33, "a", object)  # NumPy's `flat` takes up to 32 axes
    assert onnx.tile_13(many, [1] * 32 + [2]).shape == (1,) * 32 + (2,)
    assert onnx.tile_13(x[:1], [2]).tolist() == ["a", "a"]
    with pytest.raises(TypeError, match="every item is a str"):
        onnx.tile_13(x, [2])


def test_supported_types_are_the_schema():
    defs = pytest.importorskip("onnx.defs")
    versions = {1: onnx.tile_1, 6: onnx.tile_6, 13: onnx.tile_13}
    for opset in range(1, defs.onnx_opset_version() + 1):
        schema = defs.get_schema("Tile", opset, "")
        assert onnx.for_opset(opset) is versions.get(schema.since_version), f"Tile-{schema.since_version} of onnx"
        (types,) = [c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == "T"]
        assert onnx.supported_types(opset) == tuple(types)


def test_an_empty_input_excuses_nothing():
    for repeats in ([1], [1, -1], [1, 2**63], [[1, 1]], [1, 1.5], np.array([1, 1], np.int32)):
        with pytest.raises((TypeError, ValueError), match=r"\(0, 3\)"):
            onnx.tile_13(np.ones((0, 3)), repeats)


def test_input_is_a_plain_tensor(tmp_path):
    mapped = np.memmap(tmp_path / "x", np.float32, "w+", shape=(2, 3))
    for x in (mapped, np.ones((2, 3)).view(np.matrix), [[1, 2, 3], [4, 5, 6]]):
        result = onnx.tile(x, [np.array(2), 1])
        assert type(result) is np.ndarray and result.shape == (4, 3)


@pytest.mark.parametrize("tiles", [2, 2.0, [2], np.float16(2), np.array([[2]], np.uint8), [2.0]])
@pytest.mark.parametrize("axis", [1, -1, 1.0, np.array([-1], np.int32), np.array([1], np.float32)])
def test_tiles_and_axis_of_tile_1(tiles, axis, oracle):
    for dtype in ("e", "f", "d", ">f2"):
        x = np.arange(6).astype(dtype).reshape(2, 3)
        np.testing.assert_array_equal(onnx.tile_1(x, tiles, axis), oracle(x, (1, 2)), strict=True)
    assert onnx.infer_shape_1((2, 3), tiles, axis) == (2, 6)


def test_tile_1_needs_an_axis():
    for call in (lambda: onnx.tile_1(np.float32(1), 1, 0), lambda: onnx.infer_shape_1(())):
        with pytest.raises(ValueError, match="^ONNX Tile-1: axis is 0, and a 0-D input has no axis"):
            call()


def test_each_opset_has_its_version():
    expected = [onnx.tile_1] * 5 + [onnx.tile_6] * 7 + [onnx.tile_13] * 88
    assert [onnx.for_opset(opset) for opset in range(1, 101)] == expected
    assert onnx.for_opset(np.int64(13)) is onnx.for_opset(10**6) is onnx.tile


@pytest.mark.parametrize("shape, repeats, repeats_shape, expected", [
    (("N", 3), [1, 2], None, ("N", 6)), (("N", 3), np.array([2, 2]), [2], (None, 6)),
    ((2, None, 4), [1, 0, 3], None, (2, 0, 12)), ((2, 1, 0), [None, "R", None], None, (None, "R", 0)),
    *[((2, 3), None, length, (None, None)) for length in (None, [2])], ((2, 0), None, ["K"], (None, 0)),
    (None, [0, 2], None, (0, None)), (None, None, (3,), (None, None, None)),
    *[(None, None, length, None) for length in (["K"], None)],
])  # fmt: skip
def test_infer_shape(shape, repeats, repeats_shape, expected):
    for opset in (6, 13, 28):
        assert onnx.infer_shape(shape, repeats, repeats_shape=repeats_shape, opset=opset) == expected


@pytest.mark.parametrize("shape, repeats, repeats_shape, error", [
    *[((2, 3), None, length, ValueError) for length in ([3], [])],
    *[(None, None, length, ValueError) for length in ([2, 1], [65], [10**15])],
    (None, [1, -1], None, ValueError), ((2, "N"), [2**62, 1], None, ValueError),
    (("N", "N"), [2**63, 1], None, ValueError), ((-1, 3), [1, 1], None, ValueError),
    ((2.0, 3), [1, 1], None, TypeError), (((1, 2), 3), [1, 1], None, ValueError),  # ONNX has no intervals
])  # fmt: skip
def test_infer_shape_refuses(shape, repeats, repeats_shape, error):
    with pytest.raises(error, match="^ONNX Tile"):
        onnx.infer_shape(shape, repeats, repeats_shape=repeats_shape)
    with pytest.raises(ValueError, match="infer_shape_1"):
        onnx.infer_shape((2, 3), [1, 1], opset=5)  # that is Tile-1


def shape_proto(*dims):
    from onnx import TensorShapeProto as Proto

    makers = {int: lambda dim: Proto.Dimension(dim_value=dim), type(None): lambda _: Proto.Dimension()}
    return Proto(dim=[makers.get(type(d), lambda d: Proto.Dimension(dim_param=d))(d) for d in dims])


def test_shapes_of_onnx_itself():
    pytest.importorskip("onnx")
    dims, empty_name = ("N", 3, 0, None), shape_proto("")
    assert onnx.infer_shape(shape_proto(*dims), [1, 2, 3, 4]) == ("N", 6, 0, None)
    assert onnx.infer_shape((1, 2, 3, 4), shape_proto(*dims)) == ("N", 6, 0, None)
    assert onnx.infer_shape((2, 3), repeats_shape=shape_proto(2)) == (None, None)
    assert onnx.infer_shape(empty_name, [1]) == (None,)
    assert onnx.infer_shape(shape_proto(), []) == ()
    assert onnx.infer_shape_1(shape_proto(*dims), 2, 1) == ("N", 6, 0, None)
    with pytest.raises(ValueError, match=r"repeats has length 1"):
        onnx.infer_shape(shape_proto(2, 3), [1])
    with pytest.raises(ValueError, match=r"input_shape item 1 must be 0 or more"):
        onnx.infer_shape(shape_proto(2, -1), [1, 1])


def test_products_of_symbols():
    pytest.importorskip("sympy")
    shape, repeats = ("N", "2*M", 3, None, "K", "N"), [2, 3, "R", 2, 0, 1]
    assert onnx.infer_shape(shape, repeats) == (None, None, None, None, 0, "N")
    expected = ("2*N", "6*M", "3*R", None, 0, "N")
    assert onnx.infer_shape(shape, repeats, products=True) == expected
    assert onnx.infer_shape_1(("N", 3), 2, 0) == (None, 3)
    assert onnx.infer_shape_1(("N", 3), 2, 0, products=True) == ("2*N", 3)
    assert onnx.infer_shape_1(("N", 3), 2, products=True) == (None, None)


@pytest.mark.filterwarnings("ignore")
def test_products_as_onnxruntime_writes_them():
    pytest.importorskip("sympy")
    infer = pytest.importorskip("onnxruntime.tools.symbolic_shape_infer").SymbolicShapeInference
    from onnx.parser import parse_model

    model = parse_model("""<ir_version: 8, opset_import: ["": 13]>
        example (float[batch, N, 3, N, 5] x, float[M, 2, K] k) => (float[A, B, C, D, E] z) {
        two = Constant <value = int64[2] {2, 3}> ()
        sizes = Shape(k)
        first = Concat <axis = 0> (sizes, two)
        y = Tile(x, first)
        second = Constant <value = int64[5] {2, 3, 1, 1, 1}> ()
        z = Tile(y, second) }""")
    found = {info.name: info for info in infer.infer_shapes(model).graph.value_info}
    y = onnx.infer_shape(("batch", "N", 3, "N", 5), ["M", 2, "K", 2, 3], products=True)
    assert y == ("M*batch", "2*N", "3*K", "2*N", 15)
    assert [d.dim_param or d.dim_value for d in found["y"].type.tensor_type.shape.dim] == list(y)
    output = infer.infer_shapes(model).graph.output[0].type.tensor_type.shape
    assert onnx.infer_shape(y, [2, 3, 1, 1, 1], products=True) == onnx.infer_shape(output, [1] * 5)


@pytest.mark.parametrize("shape, tiles, axis, expected", [
    (("N", 3), 2, -1, ("N", 6)), (("N", 3), None, 1, ("N", None)), (("N", 3), 1, None, ("N", 3)),
    (("N", 3, 0), 2, None, (None, None, 0)), ((3,), 2, None, (6,)), ((3, 4), 0, 0, (0, 4)), (None, 2, 1, None),
])  # fmt: skip
def test_infer_shape_1(shape, tiles, axis, expected):
    assert onnx.infer_shape_1(shape, tiles, axis) == expected
