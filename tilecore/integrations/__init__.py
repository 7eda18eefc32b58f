"""tilecore in other libraries: Dask, Numba, onnx's reference evaluator, OpenVINO, PyTorch.

A module is loaded when it is first asked for, and only then needs its library: ``tilecore.integrations.dask.tile``.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if not _TYPE_CHECKING:  # for type checkers, every name would exist

    def __getattr__(name: str) -> object:
        if name in ("dask", "numba", "onnx_reference", "openvino_op", "torch"):
            return _import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
