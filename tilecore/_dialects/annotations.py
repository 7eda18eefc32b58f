"""Annotations of the dialects' arguments and results. The element types of a specification: tensors.py."""

from collections.abc import Sequence
from typing import Any, Protocol, SupportsIndex, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

# A result has the dtype of its input, or is `out`.
T = TypeVar("T", bound=np.generic)
Out = TypeVar("Out", bound=NDArray[Any])
Array: TypeAlias = NDArray[Any]
Threads: TypeAlias = int | None


class _Integers(Protocol):
    """A tensor of integers, of any library."""

    def __array__(self) -> np.ndarray[Any, np.dtype[np.integer[Any]]]: ...


Repeats: TypeAlias = Sequence[SupportsIndex] | _Integers
