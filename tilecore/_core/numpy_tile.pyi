from collections.abc import Callable
from typing import Any, Self, TypedDict, final

class _Site(TypedDict):
    file: str
    line: int
    function: str
    code: str
    calls: int
    measured: int
    bytes: int
    numpy_seconds: float
    tilecore_seconds: float | None
    range: list[float]
    hint: str
    inputs: dict[str, int]

class _Table(TypedDict):
    """Of a profile: see `Profile.report` and `Site.row` in measure.py."""

    seconds: float
    profile_seconds: float
    numpy_seconds: float
    tilecore_seconds: float
    sites: list[_Site]

@final
class ProfileBlock:
    def __init__(self, profile: Any, active: list[Any], function: Callable[..., Any]) -> None: ...
    def __enter__(self) -> _Table: ...
    def leave(self) -> bool: ...
    def __exit__(self, *exception: object) -> None: ...

@final
class replace_numpy_tile:
    def __init__(self) -> None: ...
    def restore(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...
