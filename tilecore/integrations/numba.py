"""tilecore's functions in Numba's compiled code, and `numpy.tile`, which Numba has not.

Numba calls `init` itself, by the entry point `numba_extensions`, before it compiles or loads its first function:

>>> import numba, numpy as np
>>> @numba.njit
... def checkerboard(n):
...     return np.tile(np.array([[0, 1], [1, 0]], np.uint8), (n, n))
>>> checkerboard(2)
array([[0, 1, 0, 1],
       [1, 0, 1, 0],
       [0, 1, 0, 1],
       [1, 0, 1, 0]], dtype=uint8)

Compiled code calls the C functions `tilecore_output_shape` and `tilecore_tile`, without the GIL. It names them, and
each process looks up where they are, so `cache=True` works. The rank of a result is part of its type, and so the
number of repeats must be known from the type of `reps`, or the rank from `out`.
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
from numba.np import arraymath, arrayobj  # noqa: F401 - which would have Numba's own np.tile
from numba.np.numpy_support import is_nonelike, type_can_asarray
from numba.np.unsafe.ndarray import to_fixed_tuple

import tilecore
from tilecore import capi
from tilecore._core.numpy_tile import tile as replacement
from tilecore._core.request.subclasses import numpy_tile

__all__ = ["init"]
__dir__ = __all__.copy

# As LLVM knows them. Code in Numba's caches has these names, and calls by the signatures of this major version.
SYMBOLS = {"tilecore_output_shape": "tilecore_output_shape_1", "tilecore_tile": "tilecore_tile_1"}

NO_RANK = (
    "the rank of the result must be known when this is compiled, and so the number of repeats, but {} may have any; "
    "give reps as a tuple, for which numba.np.unsafe.ndarray.to_fixed_tuple(reps, n) makes one of n items, or give out"
)


def init():
    """Let compiled code call tilecore. Numba calls this, once in a process.

    Source: Numba, "Registering Extensions with Entry Points".
    """
    for name, symbol in SYMBOLS.items():
        llvmlite.binding.add_symbol(symbol, get_cython_function_address("tilecore.capi", name))
    overload(tilecore.tile)(overload_tile)
    overload(tilecore.output_shape)(overload_output_shape)
    if not any(value is numpy_tile for value, _ in builtin_registry.globals):
        for function in (numpy_tile, replacement):  # the second stands in numpy as long as replace_numpy_tile holds
            overload(function)(overload_numpy_tile)


# ---------------------------------------------------------------- integers


def count_of(integers, name):
    """How many are in a value of this type; None where only the value tells."""
    if isinstance(integers, types.BaseTuple):
        if all(isinstance(item, types.Integer) for item in integers.types):
            return len(integers.types)
    elif isinstance(integers, types.Integer):
        return 1
    elif isinstance(getattr(integers, "dtype", None), types.Integer):
        if isinstance(integers, types.NestedArray) and integers.ndim == 1:  # a field of a record
            return integers.shape[0]
        if isinstance(integers, types.Array) and integers.ndim < 2:
            return None if integers.ndim else 1
        if isinstance(integers, types.List | types.ListType):
            items = getattr(integers, "initial_value", None)  # of a list that is written there
            return None if items is None else len(items)
    wanted = "must be an integer, or a tuple, a list or a one-dimensional array of integers"
    raise TypingError(f"tilecore: {name} {wanted}, got {integers}")


def zeros_of(*counts):
    """A tuple of as many zeros as the result has axes, for its type; None where they cannot be known."""
    if None in counts:
        return None
    if (rank := max(counts)) > capi.TILECORE_MAX_RANK:
        raise TypingError(f"tilecore: a result must have at most {capi.TILECORE_MAX_RANK} axes, got {rank}")
    return (0,) * rank


def as_counts(integers, like):
    """A tuple, or an array of intp if `like` is None; overloaded for compiled code."""
    raise NotImplementedError


@overload(as_counts)
def overload_as_counts(integers, like):
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
            raise ValueError("tilecore: the list of reps must have as many items as where it was made")
        return to_fixed_tuple(np.asarray(integers), count)

    return as_tuple


# ---------------------------------------------------------------- calls of C


def counts_in_c(context, builder, kind, value):
    """The number of integers in a tuple or an array, and where they lie."""
    if isinstance(kind, types.Array):
        array = cgutils.create_struct_proxy(kind)(context, builder, value)
        return builder.trunc(array.nitems, ir.IntType(32)), array.data
    size = context.get_value_type(types.intp)
    items = zip(cgutils.unpack_tuple(builder, value), kind.types, strict=True)
    packed = cgutils.pack_array(builder, [context.cast(builder, v, t, types.intp) for v, t in items], size)
    return ir.IntType(32)(len(kind.types)), first_of(builder, packed)


def first_of(builder, values):
    """A pointer to the first of an array of LLVM's, on the stack."""
    return cgutils.gep_inbounds(builder, cgutils.alloca_once_value(builder, values), 0, 0)


