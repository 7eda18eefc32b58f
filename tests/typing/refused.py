"""What the type checkers refuse: the lines that end with "refused", and "refused by pyright" alone; never run."""

import numpy as np
from numpy.typing import NDArray

import tilecore
from tilecore import directml, onnx, openvino

x = np.ones((2, 3), np.float32)
y = [1, 2]

# A result has the input's dtype. mypy takes the overload that fits the variable, for numpy.tile too.
a: NDArray[np.int64] = tilecore.tile(x, 2)  # refused by pyright
b: NDArray[np.int64] = tilecore.tile_region(x, 2, 0, 1)  # refused by pyright
c: NDArray[np.int64] = tilecore.tile_mapped(x, 2)  # refused by pyright
d: NDArray[np.int64] = tilecore.tile_view(x, 2)  # refused by pyright
e: NDArray[np.int64] = onnx.tile(x, [2, 2])  # refused by pyright
f: NDArray[np.int64] = tilecore.TilePlan((2, 3), 2, np.float32).tile(x)  # refused
tilecore.tile(x, 2.0)  # refused
tilecore.tile(x, [2, 1.5])  # refused
tilecore.tile(x)  # refused

# Repeats, shapes and bounds are integers. As for numpy.tile, arrays of them count, and arrays of others do not.
tilecore.tile(x, np.ones(2))  # refused
tilecore.tile(x, x > 0)  # refused
tilecore.tile(x, np.float64(2))  # refused
tilecore.tile(x, "22")  # refused
with tilecore.profile() as table:
    table["sites"][0]["calls"] + table["sites"][0]["file"]  # refused
tilecore.tile_region(x, np.ones(2), 0, 1)  # refused
tilecore.tile_region(x, 2, np.zeros(2), (1, 1))  # refused
tilecore.tile_view(x, np.ones(2))  # refused
tilecore.tile_mapped(x, np.ones(2))  # refused
tilecore.output_shape((2, 3), np.ones(2))  # refused
tilecore.output_shape(np.ones(2), 2)  # refused
tilecore.TilePlan((2, 3), np.ones(2), np.float32)  # refused
tilecore.tile(x, np.arange(2))
tilecore.tile(x, np.zeros((), np.int8))
tilecore.tile(x, np.uint8(2))
tilecore.tile(x, [np.int8(2), 1])
tilecore.tile(x, range(2))
tilecore.tile(x, (n for n in (2, 2)))
tilecore.tile_region(x, np.array([2, 2]), np.zeros(2, np.int64), x.shape)
tilecore.output_shape(np.array([2, 3], np.uint16), np.arange(2))
tilecore.TilePlan(x.shape, np.arange(2), np.float32)

# A dialect's repeats are a sequence of ints, or an array of integers.
onnx.tile(x, 2)  # refused
onnx.tile(x, [2.0, 1])  # refused
onnx.tile(x, "22")  # refused
onnx.tile(x, np.ones(2))  # refused
onnx.tile(x, [2, 1], opset=6)  # refused
openvino.tile(x, 2)  # refused
directml.tile(x, [2.0, 1])  # refused
directml.tile(x, [2, 1], feature_level=4)  # refused
onnx.tile(x, y)
onnx.tile(x, (2, np.int8(1)))
onnx.tile(x, np.array([2, 1]))
onnx.tile(x, np.arange(2, dtype=np.int64))
