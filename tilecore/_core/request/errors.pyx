"""The message of an error is composed once, in the public function that was called.

Code inside raises a `RequestError`: the kind of error, what is wrong, with which argument, on which axis. It does not
know which function was called. This public function, of the core or of a dialect, catches the error. `format_error`
then adds the function's name, its own names for the arguments, and what the caller typed.

Exceptions of the caller's code and of signal handlers are not RequestErrors, and pass unchanged. This module is
compiled, so that a process has one class `RequestError`, however often the package is imported.
"""

import reprlib

import numpy as np

NO_NAMES = {}
NAMES = {"repeats": "reps", "input": "a"}  # the core's names of arguments, and those of `tile`
_LIBRARIES = {"tilecore", "numpy", "torch", "openvino"}  # tilecore words their exceptions anew


class RequestError(Exception):
    """Why a request cannot be met. The public function makes the error from it.

        kind        the class that the caller gets: TypeError, ValueError or MemoryError
        what        what is wrong: a sentence, but without its subject if that is `argument`
        argument    the argument at fault, as the core calls it: "input", "repeats", "shape", "out", "start", ...
        axis        the axis at fault, counted in the result
    """

    def __init__(self, kind, what, argument=None, axis=None):
        super().__init__(kind, what, argument, axis)
        self.kind, self.what, self.argument, self.axis = kind, what, argument, axis


def shape_changed():
    """The RequestError for an input that the caller's code changed meanwhile."""
    return RequestError(ValueError, "changed its shape during the call", "input")


def pass_on(reason):
    """Raise `reason` again if its traceback shows the caller's code or a signal handler; else return.

    It returns if Python or one of _LIBRARIES says that an object is no array or no integer, or if one of DLPack's
    methods raises a BufferError. A RecursionError may come before the first line of the caller's code.
    """
    if isinstance(reason, RecursionError):
        raise reason
    trace = reason.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_name  # in Cython's frames it begins with the class
        if isinstance(reason, BufferError) and name.endswith(("__dlpack__", "__dlpack_device__")):
            return
        if str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0] not in _LIBRARIES:
            raise reason
        trace = trace.tb_next


def format_error(error, name, input=None, names=NO_NAMES, /, **given):
    """The error that the function `name` raises for `error`; raise it ``from error.__cause__``.

    An error made here for another public function, such as one that `name` called, is worded anew. Any other error, of
    a signal handler for instance, is returned unchanged.

    >>> error = RequestError(ValueError, "must not be negative, got -2", "repeats", axis=1)
    >>> format_error(error, "ONNX Tile-1", (2, 3), {"repeats": "tiles"}, tiles=-2, axis=1)
    ValueError('ONNX Tile-1: tiles must not be negative, got -2 for axis 1; input shape (2, 3), tiles -2, axis 1')

        input    the array, or its shape, or None if unknown
        names    the function's own names for the core's arguments and for "input shape", if they differ
        given    the arguments as they were typed; those that are None are left out
    """
    if hasattr(error, "_tilecore_request"):
        error = RequestError(*error._tilecore_request)
    if not isinstance(error, RequestError):  # a MemoryError, if Cython has no memory for a traceback
        return error
    subject = "" if error.argument is None else names.get(error.argument, error.argument) + " "
    where = "" if error.axis is None else f" for axis {error.axis}"
    context = []
    if issubclass(type(input), np.ndarray):
        input = np.asarray(input)  # a subclass may have a `shape` of its own
    if input is not None:
        context.append(f"{names.get('input shape', 'input shape')} {short_repr(getattr(input, 'shape', input))}")
        if type(input) is np.ndarray:
            context.append(f"dtype {short_repr(input.dtype)}")
    # A comprehension would not do: without memory, Cython 3.3.1 frees its items twice.
    context += (f"{argument} {short_repr(value)}" for argument, value in given.items() if value is not None)
    suffix = f"; {', '.join(context)}" if context else ""
    made = error.kind(f"{name}: {subject}{error.what}{where}{suffix}")
    made._tilecore_request = error.kind, error.what, error.argument, error.axis
    return made


class _ShortRepr(reprlib.Repr):
    """`repr` in one short line. Python refuses to write a very long integer, and a large array takes time."""

    def __init__(self):
        super().__init__()
        self.maxlist = self.maxtuple = 16

    def repr1(self, x, level):
        # reprlib dispatches on the name of a type, and other libraries have an `ndarray` or `array` too.
        return super().repr1(x, level) if type(x) in _KNOWN else self.repr_instance(x, level)

    def repr_instance(self, x, level):
        if not is_known(x):
            return f"<{type_name(x)} instance>"  # its `__repr__`, or that of what it holds, may raise or take long
        return shorten(" ".join((str(x) if issubclass(type(x), np.dtype) else repr(x)).split()))

    def repr_int(self, x, level):
        return repr(x) if abs(x) < 10**40 else f"<integer of {x.bit_length()} bits>"

    def repr_ndarray(self, x, level):
        if x.size > self.maxlist:
            return f"<array of shape {x.shape}, dtype {self.repr(x.dtype)}>"
        return f"{self.repr(x.tolist())} of dtype {self.repr(x.dtype)}"


def is_known(x):
    """Whether the text of `x` runs no code of the caller's: nor does this, so `isinstance` and attributes are out."""
    kind = type(x)
    if kind in _SHOWN:
        return True
    if issubclass(kind, np.dtype):
        return has_plain_text(x)
    if module_name(kind) not in _LIBRARIES or hasattr(kind.__repr__, "__code__"):
        return False
    dtype = getattr(x, "dtype", None)
    return not isinstance(dtype, np.dtype) or not dtype.hasobject and has_plain_text(dtype)


def has_plain_text(dtype, levels=3):
    """Whether the text of a dtype is short, and shows no object of the caller's: a title, or a missing string."""
    if dtype.kind == "T":
        return type(getattr(dtype, "na_object", None)) in _SHOWN
    fields = dtype.base.fields or {}
    return len(fields) <= 16 * (levels > 0) and all(
        [len(field) == 2 and has_plain_text(field[0], levels - 1) for field in fields.values()])


def shorten(text, most=80):
    half = (most - 3) // 2
    return text if len(text) <= most else f"{text[:half]}...{text[-half:]}"


_get_name, _get_module = vars(type)["__name__"].__get__, vars(type)["__module__"].__get__


def type_name(x):
    """The name of an object's class, by no code of a metaclass."""
    return shorten(_get_name(type(x)))


def module_name(kind):
    """The package that defines a class, or an empty text: `__module__` may be any object, or deleted."""
    try:
        name = _get_module(kind)
    except AttributeError:
        return ""
    return name.partition(".")[0] if type(name) is str else ""


_KNOWN = (int, str, list, tuple, np.ndarray)
_SHOWN = {type(None), bool, float, complex, bytes, range, str}
short_repr = _ShortRepr().repr