def call_c(builder, name, *arguments):
    kind = ir.FunctionType(ir.IntType(32), [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, SYMBOLS[name]), arguments)


@intrinsic
def result_shape(typingctx, shape, counts, itemsize, like):
    """A status, and the shape as a tuple like `like`, of which it must have the rank."""
    rank = len(like)
    kind = types.Tuple([types.intc, types.UniTuple(types.intp, rank)])

    def generate(context, builder, signature, args):
        size = context.get_value_type(types.intp)
        ndim, extents = counts_in_c(context, builder, signature.args[0], args[0])
        nreps, repeats = counts_in_c(context, builder, signature.args[1], args[1])
        result = cgutils.alloca_once(builder, ir.ArrayType(size, capi.TILECORE_MAX_RANK))
        first = cgutils.gep_inbounds(builder, result, 0, 0)
        nowhere = cgutils.get_null_value(first.type)
        status = call_c(builder, "tilecore_output_shape", ndim, extents, nreps, repeats, args[2], first, nowhere)
        sizes = [builder.load(cgutils.gep_inbounds(builder, result, 0, k)) for k in range(rank)]
        return cgutils.pack_struct(builder, [status, cgutils.pack_array(builder, sizes, size)])

    return kind(shape, counts, types.intp, like), generate


@intrinsic
def write_tiling(typingctx, a, counts, out, threads):
    """A status, which is 0 where result_shape's was."""

    def generate(context, builder, signature, args):
        kinds = signature.args[0], signature.args[2]
        source, target = (
            cgutils.create_struct_proxy(kind)(context, builder, args[k]) for k, kind in zip((0, 2), kinds, strict=True)
        )
        extents = first_of(builder, source.shape)
        steps, out_steps = (
            cgutils.get_null_value(extents.type) if kind.layout == "C" else first_of(builder, array.strides)
            for kind, array in zip(kinds, (source, target), strict=True)
        )
        byte = ir.IntType(8).as_pointer()
        src, dst = builder.bitcast(source.data, byte), builder.bitcast(target.data, byte)
        request = *counts_in_c(context, builder, signature.args[1], args[1]), source.itemsize
        ndim = ir.IntType(32)(kinds[0].ndim)
        return call_c(builder, "tilecore_tile", ndim, extents, steps, *request, src, dst, out_steps, args[3])

    return types.intc(a, counts, out, types.intc), generate


# ---------------------------------------------------------------- out


@register_jitable
def may_overlap_itself(out):
    """Whether an axis steps less far than the shorter steps reach; false for what slices make of any array."""
    shape, strides = out.shape, out.strides
    for k in range(out.ndim):
        reach = out.itemsize
        for j in range(out.ndim):
            if j != k and abs(strides[j]) <= abs(strides[k]):
                reach += abs(strides[j]) * (shape[j] - 1)
        if shape[k] > 1 and abs(strides[k]) < reach:
            return True
    return False


@register_jitable
def span(array, period):
    """The first byte and the one after the last, of the elements within one `period`; 0: of all."""
    low, high = np.intp(array.ctypes.data), np.intp(array.ctypes.data) + array.itemsize
    for k in range(array.ndim):
        reach = array.strides[k] * (array.shape[k] - 1)
        if period == 0 or array.strides[k] % period != 0:
            low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high


