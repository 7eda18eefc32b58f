from typing import Any

from numpy.typing import NDArray

def read_array(value: Any, argument: str = "input", subok: bool = False) -> NDArray[Any]: ...
