"""tilecore: a fast `numpy.tile` for CPUs, and the exact Tile of ONNX, OpenVINO and DirectML.

>>> import numpy, tilecore
>>> tilecore.tile(numpy.arange(3), (2, 2))
array([[0, 1, 2, 0, 1, 2],
       [0, 1, 2, 0, 1, 2]])

Which function to use for large results (`help` on each describes its cost):

==================  ==================================================================
`tile`              a new array, in the memory of earlier results where possible
`tile` with `out`   an array that you have
`TilePlan`          many arrays of one shape, planned once
`tile_region`       a part of the result, without making the rest
`tile_mapped`       a copy-on-write result: milliseconds, and one block of memory
`tile_view`         a read-only view, if every repeated axis has length 1
==================  ==================================================================

`tile` follows `numpy.tile`. The modules `tilecore.onnx`, `tilecore.openvino` and `tilecore.directml` follow the rules
of ONNX, OpenVINO and DirectML.
"""

import sys as _sys
import typing as _typing
from importlib import util as _util

# NumPy is first: it may refuse a subinterpreter, and our modules work only in the first interpreter that loads them.
import numpy as _numpy

if _numpy.__version__.startswith(("0.", "1.")):
    raise ImportError(f"tilecore needs NumPy 2.0 or later, found {_numpy.__version__} in {_numpy.__path__[0]}")
try:
    from tilecore._core.arrays import tile, tile_mapped, tile_region, tile_view
except ModuleNotFoundError as _error:
    if _error.name != "tilecore._core.arrays":
        raise
    raise ImportError(
        f"tilecore's modules in {__path__[0]} are not compiled for this Python, or lie in an archive. If this is a "
        "clone, Python has found its source folder first, as `python -m` does there: leave the clone to import the "
        "installed package (`pip install .`), or compile in place (`pip install --editable .`)"
    ) from None
from tilecore._core.installation import get_include, show_config
from tilecore._core.replacement import replace_numpy_tile
from tilecore._core.resources.memory import (
    get_max_bytes,
    get_recycle_limit,
    recycled_bytes,
    release_memory,
    set_max_bytes,
    set_recycle_limit,
)
from tilecore._core.resources.threads import get_num_threads, num_threads, set_num_threads
from tilecore._core.tileplan import TilePlan, output_shape
from tilecore._profile import profile
from tilecore._version import __version__ as __version__

_DIALECTS = ("directml", "onnx", "openvino")
if _typing.TYPE_CHECKING:  # read by type checkers, and by programs that freeze others
    from tilecore import directml as directml
    from tilecore import integrations as integrations
    from tilecore import onnx as onnx
    from tilecore import openvino as openvino
for _name in (*_DIALECTS, "integrations"):
    # These modules begin with `import tilecore`: the one exception to the layers' order (ARCHITECTURE.md). An `import`
    # here would wait for a thread that imports such a module first, while that thread waits for this package. And with
    # a `__getattr__` that imports them later, Python would look up each `tilecore.tile` more slowly.
    _module = _sys.modules.get(f"tilecore.{_name}")
    if _module is None or getattr(_module.__spec__, "_initializing", False):  # it waits in another thread
        _spec: _typing.Any = _util.find_spec(f"tilecore.{_name}")
        _module = _util.module_from_spec(_spec)
        _spec.loader.exec_module(_module)
        _sys.modules[_spec.name] = _module  # when it is complete: other threads may import it
    globals()[_name] = _module

# The dialects are left out: a star import would bind the names `onnx` and `openvino`, of other libraries, to them.
__all__ = ["TilePlan", "output_shape", "replace_numpy_tile", "tile", "tile_mapped", "tile_region", "tile_view"]
__all__ += ["get_max_bytes", "get_num_threads", "get_recycle_limit", "num_threads", "recycled_bytes", "release_memory"]
__all__ += ["get_include", "profile", "set_max_bytes", "set_num_threads", "set_recycle_limit", "show_config"]

# `help` and pickles name functions and classes as users do. For two classes, tileplan.pyx and replacement.pyx do this.
for _value in {*map(globals().get, __all__)} - {TilePlan, replace_numpy_tile}:
    _value.__module__ = __name__
