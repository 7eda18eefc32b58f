"""tilecore in other libraries: Dask, Numba, onnx's reference evaluator, OpenVINO, PyTorch.

Each module needs its library, so none is imported with the package: ``from tilecore.integrations.dask import tile``.
"""

from typing import NoReturn as _NoReturn

import tilecore  # noqa: F401 - first: another thread may be importing the package


def __getattr__(name: str) -> _NoReturn:
    hint = f": its modules are imported by themselves, as by `import {__name__}.torch`"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
