from collections.abc import Mapping
from typing import Any, TypeAlias

_Names: TypeAlias = Mapping[str, str]

class RequestError(Exception):
    kind: type[Exception]
    what: str
    argument: str | None
    axis: int | None
    def __init__(
        self, kind: type[Exception], what: str, argument: str | None = None, axis: int | None = None
    ) -> None: ...

def shape_changed() -> RequestError: ...
def pass_on(reason: BaseException) -> None: ...
def format_error(error: Exception, name: str, input: Any = None, names: _Names = ..., /, **given: Any) -> Exception: ...
def short_repr(x: object) -> str: ...
