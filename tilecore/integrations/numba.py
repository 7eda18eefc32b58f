"""tilecore's functions and `numpy.tile` in code that Numba compiles.

Numba calls `init` by the entry point `numba_extensions`, before it compiles or loads its first function:

>>> import numba, numpy as np
>>> @numba.njit
... def checkerboard(n):
...     return np.tile(np.array([[0, 1], [1, 0]]), (n, n))
>>> checkerboard(1)
array([[0, 1],
       [1, 0]])

Compiled code calls the C functions in SIGNATURES, without the GIL. It holds only their names, and each process looks
up the addresses, so compiled functions may be cached.
"""

from __future__ import annotations

# Numba has no stubs, and types of its own.
# mypy: ignore-errors
import llvmlite.binding
import numpy as np
from numba import carray
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typing.templates import builtin_registry
from numba.cpython.unsafe.tuple import tuple_setitem
from numba.extending import get_cython_function_address, intrinsic, overload, register_jitable
from numba.np import arraymath, arrayobj  # noqa: F401 - they would register an np.tile of Numba's own
from numba.np.numpy_support import is_nonelike, type_can_asarray
from numba.np.unsafe.ndarray import to_fixed_tuple

import tilecore
from tilecore import capi

__all__: list[str] = []  # Numba calls `init`
__dir__ = __all__.copy

INT, SIZE, POINTER = types.intc, types.intp, types.voidptr
SIGNATURES = {
    "tilecore_output_shape": INT(INT, POINTER, INT, POINTER, SIZE, POINTER, POINTER),
    "tilecore_tile": INT(INT, POINTER, POINTER, INT, POINTER, SIZE, POINTER, POINTER, POINTER, INT),
    "tilecore_find_overlap": INT(INT, POINTER, POINTER, POINTER, INT, POINTER, POINTER, POINTER, SIZE),
}
# Code in Numba's caches refers to these names, which contain the major version of the ABI.
c_output_shape, c_tile, c_find_overlap = (
    types.ExternalFunction(f"{name}.1", kind) for name, kind in SIGNATURES.items()
)

INT_MAX = 2**31 - 1  # of C
UNKNOWN = (
    "tilecore: the number of reps must be known at compile time; pass a tuple, such as "
    "numba.np.unsafe.ndarray.to_fixed_tuple(reps, n) for n items, or pass out"
)


def init():
    """Called once in each process: see "Registering Extensions with Entry Points" in Numba's documentation."""
    for name in SIGNATURES:
        llvmlite.binding.add_symbol(f"{name}.1", get_cython_function_address("tilecore.capi", name))
    overload(tilecore.tile)(tile)
    overload(tilecore.output_shape)(output_shape)
    if not any(value is np.tile for value, _ in builtin_registry.globals):
        overload(np.tile)(tile_of_numpy)


def tile(a, reps, out=None, axis=None, threads=None):
    if not isinstance(a, types.Array):
        if not type_can_asarray(a):
            raise TypingError(f"tilecore: a must be an array, a number, or a list or tuple of numbers, got {a}")
        return lambda a, reps, out=None, axis=None, threads=None: tilecore.tile(np.asarray(a), reps, out, axis, threads)
    if not is_nonelike(axis):
        raise TypingError("tilecore: axis must be None in compiled code; pass one repeat for each axis of a")
    if not is_nonelike(threads) and not isinstance(threads, types.Integer):
        raise TypingError(f"tilecore: threads must be an integer or None, got {threads}")
    if not is_nonelike(out) and not (isinstance(out, types.Array) and out.dtype == a.dtype and out.mutable):
        raise TypingError(f"tilecore: out must be a writeable array of {a.dtype}, got {out}")
    if (count := count_of(reps, "reps")) is None and is_nonelike(out):
        raise TypingError(UNKNOWN)
    count, least = (out.ndim, out.ndim if a.ndim < out.ndim else 0) if count is None else (count, count)
    ones, room = (1,) * count, (0,) * check_rank(max(a.ndim, count))
    if not is_nonelike(out) and out.ndim != len(room):
        raise TypingError(f"tilecore: out must have the rank of the result, {len(room)}, got {out}")
    strided, spread = a.layout != "C", not is_nonelike(out) and out.layout != "C"

    def compiled_tile(a, reps, out=None, axis=None, threads=None):
        max_threads = 0  # C's default
        if threads is not None:
            if threads < 1:
                raise ValueError("tilecore: threads must be at least 1")
            max_threads = min(np.intp(threads), INT_MAX)
        counts = as_counts(reps, least, ones)
        shape = result_shape(a.shape, counts, a.itemsize, room)
        if out is None:
            result = np.empty(shape, a.dtype)
        else:
            result = out
            if shape != out.shape:
                raise ValueError("tilecore: out must have the shape of the result")
        steps, result_steps = on_stack(a.strides if strided else ()), on_stack(result.strides if spread else ())
        dims = on_stack(a.shape)
        if out is not None:
            arrays = a.ndim, dims, steps, a.ctypes, out.ndim, on_stack(shape), result_steps, out.ctypes
            found = c_find_overlap(*arrays, a.itemsize)  # separate columns and channels pass, as arrays do
            if found == 1:
                raise ValueError("tilecore: out must not have overlapping elements")
            if found == 2:
                raise ValueError("tilecore: out must not share memory with the input")
        given = a.ndim, dims, steps, len(counts), on_stack(counts), a.itemsize
        c_tile(*given, a.ctypes, result.ctypes, result_steps, max_threads)
        return result

    return compiled_tile


