from typing import Any

from numpy.typing import NDArray

def tile_array(
    array: NDArray[Any], reps: object, out: object = None, axis: object = None, threads: object = None
) -> NDArray[Any]: ...