@register_jitable
def are_apart(a, out, period):
    """Whether no byte of one lies among the other's, modulo `period`, the stride of an axis."""
    low, high = span(a, period)
    out_low, out_high = span(out, period)
    if period == 0:
        return high <= out_low or out_high <= low
    return high - low <= (out_low - low) % period <= period - (out_high - out_low)


@register_jitable
def may_share_bytes(a, out):
    """False for what lies in different memory, columns or channels."""
    if are_apart(a, out, 0):
        return False
    for stride in a.strides + out.strides:
        if stride != 0 and are_apart(a, out, abs(stride)):
            return False
    return True


# ---------------------------------------------------------------- functions


@register_jitable
def check(status):
    if status == capi.TILECORE_BAD_SHAPE:
        raise ValueError("tilecore: extents must not be negative")
    if status == capi.TILECORE_BAD_REPEATS:
        raise ValueError("tilecore: reps must be from 0 to 9223372036854775807")
    if status != capi.TILECORE_OK:
        raise ValueError("tilecore: the result is too large, its size overflows")


@register_jitable
def check_threads(threads):
    """As C takes it: 0 for the default."""
    if threads is None:
        return 0
    if threads < 1:
        raise ValueError("tilecore: threads must be at least 1")
    return min(threads, 1 << 20)


def overload_tile(a, reps, out=None, axis=None, threads=None):
    if not isinstance(a, types.Array):
        if not type_can_asarray(a):
            raise TypingError(f"tilecore: a must be an array, a number, or a list or tuple of numbers, got {a}")
        return lambda a, reps, out=None, axis=None, threads=None: tilecore.tile(np.asarray(a), reps, out, axis, threads)
    if not is_nonelike(axis):
        raise TypingError("tilecore: axis is not for compiled code; give one repeat for each axis of a")
    if not is_nonelike(threads) and not isinstance(threads, types.Integer):
        raise TypingError(f"tilecore: threads must be an integer or None, got {threads}")
    count = count_of(reps, "reps")
    own = None if count is None else (0,) * count
    like = zeros_of(a.ndim, count)
    if is_nonelike(out):
        if like is None:
            raise TypingError("tilecore: " + NO_RANK.format(reps))

        def tile_to_new(a, reps, out=None, axis=None, threads=None):
            most = check_threads(threads)
            counts = as_counts(reps, own)
            status, shape = result_shape(a.shape, counts, a.itemsize, like)
            check(status)
            result = np.empty(shape, a.dtype)
            write_tiling(a, counts, result, most)
            return result

        return tile_to_new
    if not isinstance(out, types.Array) or out.dtype != a.dtype or not out.mutable:
        raise TypingError(f"tilecore: out must be a writeable array of {a.dtype}, got {out}")
    ndim, may_overlap, like = out.ndim, out.layout == "A", (0,) * out.ndim

    def tile_to_out(a, reps, out=None, axis=None, threads=None):
        most = check_threads(threads)
        counts = as_counts(reps, own)
        status, shape = result_shape(a.shape, counts, a.itemsize, like)
        check(status)
        if max(a.ndim, len(counts)) != ndim or shape != out.shape:
            raise ValueError("tilecore: out must have the shape of the result")
        if out.size:
            if may_overlap and may_overlap_itself(out):
                raise ValueError("tilecore: out must not have two elements that share a byte")
            if may_share_bytes(a, out):
                raise ValueError("tilecore: out must not share memory with the input")
            write_tiling(a, counts, out, most)
        return out

    return tile_to_out


def overload_numpy_tile(A, reps):
    overload_tile(A, reps)  # what is refused is told here, and not within a call's call
    return lambda A, reps: tilecore.tile(A, reps)


def overload_output_shape(shape, reps):
    ndim, count = count_of(shape, "shape"), count_of(reps, "reps")
    like = zeros_of(ndim, count)
    if like is None:
        raise TypingError("tilecore: " + NO_RANK.format(reps if count is None else shape))
    dims, own = (0,) * ndim, (0,) * count

    def output_shape(shape, reps):
        status, sizes = result_shape(as_counts(shape, dims), as_counts(reps, own), 1, like)
        check(status)
        return sizes

    return output_shape
