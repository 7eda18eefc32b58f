from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from numpy.typing import ArrayLike, NDArray

from tilecore._dialects.tensors import Types

@final
class Version:
    name: str
    types: Types
    count_types: Types
    ranks: range
    any_length: bool
    min_repeat: int | None
    max_elements: int | None
    names: Mapping[str, str]
    def __init__(
        self,
        name: str,
        types: Types = ...,
        count_types: Types = ...,
        *,
        ranks: range = ...,
        any_length: bool = False,
        min_repeat: int | None = 0,
        max_elements: int | None = None,
        names: Mapping[str, str] | None = None,
        check: Callable[[Version, Sequence[int], tuple[int, ...]], tuple[int, ...]] | None = None,
    ) -> None: ...
    def tile(self, input: ArrayLike, repeats: Any, out: NDArray[Any] | None, threads: int | None) -> NDArray[Any]: ...
    def read_counts(self, tensor: NDArray[Any], repeats: Any) -> tuple[int, ...]: ...
