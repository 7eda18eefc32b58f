"""`get_include`, for builds of other packages, and `show_config`, for bug reports."""

import os
import sys
from typing import Any, Literal, overload

import numpy

from tilecore._core.request.errors import short_repr
from tilecore._core.resources.memory import get_max_bytes, get_recycle_limit, recycled_bytes
from tilecore._core.resources.processor import build, cache_sizes, instruction_sets  # type: ignore[import-not-found]
from tilecore._core.resources.threads import get_num_threads
from tilecore._core.write import tiling as tiling  # type: ignore[attr-defined]  # so that freezers find write/
from tilecore._units import with_binary_unit
from tilecore._version import __version__

_SIZES = ("max_bytes", "recycle_limit", "recycled", "last_cache", "bypassed_from")
_VARIABLES = ("TILECORE_ISA", "TILECORE_MAX_BYTES", "TILECORE_NUM_THREADS", "TILECORE_RECYCLE_BYTES")
_NOTES = {"bypassed_from": ": larger results usually bypass the caches"}


def get_include() -> str:
    """The folder of the C headers, for the include path of other extension modules.

    >>> import os, tilecore
    >>> os.path.exists(os.path.join(tilecore.get_include(), "tilecore", "tilecore.h"))
    True

    Source files include them as in ``#include <tilecore/tilecore.h>``.
    """
    installed = os.path.join(os.path.dirname(os.path.dirname(__file__)), "include")
    core = os.path.dirname(os.path.realpath(__file__))  # an editable install may consist of links
    checkout = os.path.join(os.path.dirname(os.path.dirname(core)), "include")
    return installed if os.path.isdir(installed) else checkout


@overload
def show_config(mode: Literal["stdout"] = "stdout") -> None: ...
@overload
def show_config(mode: Literal["dicts"]) -> dict[str, dict[str, Any]]: ...
def show_config(mode: str = "stdout") -> dict[str, dict[str, Any]] | None:
    """Show versions, compiler, instruction sets, caches, threads, limits and environment variables.

    >>> import tilecore
    >>> sorted(tilecore.show_config(mode="dicts"))
    ['Build', 'Environment', 'Kernels', 'Limits', 'Memory', 'Threads', 'Versions']

    Parameters
    ----------
    mode : "stdout" or "dicts"
        "stdout" prints, and "dicts" returns a dict of dicts, as `numpy.show_config` does. Others raise a ValueError.
    """
    if not isinstance(mode, str) or mode not in ("stdout", "dicts"):  # an array compares by item
        raise ValueError(f"show_config: expected mode 'stdout' or 'dicts', got {short_repr(mode)}")
    config: dict[str, dict[str, Any]] = {
        "Versions": {"tilecore": __version__, "numpy": numpy.__version__, "python": sys.version.split()[0]},
        "Build": {**build(), "include": get_include()},
        "Kernels": {**instruction_sets(), **cache_sizes()},
        "Threads": {"most": get_num_threads()},
        "Environment": {name: text for name, text in sorted(os.environ.items()) if name.startswith("TILECORE_")},
        "Limits": {"max_bytes": get_max_bytes(), "recycle_limit": get_recycle_limit()},
        "Memory": {"recycled": recycled_bytes()},
    }
    if mode == "dicts":
        return config
    for heading, entries in config.items():
        print(f"{heading}:")
        for name, value in entries.items():
            unit = f" ({with_binary_unit(value)})" if name in _SIZES else ""
            unknown = " (not a variable of tilecore)" * (heading == "Environment" and name not in _VARIABLES)
            print(f"  {name}: {value}{unit}{unknown}{_NOTES.get(name, '')}")
    return None
