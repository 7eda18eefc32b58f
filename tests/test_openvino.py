"""OpenVINO Tile-1: broadcasting both ways, negative repeats clamped."""

import numpy as np
import pytest

from tilecore import openvino

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("name", ["int2", "uint2", "int4", "uint4"])
def test_integers_of_less_than_8_bits(name, oracle):
    dtype = getattr(pytest.importorskip("ml_dtypes"), name)
    data, repeats = np.array([[1, 0, 1]], dtype), np.array([-1 if name[0] == "i" else 1, 1], dtype)
    expected = (0, 3) if name[0] == "i" else (1, 3)
    assert openvino.tile(data, repeats).shape == openvino.infer_shape((1, 3), repeats) == expected
    result = openvino.tile(data, np.array([1, 1, 1], dtype))
    np.testing.assert_array_equal(result, oracle(data, (1, 1, 1)), strict=True)


@pytest.mark.process  # importing OpenVINO starts some
def test_shapes_of_openvino_itself():
    ov = pytest.importorskip("openvino")
    dims = ov.Dimension(1, 5), ov.Dimension(2, -1), ov.Dimension(), ov.Dimension(7)
    expected = ((3, 15), (4, None), None, 7)
    for shape in (ov.PartialShape(list(dims)), dims, list(dims)):
        assert openvino.infer_shape(shape, [3, 2, 1, 1]) == expected
    assert openvino.infer_shape(ov.Shape([2, 3]), [2, 2]) == (4, 6)
    assert openvino.infer_shape(ov.PartialShape.dynamic(), [2, 2]) is None
    for repeats in (ov.PartialShape([ov.Dimension(1, 2), 3]), (ov.Dimension(1, 2), 3)):
        assert openvino.infer_shape((2, 3), repeats) == ((2, 4), 9)
    for length in (ov.PartialShape([3]), ov.Shape([3])):
        assert openvino.infer_shape((2, 3), repeats_shape=length) == (None, None, None)
    assert openvino.infer_shape((2, 3), repeats_shape=ov.PartialShape([-1])) is None
    with pytest.raises(ValueError, match=r"PartialShape: \[2\.\.3,2"):
        openvino.infer_shape(ov.PartialShape([ov.Dimension(2, 3), 2]), [1], repeats_shape=[2])


@pytest.mark.parametrize("repeats", [[-1, 2], np.array([-128, 2], np.int8), [-(2**63), 2]], ids=str)
def test_negative_repeats_are_clamped(repeats):
    assert openvino.tile(np.ones((2, 3)), repeats).shape == (0, 6)
    assert openvino.infer_shape((2, 3), repeats) == (0, 6)


@pytest.mark.parametrize("shape, repeats, repeats_shape, expected", [
    ((2, 3, 4), [5, 1, 2, 3], None, (5, 2, 6, 12)), ((2, 3, 4), [2, 5], None, (2, 6, 20)),
    (((1, 5), (2, None), "N"), [3, 2, 1], None, ((3, 15), (4, None), "N")),
    (((1, 5), (0, 4)), [0, 2**62], None, (0, None)), (((1, 5),), [2**62], None, ((2**62, None),)),
    ((3, (2, 4)), [(1, 2), (0, 3)], None, ((3, 6), (0, 12))), ((3, 4), [(-5, 2), (-3, -1)], None, ((0, 6), 0)),
    ((1, "N"), ["R", "R"], None, ("R", None)), (("N",), ["R", 2, 1], None, ("R", 2, "N")),
    ((2, 3), [None, 2, None], None, (None, 4, None)), ((2, 3), None, [4], (None, None, None, None)),
    (((2, 4), 5), None, [0], ((2, 4), 5)), ((2, 3, 4), None, [1], (None, None, None)),
    *[((2, 3), None, length, None) for length in (None, [None], [(1, 4)])],
    (None, [1, 2], None, None), (((2, 2), (0, None)), [], None, (2, None)),
])  # fmt: skip
def test_infer_shape(shape, repeats, repeats_shape, expected):
    assert openvino.infer_shape(shape, repeats, repeats_shape=repeats_shape) == expected


@pytest.mark.parametrize("shape, repeats, repeats_shape, error", [
    *[(None, None, length, ValueError) for length in ([], [1, 2])],
    *[((2, 3), None, length, ValueError) for length in ([65], [10**15], [(10**15, None)])],
    *[((2, 3), repeats, length, ValueError) for repeats, length in (([1, 2], [3]), ([2**62, 1], None))],
    *[(shape, [1], None, ValueError) for shape in (((3, 2), 3), (-1, 3))],
    (None, [2**63], None, ValueError), ((2, True), [1], None, TypeError),
])  # fmt: skip
def test_infer_shape_refuses(shape, repeats, repeats_shape, error):
    with pytest.raises(error, match="^OpenVINO Tile"):
        openvino.infer_shape(shape, repeats, repeats_shape=repeats_shape)
