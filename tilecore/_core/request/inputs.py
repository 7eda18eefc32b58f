"""Inputs of any kind as NumPy arrays, without a copy if they have memory to share.

NumPy takes arrays, sequences, buffers and objects with `__array__`. It would treat an object that has only DLPack's
`__dlpack__` as a single Python object, so such objects go to `numpy.from_dlpack`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilecore._core.request.errors import RequestError, pass_on
from tilecore._core.request.subclasses import is_masked

UNREADABLE = (TypeError, ValueError, MemoryError, RuntimeError, BufferError)
_TORCH = "; use tilecore.integrations.torch.tile"


def as_array(value: Any, argument: str = "input") -> NDArray[Any]:
    """`value` as a plain array. A masked array is an error, because its mask would be lost."""
    array = as_any_array(value, argument)
    if is_masked(array):
        what = f"of type {type(value).__name__} gives a {type(array).__name__}, expected a plain array"
        raise RequestError(TypeError, what, argument)
    return np.asarray(array)


def as_any_array(value: Any, argument: str = "input") -> NDArray[Any]:
    """`value` as an array, or as a subclass if it provides one. A RequestError names the type of `value`.

    >>> as_any_array([[1, 2, 3]])
    array([[1, 2, 3]])
    >>> as_any_array([[1, 2], [3]])                             # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tilecore._core.request.errors.RequestError: (<class 'ValueError'>, 'of type list cannot be read as an array: ...
    """
    try:
        if isinstance(value, (list, tuple, np.generic)):  # faster than looking for a missing attribute
            return np.asarray(value)
        if hasattr(type(value), "__dlpack__") and not _numpy_takes(value):
            return np.from_dlpack(value)
        array = np.asanyarray(value)
        return np.asarray(array) if isinstance(array, np.memmap) else array
    except UNREADABLE as reason:
        raise input_error(value, reason, argument) from reason


def input_error(value: object, reason: Exception, argument: str = "input") -> RequestError:
    """The RequestError for a `value` that raised `reason`, one of UNREADABLE, when it was read."""
    pass_on(reason)
    advice = str(reason)
    if "requires grad" in advice:  # PyTorch's own advice, detach().numpy(), loses the gradient
        advice = f"it requires grad{_TORCH}, or pass its detach()"
    elif "unsupported ScalarType" in advice:
        advice += _TORCH
    elif "device type tensor" in advice:  # PyTorch's own advice is cpu(), also for tensors without memory
        advice = advice.partition(". ")[0] + _TORCH
    text = f"of type {type(value).__name__} cannot be read as an array: {advice}"
    # PyTorch's RuntimeError and DLPack's BufferError mean that the input is of the wrong kind.
    kind = next((kind for kind in (ValueError, MemoryError) if isinstance(reason, kind)), TypeError)
    return RequestError(kind, text, argument)


def out_error(given: object) -> RequestError:
    """The RequestError for an `out` that is not a NumPy array."""
    text = f"must be a NumPy array, got {type(given).__name__}"
    if any(kind.__module__ == "torch" for kind in type(given).__mro__):
        text += "; pass out.numpy()"
    return RequestError(TypeError, text, "out")


def _numpy_takes(value: object) -> bool:
    for name in ("__array__", "__array_interface__", "__array_struct__"):
        if hasattr(value, name):  # no generator: it would make a RuntimeError of the caller's StopIteration
            return True
    try:
        memoryview(value).release()  # type: ignore[arg-type]
    except TypeError as reason:
        pass_on(reason)
        return False
    return True
