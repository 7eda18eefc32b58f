"""Uses every public name once, for the type checker; never run."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import tilecore
from tilecore import directml, onnx, openvino

x = np.ones((2, 3), np.float32)
out: NDArray[np.float32] = np.empty((4, 6), np.float32)

# What comes back has the dtype of what went in, the class of a masked array, and that of `out`.
Floats = NDArray[np.float32]
assert_type(tilecore.tile(x, [2, 2]), Floats)
assert_type(tilecore.tile(np.float32(1), 3), Floats)
assert_type(tilecore.tile([1, 2], 2, threads=2), NDArray[Any])
assert_type(tilecore.tile(x, np.array([2, 2]), out), Floats)
assert_type(tilecore.tile([[1.0]], np.int8(2), out=out, threads=None), Floats)
assert_type(tilecore.tile(x, 2, axis=0), Floats)
assert_type(tilecore.tile_region(x, (2, 2), (0, 0), (1, 1)), Floats)
assert_type(tilecore.tile_region([1], (2, 2), (0, 0), (1, 1)), NDArray[Any])
assert_type(tilecore.tile_region(x, None, (-1, -1), (1, 1)), Floats)
assert_type(tilecore.tile_region([1], (2, 2), (0, 0), (4, 6), out), Floats)
assert_type(tilecore.tile_view(x, (3, 1, 1)), Floats)
assert_type(tilecore.tile_view([1], 1), NDArray[Any])
assert_type(tilecore.tile_mapped(x, (1000, 1)), Floats)
assert_type(tilecore.tile_mapped([1], 2), NDArray[Any])
assert_type(tilecore.output_shape((2, 3), 2), tuple[int, ...])

assert_type(onnx.tile(x, [2, 2]), Floats)
assert_type(onnx.tile_6([1], [2]), NDArray[Any])
assert_type(onnx.tile_1([[1.0]], 2, 0, out), Floats)
assert_type(openvino.tile(x, [2]), Floats)
assert_type(directml.tile(x, [2, 2], out, feature_level="4_1"), Floats)

plan = tilecore.TilePlan((2, 3), 2, np.float32)
assert_type(plan, tilecore.TilePlan[np.float32])
assert_type(plan.tile(x), Floats)
assert_type(plan.tile(x, out, threads=1), Floats)
assert_type(plan.region([[1]], (0, 0), (1, 1)), Floats)
assert_type(plan.batch([x, x]), Floats)
assert_type(plan.batch(x, out), Floats)
assert_type(tilecore.TilePlan((2, 3), 2, x.dtype).tile(x), Floats)
assert_type(tilecore.TilePlan((2, 3), 2, "float32").tile(x), NDArray[Any])
assert_type(plan.input_shape + plan.output_shape + plan.reps, tuple[int, ...])
assert_type(plan.dtype, np.dtype[np.float32])
assert_type(plan.nbytes, int)
assert_type(hash(plan), int)
assert_type(plan == plan, bool)

# What `tile` returns has as many axes as `a`, or as the tuple of repeats, if these are more.
Line = np.ndarray[tuple[int], np.dtype[np.float32]]
Rows = np.ndarray[tuple[int, int], np.dtype[np.float32]]
Box = np.ndarray[tuple[int, int, int], np.dtype[np.float32]]


def ranks(line: Line, rows: Rows, box: Box, unknown: Floats, reps: tuple[int, ...]) -> None:
    assert_type(tilecore.tile(line, 2), Line)
    assert_type(tilecore.tile(x, 2, threads=1), Rows)
    assert_type(tilecore.tile(box, (2,)), Box)
    assert_type(tilecore.tile(rows, (2, 2)), Rows)
    assert_type(tilecore.tile(box, (2, 2)), Box)
    assert_type(tilecore.tile(box, (2, 2, 2)), Box)
    assert_type(tilecore.tile(np.float32(1), (2, 2)), Rows)
    assert_type(tilecore.tile(line, (2, 2, 2)), Box)
    assert_type(tilecore.tile(rows, (2, 2, 2)), Box)
    assert_type(tilecore.tile(unknown, 2), Floats)
    assert_type(tilecore.tile(unknown, (2, 2)), Floats)
    assert_type(tilecore.tile(rows, reps), Floats)


Masked = np.ma.MaskedArray[Any, np.dtype[np.int8]]


def masked(array: Masked) -> None:
    assert_type(tilecore.tile(array, 2), Masked)
    assert_type(tilecore.tile_mapped(array, 2), Masked)
    assert_type(tilecore.tile_region(array, None, -1, 1), Masked)


def untyped(plan: tilecore.TilePlan) -> None:  # as callers write it who use no type parameter
    assert_type(plan.tile(x), NDArray[Any])


tilecore.set_num_threads(2)
tilecore.set_recycle_limit(np.int64(2**20))
assert_type(tilecore.get_recycle_limit() + tilecore.recycled_bytes(), int)
tilecore.release_memory()
assert_type(tilecore.get_num_threads(), int)
with tilecore.num_threads(1):
    pass
with tilecore.replace_numpy_tile() as replaced:
    assert_type(replaced, tilecore.replace_numpy_tile)
tilecore.replace_numpy_tile().restore()
with tilecore.profile() as table:
    pass
assert_type((table["page_faults"], table["sites"][0]["hint"]), tuple[int, str])
tilecore.set_max_bytes(2**30)
assert_type(tilecore.get_max_bytes(), int)
assert_type(tilecore.get_include(), str)
tilecore.show_config()
assert_type(tilecore.show_config(mode="dicts"), dict[str, dict[str, Any]])
assert_type(tilecore.__version__, str)

for tile in (onnx.tile, onnx.tile_6, onnx.tile_13, onnx.for_opset(13)):
    tile(x, [2, 2])
onnx.tile_1(x, 2, 1, out, threads=1)
onnx.infer_shape(("N", None, 3), [1, 2, 3], opset=13)
assert_type(onnx.infer_shape(None, repeats_shape=(3,), products=True), tuple[int | str | None, ...] | None)
onnx.infer_shape(((1, 5), 3), [1, 2])  # type: ignore[arg-type]  # ONNX has no intervals
directml.infer_shape((2, (1, 5)), [1, 2])  # type: ignore[arg-type]
onnx.infer_shape_1((2, 3), 2, 1, products=True)
onnx.supported_types(13)
openvino.tile_1(x, [2], out)
openvino.infer_shape(((1, 5), None), repeats_shape=(2,))
directml.infer_shape((2, 3), [2, 2])
directml.supported_types("2_1")