def tile_of_numpy(A, reps):
    tile(A, reps)  # so that typing errors are raised here, not in a nested call
    return lambda A, reps: tilecore.tile(A, reps)


def output_shape(shape, reps):
    ndim, count = count_of(shape, "shape"), count_of(reps, "reps")
    if ndim is None or count is None:
        raise TypingError(UNKNOWN)
    dims, ones, room = (1,) * ndim, (1,) * count, (0,) * check_rank(max(ndim, count))

    def shape_of_tiling(shape, reps):
        return result_shape(as_counts(shape, ndim, dims), as_counts(reps, count, ones), 1, room)

    return shape_of_tiling


def count_of(integers, name):
    """How many integers a value of this type has; None if the type does not determine the number."""
    if isinstance(integers, types.Integer):
        return 1
    if isinstance(integers, types.BaseTuple) and all(isinstance(item, types.Integer) for item in integers.types):
        return len(integers.types)
    if isinstance(getattr(integers, "dtype", None), types.Integer):
        if isinstance(integers, types.NestedArray) and integers.ndim == 1:  # a field of a record
            return integers.shape[0]
        if isinstance(integers, types.Array) and integers.ndim < 2:
            return None if integers.ndim else 1
        if isinstance(integers, types.List | types.ListType):
            items = getattr(integers, "initial_value", None)  # of a list literal, as in np.tile(a, [2, 3])
            return None if items is None else len(items)
    what = "must be an integer, or a tuple, a list or a one-dimensional array of integers"
    raise TypingError(f"tilecore: {name} {what}, got {integers}")


def check_rank(rank):
    if rank > capi.TILECORE_MAX_RANK:
        raise TypingError(f"tilecore: the result must have at most {capi.TILECORE_MAX_RANK} axes, got {rank}")
    return rank


def as_counts(integers, least, ones):
    """A tuple as long as `ones`, with 1s in front if there are fewer integers; only compiled code calls this."""
    raise NotImplementedError


@overload(as_counts)
def compile_as_counts(integers, least, ones):
    if isinstance(integers, types.BaseTuple):
        return lambda integers, least, ones: integers
    if isinstance(integers, types.Integer):
        return lambda integers, least, ones: (integers,)
    if isinstance(integers, types.Array) and integers.ndim == 0:
        return lambda integers, least, ones: (integers[()],)

    def as_tuple(integers, least, ones):
        if not least <= len(integers) <= len(ones):
            raise ValueError("tilecore: the number of reps differs from the number at compile time")
        for k in range(len(integers)):
            ones = tuple_setitem(ones, len(ones) - len(integers) + k, np.intp(integers[k]))
        return ones

    return as_tuple


@intrinsic
def on_stack(typingctx, integers):
    """A pointer to a copy of the tuple on the stack of the calling function; NULL for an empty tuple."""

    def generate(context, builder, signature, args):
        items = zip(cgutils.unpack_tuple(builder, args[0]), signature.args[0].types, strict=True)
        items = [context.cast(builder, item, kind, SIZE) for item, kind in items]
        if not items:
            return context.get_constant_null(POINTER)
        pointer = cgutils.alloca_once_value(builder, cgutils.pack_array(builder, items))
        return builder.bitcast(pointer, context.get_value_type(POINTER))

    return POINTER(integers), generate


@register_jitable
def result_shape(shape, counts, itemsize, room):
    """The shape of the result; `room` is a tuple of the same length."""
    extents, null = on_stack(room), on_stack(())
    status = c_output_shape(len(shape), on_stack(shape), len(counts), on_stack(counts), itemsize, extents, null)
    if status == capi.TILECORE_BAD_SHAPE:
        raise ValueError("tilecore: extents must not be negative")
    if status == capi.TILECORE_BAD_REPEATS:
        raise ValueError("tilecore: reps must be from 0 to 9223372036854775807")
    if status != capi.TILECORE_OK:
        raise ValueError("tilecore: the result is too large, its size overflows")
    return to_fixed_tuple(carray(extents, (len(room),), np.intp), len(room))
