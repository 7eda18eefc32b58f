from collections.abc import Callable
from typing import Any

numpy_tile: Callable[..., Any]
