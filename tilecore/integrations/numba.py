"""tilecore's functions in Numba's compiled code, and `numpy.tile`, which Numba has not.

Numba calls `init` by the entry point `numba_extensions`, before it compiles or loads its first function:

>>> import numba, numpy as np
>>> @numba.njit
... def checkerboard(n):
...     return np.tile(np.array([[0, 1], [1, 0]]), (n, n))
>>> checkerboard(1)
array([[0, 1],
       [1, 0]])

Compiled code calls C's `tilecore_output_shape` and `tilecore_tile`, without the GIL. It has their names, and each
process looks up where they are: so functions may be cached.
"""

from __future__ import annotations

# mypy: disable-error-code="import-untyped, misc, no-untyped-call, no-untyped-def, untyped-decorator"
import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typing.templates import builtin_registry
from numba.extending import get_cython_function_address, intrinsic, overload, register_jitable
from numba.np import arraymath, arrayobj  # noqa: F401 - where an np.tile of Numba's own would be
from numba.np.numpy_support import is_nonelike, type_can_asarray
from numba.np.unsafe.ndarray import to_fixed_tuple

import tilecore
from tilecore import capi
from tilecore._core.numpy_tile import tile as replacement
from tilecore._core.request.subclasses import numpy_tile

__all__ = ["init"]
__dir__ = __all__.copy

# By name, what LLVM knows it by: code in Numba's caches was made for this major version of the ABI.
SYMBOLS = {name: f"{name}.1" for name in ("tilecore_output_shape", "tilecore_tile")}


def init():
    """Let compiled code call tilecore. Numba calls this, once in a process.

    Source: Numba, "Registering Extensions with Entry Points".
    """
    for name, symbol in SYMBOLS.items():
        llvmlite.binding.add_symbol(symbol, get_cython_function_address("tilecore.capi", name))
    overload(tilecore.tile)(tile)
    overload(tilecore.output_shape)(output_shape)
    if not any(value is numpy_tile for value, _ in builtin_registry.globals):
        overload(numpy_tile)(tile_of_numpy)
        overload(replacement)(tile_of_numpy)  # what stands there while replace_numpy_tile is in force


def tile(a, reps, out=None, axis=None, threads=None):
    if not isinstance(a, types.Array):
        if not type_can_asarray(a):
            raise TypingError(f"tilecore: a must be an array, a number, or a list or tuple of numbers, got {a}")
        return lambda a, reps, out=None, axis=None, threads=None: tilecore.tile(np.asarray(a), reps, out, axis, threads)
    if not is_nonelike(axis):
        raise TypingError("tilecore: axis must be None in compiled code; give one repeat for each axis of a")
    if not is_nonelike(threads) and not isinstance(threads, types.Integer):
        raise TypingError(f"tilecore: threads must be an integer or None, got {threads}")
    if not is_nonelike(out) and not (isinstance(out, types.Array) and out.dtype == a.dtype and out.mutable):
        raise TypingError(f"tilecore: out must be a writeable array of {a.dtype}, got {out}")
    count = count_of(reps, "reps")
    own = None if count is None else zeros(count)
    like = zeros(a.ndim, count) if is_nonelike(out) else zeros(out.ndim)

    def tile_array(a, reps, out=None, axis=None, threads=None):
        most = read_threads(threads)
        counts = as_counts(reps, own)
        status, shape = result_shape(a.shape, counts, a.itemsize, like)
        check(status)
        if out is None:
            result = np.empty(shape, a.dtype)
        else:
            result = out
            if max(a.ndim, len(counts)) != out.ndim or shape != out.shape:
                raise ValueError("tilecore: out must have the shape of the result")
            if out.size:
                check_bytes(a, out)
        write_tiling(a, counts, result, most)
        return result

    return tile_array


def tile_of_numpy(A, reps):
    tile(A, reps)  # refuses here, and not within a call's call
    return lambda A, reps: tilecore.tile(A, reps)


def output_shape(shape, reps):
    counts = count_of(shape, "shape"), count_of(reps, "reps")
    like, dims, own = zeros(*counts), zeros(counts[0]), zeros(counts[1])

    def shape_of_tiling(shape, reps):
        status, sizes = result_shape(as_counts(shape, dims), as_counts(reps, own), 1, like)
        check(status)
        return sizes

    return shape_of_tiling


# ---------------------------------------------------------------- integers


def count_of(integers, name):
    """How many integers are in a value of this type; None where only the value tells."""
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
            items = getattr(integers, "initial_value", None)  # of a list written out, as [2, 3]
            return None if items is None else len(items)
    what = "must be an integer, or a tuple, a list or a one-dimensional array of integers"
    raise TypingError(f"tilecore: {name} {what}, got {integers}")


def zeros(*counts):
    """As many as the largest count: in their type is the rank of a result."""
    if None in counts:
        advice = "give a tuple, which numba.np.unsafe.ndarray.to_fixed_tuple(reps, n) makes of n items, or give out"
        what = "the rank of a result must be known when it is compiled, and so the number of reps"
        raise TypingError(f"tilecore: {what}; {advice}")
    if max(counts) > capi.TILECORE_MAX_RANK:
        raise TypingError(f"tilecore: there may be {capi.TILECORE_MAX_RANK} axes, NumPy's most, got {max(counts)}")
    return (0,) * max(counts)


def as_counts(integers, like):
    """A tuple as long as `like`, or an array of intp if that is None; in compiled code alone."""
    raise NotImplementedError


