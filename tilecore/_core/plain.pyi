from typing import Any, final

from numpy.typing import NDArray

@final
class Limits:
    def __init__(
        self,
        types: int,
        count_types: int,
        *,
        ranks: range = ...,
        any_length: bool = ...,
        min_repeat: int = ...,
        max_elements: int | None = ...,
    ) -> None: ...

def tile_array(
    array: NDArray[Any], reps: object, out: object = None, threads: object = None, axis: object = None
) -> NDArray[Any]: ...
def tile_within(limits: Limits, input: object, repeats: object) -> NDArray[Any] | None: ...
