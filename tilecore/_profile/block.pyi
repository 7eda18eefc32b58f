from collections.abc import Callable
from typing import Any, TypedDict, final

# Of a profile: see Site.row and Profile in measure.py. As classes they would take a line for each key.
# fmt: off
_Site = TypedDict("_Site", {  # noqa: UP013
    "file": str, "line": int, "function": str, "code": str, "calls": int, "measured": int, "bytes": int,
    "numpy_seconds": float, "tilecore_seconds": float | None, "range": list[float], "hint": str,
    "inputs": dict[str, int],
})
_Table = TypedDict("_Table", {  # noqa: UP013
    "seconds": float, "profile_seconds": float, "numpy_seconds": float, "tilecore_seconds": float,
    "page_faults": int, "system_seconds": float, "sites": list[_Site],
})
# fmt: on

@final
class ProfileBlock:
    def __init__(self, profile: Any, active: list[Any], function: Callable[..., Any]) -> None: ...
    def __enter__(self) -> _Table: ...
    def leave(self) -> bool: ...
    def __exit__(self, *exception: object) -> None: ...
