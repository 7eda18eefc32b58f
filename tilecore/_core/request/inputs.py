"""An input of any kind as a NumPy array, without a copy if it has memory to share.

NumPy takes arrays, sequences, buffers and objects with `__array__`. It would treat an object that has only DLPack's
`__dlpack__` as a single Python object, so such objects go to `numpy.from_dlpack`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilecore._core.request.refusals import Refusal
from tilecore._core.request.subclasses import is_masked

UNREADABLE = (TypeError, ValueError, MemoryError, RuntimeError, BufferError)
# PyTorch's types that NumPy lacks, by their names in PyTorch's messages, and a type of the same size.
_SAME_SIZE = {"BFloat16": "int16", "Float8": "uint8"}
_NUMPY_TAKES = ("__array__", "__array_interface__", "__array_struct__")


def as_array(value: Any, argument: str = "input") -> NDArray[Any]:
    """As as_any_array, but always a plain array; a masked one is refused, because the mask would be lost."""
    array = as_any_array(value, argument)
    if is_masked(array):
        given = f"of type {type(value).__name__} gives a {type(array).__name__}"
        raise Refusal(TypeError, f"{given}, expected a plain array", argument)
    return np.asarray(array)


def as_any_array(value: Any, argument: str = "input") -> NDArray[Any]:
    """`value` as an array, or as a subclass if it provides one. A Refusal names the type of `value`.

    >>> as_any_array([[1, 2, 3]])
    array([[1, 2, 3]])
    >>> as_any_array([[1, 2], [3]])                             # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tilecore._core.request.refusals.Refusal: (<class 'ValueError'>, 'of type list cannot be read as an array: ...
    """
    try:
        if isinstance(value, (list, tuple, np.generic)):  # quicker than missing an attribute
            return np.asarray(value)
        if hasattr(type(value), "__dlpack__") and not _numpy_takes(value):
            return np.from_dlpack(value)
        array = np.asanyarray(value)
        return np.asarray(array) if isinstance(array, np.memmap) else array
    except UNREADABLE as reason:
        refusal = unreadable(value, reason, argument)
        if refusal is None:
            raise
        raise refusal from reason


def unreadable(value: object, reason: Exception, argument: str = "input") -> Refusal | None:
    """The Refusal for a `value` that raised `reason`, one of UNREADABLE, when it was read.

    None if the class of `reason` is the object's own: the caller then raises it unchanged.
    """
    if type(reason) not in UNREADABLE and not type(reason).__module__.startswith("numpy."):
        return None
    text = f"of type {type(value).__name__} cannot be read as an array: {reason}"
    for missing, name in _SAME_SIZE.items():
        if f"ScalarType {missing}" in text:
            text += f"; pass its view(torch.{name}), and view the result as the original type"
    return Refusal(kind_of(reason), text, argument)


def refuse_out(given: object) -> Refusal:
    """The Refusal for an `out` that is not a NumPy array."""
    text = f"must be a NumPy array, got {type(given).__name__}"
    if any(kind.__module__ == "torch" for kind in type(given).__mro__):
        text += "; pass out.numpy()"
    return Refusal(TypeError, text, "out")


def _numpy_takes(value: object) -> bool:
    if any(hasattr(value, attribute) for attribute in _NUMPY_TAKES):
        return True
    try:
        memoryview(value).release()  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def kind_of(reason: Exception) -> type[Exception]:
    """The class of tilecore's error for the error of another library.

    NumPy's own MemoryError cannot be created from a text. PyTorch's RuntimeError and DLPack's BufferError mean that the
    input is of the wrong kind.
    """
    kinds: tuple[type[Exception], ...] = (ValueError, MemoryError)
    return next((kind for kind in kinds if isinstance(reason, kind)), TypeError)
