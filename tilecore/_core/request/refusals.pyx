"""The message of an error is composed once, in the public function that was called.

Code inside raises a `Refusal`: the kind of error, what is wrong, with which argument, on which axis. It does not know
the name of the function that was called. That public function, of any dialect, catches it, and `worded` adds the
function's name, its own names for the arguments, and what the caller typed.

    core        Refusal(ValueError, "must not be negative, got -2", "repeats", axis=1)
    tile        ValueError: tile: reps must not be negative, got -2 for axis 1; input shape (2, 3), ...
    Tile-1      ValueError: ONNX Tile-1: tiles must not be negative, got -2 for axis 1; input shape ...

Exceptions of the caller's own objects are not Refusals, and are passed on unchanged.

Compiled, so that there is one class `Refusal` in a process, however often the package is imported.
"""

import numpy as np

from tilecore._core.request.brief import brief

NO_NAMES = {}


class Refusal(Exception):
    """Why a request cannot be met. The public function makes the error from it.

    Parameters
    ----------
    kind : exception class
        The class that the caller gets: TypeError, ValueError or MemoryError.
    what : str
        What is wrong: a sentence, but without its subject if that is `argument`.
    argument : str, optional
        The argument at fault, as the core calls it: "input", "repeats", "shape", "out", "start", ...
    axis : int, optional
        The axis at fault, counted in the result.
    """

    def __init__(self, kind, what, argument=None, axis=None):
        super().__init__(kind, what, argument, axis)
        self.kind, self.what, self.argument, self.axis = kind, what, argument, axis


def worded(refusal, name, input=None, names=NO_NAMES, /, **given):
    """The error that the function `name` raises for `refusal`; raise it ``from refusal.__cause__``.

    >>> refusal = Refusal(ValueError, "must not be negative, got -2", "repeats", axis=1)
    >>> worded(refusal, "ONNX Tile-1", (2, 3), {"repeats": "tiles"}, tiles=-2, axis=1)
    ValueError('ONNX Tile-1: tiles must not be negative, got -2 for axis 1; input shape (2, 3), tiles -2, axis 1')

    Parameters
    ----------
    input : array, or its shape, or None if unknown
    names : mapping
        The function's own names for the core's arguments and for "input shape", if they differ.
    given : the arguments as they were typed; those that are None are left out
    """
    subject = "" if refusal.argument is None else names.get(refusal.argument, refusal.argument) + " "
    where = "" if refusal.axis is None else f" for axis {refusal.axis}"
    context = []
    if input is not None:
        shape = getattr(input, "shape", input)
        context.append(f"{names.get('input shape', 'input shape')} {brief(shape)}")
        if isinstance(input, np.ndarray):
            context.append(f"dtype {input.dtype}")
    context += [f"{what} {brief(value)}" for what, value in given.items() if value is not None]
    asked = f"; {', '.join(context)}" if context else ""
    return refusal.kind(f"{name}: {subject}{refusal.what}{where}{asked}")


def reworded(error, name, input=None, names=NO_NAMES, /, **given):
    """`worded` for a Refusal, and for the error of another public function, which the function `name` called.

    An error made by `worded` was raised while its Refusal was handled, so the Refusal is its context. Any other error
    is returned unchanged.
    """
    refusal = error if isinstance(error, Refusal) else error.__context__
    return worded(refusal, name, input, names, **given) if isinstance(refusal, Refusal) else error