@overload(as_counts)
def compile_as_counts(integers, like):
    if isinstance(integers, types.BaseTuple):
        return lambda integers, like: integers
    if isinstance(integers, types.Integer):
        return lambda integers, like: (integers,)
    if isinstance(integers, types.Array) and integers.ndim == 0:
        return lambda integers, like: (integers[()],)
    if is_nonelike(like):
        return lambda integers, like: np.asarray(integers).astype(np.intp)
    count = len(like)

    def as_tuple(integers, like):
        if len(integers) != count:
            raise ValueError("tilecore: the list of reps was written with another number of items")
        return to_fixed_tuple(np.asarray(integers), count)

    return as_tuple


# ---------------------------------------------------------------- calls of C


def place(builder, values):
    """Put an array of LLVM's on the stack; a pointer to its first item."""
    return cgutils.gep_inbounds(builder, cgutils.alloca_once_value(builder, values), 0, 0)


def place_counts(context, builder, kind, value):
    """How many integers a tuple or an array has, and a pointer to the first."""
    if isinstance(kind, types.Array):
        array = cgutils.create_struct_proxy(kind)(context, builder, value)
        return builder.trunc(array.nitems, ir.IntType(32)), array.data
    items = zip(cgutils.unpack_tuple(builder, value), kind.types, strict=True)
    counts = [context.cast(builder, item, of_item, types.intp) for item, of_item in items]
    size = context.get_value_type(types.intp)
    return ir.IntType(32)(len(counts)), place(builder, cgutils.pack_array(builder, counts, size))


def call_c(builder, name, *arguments):
    kind = ir.FunctionType(ir.IntType(32), [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, SYMBOLS[name]), arguments)


@intrinsic
def result_shape(typingctx, shape, counts, itemsize, like):
    """A status, and the shape of a result, whose rank must be that of `like`."""

    def generate(context, builder, signature, args):
        size = context.get_value_type(types.intp)
        dims = place_counts(context, builder, signature.args[0], args[0])
        repeats = place_counts(context, builder, signature.args[1], args[1])
        result = cgutils.alloca_once(builder, ir.ArrayType(size, capi.TILECORE_MAX_RANK))
        first = cgutils.gep_inbounds(builder, result, 0, 0)
        nowhere = cgutils.get_null_value(first.type)
        status = call_c(builder, "tilecore_output_shape", *dims, *repeats, args[2], first, nowhere)
        sizes = [builder.load(cgutils.gep_inbounds(builder, result, 0, k)) for k in range(len(like))]
        return cgutils.pack_struct(builder, [status, cgutils.pack_array(builder, sizes, size)])

    return types.Tuple([types.intc, types.UniTuple(types.intp, len(like))])(shape, counts, types.intp, like), generate


@intrinsic
def write_tiling(typingctx, a, counts, out, threads):
    """After result_shape this cannot fail."""

    def generate(context, builder, signature, args):
        (source, shape, steps), (target, _, out_steps) = (
            describe(context, builder, signature.args[k], args[k]) for k in (0, 2)
        )
        repeats = place_counts(context, builder, signature.args[1], args[1])
        byte = ir.IntType(8).as_pointer()
        ends = builder.bitcast(source.data, byte), builder.bitcast(target.data, byte)
        ndim = ir.IntType(32)(a.ndim)
        return call_c(
            builder, "tilecore_tile", ndim, shape, steps, *repeats, source.itemsize, *ends, out_steps, args[3]
        )

    return types.intc(a, counts, out, types.intc), generate


def describe(context, builder, kind, value):
    """An array, and pointers to its shape and its strides, which are NULL for the order of C."""
    array = cgutils.create_struct_proxy(kind)(context, builder, value)
    shape, strides = place(builder, array.shape), place(builder, array.strides)
    return array, shape, cgutils.get_null_value(strides.type) if kind.layout == "C" else strides


# ---------------------------------------------------------------- checks


@register_jitable
def check(status):
    if status == capi.TILECORE_BAD_SHAPE:
        raise ValueError("tilecore: extents must not be negative")
    if status == capi.TILECORE_BAD_REPEATS:
        raise ValueError("tilecore: reps must be from 0 to 9223372036854775807")
    if status != capi.TILECORE_OK:
        raise ValueError("tilecore: the result is too large, its size overflows")


@register_jitable
def read_threads(threads):
    if threads is None:
        return 0  # C's default
    if threads < 1:
        raise ValueError("tilecore: threads must be at least 1")
    return min(np.intp(threads), 1 << 20)


@register_jitable
def check_bytes(a, out):
    """Refuse no slices of arrays in different memory, columns or channels; what as_strided makes, when in doubt."""
    for k in range(out.ndim):
        within = out.itemsize  # how far the shorter steps reach
        for j in range(out.ndim):
            if j != k and abs(out.strides[j]) <= abs(out.strides[k]):
                within += abs(out.strides[j]) * (out.shape[j] - 1)
        if out.shape[k] > 1 and abs(out.strides[k]) < within:
            raise ValueError("tilecore: out must not have two elements that share a byte")
    for stride in (1 << 62,) + a.strides + out.strides:  # apart in all of memory, or modulo a stride
        if stride != 0:
            low, high = find_ends(a, abs(stride))
            out_low, out_high = find_ends(out, abs(stride))
            if high - low <= (out_low - low) % abs(stride) <= abs(stride) - (out_high - out_low):
                return
    raise ValueError("tilecore: out must not share memory with the input")


@register_jitable
def find_ends(array, period):
    """Where the bytes begin and end of those elements that lie within one period."""
    low = high = np.intp(array.ctypes.data)
    for k in range(array.ndim):
        if array.strides[k] % period != 0:
            reach = array.strides[k] * (array.shape[k] - 1)
            low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high + array.itemsize
