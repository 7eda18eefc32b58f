"""Cases that other systems publish in their own tests and documents, each with its source."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tilecore import directml, onnx, openvino, tile

pytestmark = pytest.mark.quick

CASES = Path(__file__).parent / "cases"

ERRORS = {
    **dict.fromkeys(("not_integral", "repeats_dtype", "unsupported_dtype"), TypeError),
    **dict.fromkeys(("axis_out_of_range", "contradiction", "negative_repeats", "overflow", "rank_limit"), ValueError),
    **dict.fromkeys(("repeats_length_mismatch", "repeats_not_1d", "repeats_range", "zero_repeat"), ValueError),
}


def load(name):
    return [pytest.param(case, id=case["id"]) for case in json.loads((CASES / name).read_text())]


def tensor(case):
    shape, dtype, values = case["input_shape"], case["input_dtype"], case["input_values"]
    if values == "arange":
        values = np.arange(np.prod(shape, dtype=int))
    if dtype == "string":
        return np.array([str(value) for value in values], object).reshape(shape)
    try:
        dtype = np.dtype(dtype)
    except TypeError:
        dtype = getattr(pytest.importorskip("ml_dtypes"), dtype)
    return np.asarray(values).astype(dtype).reshape(shape)


def repeats(case):
    value = case["repeats"]
    return np.array(value, case["repeats_dtype"]) if "repeats_dtype" in case else value


def run(case, x):
    dialect = case["dialect"]
    if dialect == "onnx-1":
        dtype = case.get("param_dtype", "int64")
        return onnx.tile_1(x, np.array([case["tiles"]], dtype), np.array([case["axis"]], dtype))
    if dialect == "directml":
        return directml.tile(x, repeats(case), feature_level=case.get("feature_level", "4_1"))
    dialects = {"numpy": tile, "onnx-6": onnx.tile_6, "onnx-13": onnx.tile_13, "openvino": openvino.tile_1}
    return dialects[dialect](x, repeats(case))


def as_numpy_reps(case, rank):
    """Repeats that give the same with `numpy.tile`: clamped, and with Tile-1's axis written out."""
    if "tiles" in case:
        return [case["tiles"] if axis == case["axis"] % rank else 1 for axis in range(rank)]
    return np.maximum(case["repeats"], 0).astype(int).tolist()


@pytest.mark.parametrize("case", load("published_cases.json"))
def test_tile(case):
    x, expect = tensor(case), case["expect"]
    if "error" in expect:
        with pytest.raises(ERRORS[expect["error"]]):
            run(case, x)
        return
    result = run(case, x)
    expected = expect["values"]
    expected = np.tile(x, as_numpy_reps(case, x.ndim)) if expected == "np.tile" else expected
    expected = np.asarray(expected, x.dtype).reshape(expect["shape"])
    np.testing.assert_array_equal(result, expected, strict=True)
    assert not np.shares_memory(result, x)


def dims(shape):
    """JSON has no tuples: an interval is a list."""
    return shape if shape is None else tuple(tuple(dim) if isinstance(dim, list) else dim for dim in shape)


@pytest.mark.parametrize("case", load("published_infer_cases.json"))
def test_infer_shape(case):
    infer = {"onnx-13": onnx.infer_shape, "openvino": openvino.infer_shape}[case["dialect"]]
    call = partial(infer, dims(case["input_shape"]), repeats(case), repeats_shape=dims(case.get("repeats_shape")))
    if "error" in case["expect"]:
        with pytest.raises(ERRORS[case["expect"]["error"]]):
            call()
    else:
        assert call() == dims(case["expect"]["shape"])
