"""tilecore: the Tile operation on a CPU, exact and fast.

>>> import numpy, tilecore
>>> tilecore.tile(numpy.arange(3), (2, 2))
array([[0, 1, 2, 0, 1, 2],
       [0, 1, 2, 0, 1, 2]])

`tile` is `numpy.tile`; the modules `tilecore.onnx`, `tilecore.openvino` and `tilecore.directml`
hold the same operation by the rules of ONNX, OpenVINO and DirectML.
"""

from tilecore import directml, onnx, openvino
from tilecore._memory import get_max_bytes, set_max_bytes
from tilecore._tile import output_shape, tile

__version__ = "0.1.0"

__all__ = [
    "directml",
    "get_max_bytes",
    "onnx",
    "openvino",
    "output_shape",
    "set_max_bytes",
    "tile",
]
