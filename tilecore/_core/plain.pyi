from typing import Any

from numpy.typing import NDArray

def tile_array(
    array: NDArray[Any], reps: object, out: object = None, threads: object = None, axis: object = None
) -> NDArray[Any]: ...
