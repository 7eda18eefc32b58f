"""Tilings as Dask arrays: lazy, larger than memory, one task for each chunk of the result; more if the input is cut.

`dask.array.tile` joins copies of the input, each of at least one chunk: 10 000 for a pattern repeated 100
times along two axes. Here each chunk of the result is a region of the tiling, by `tilecore.tile_region`:

- By default, the blocks of an input of 8 MiB or more are the chunks, as with `dask.array.tile`, and nothing is copied.
  Only small blocks are joined.
- An input of at most ``array.chunk-size`` bytes becomes one block. Every chunk, of any size, is a region of that
  block's tiling. It is a view if nothing repeats inside it.
- With a larger input, no task reads more than the size of a chunk. If an axis is longer than the result's chunks, the
  input's blocks are joined or cut to that size, and each repeat of each piece is one chunk. Other axes stay whole and
  are tiled as above. Dask then cuts and joins the chunks to the requested sizes.
"""

from __future__ import annotations

# mypy: allow-untyped-calls, no-warn-return-any
from math import isnan, prod
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

import dask.array as da
import numpy as np
from dask import config
from dask.array.core import normalize_chunks
from dask.base import is_dask_collection
from dask.layers import ArraySliceDep  # the slices of a chunk; dask.array.from_array uses it too
from dask.utils import parse_bytes
from numpy.typing import ArrayLike, NDArray

import tilecore
from tilecore._core.request.arguments import read_array
from tilecore._core.request.errors import RequestError, format_error, short_repr, type_name

if TYPE_CHECKING:  # only the stub has it
    from tilecore._core.arrays import _Ints

__all__ = ["tile"]
__dir__ = __all__.copy

Chunks: TypeAlias = tuple[tuple[int, ...], ...]

MIN_BYTES = 2**23  # of an input whose blocks are the chunks: a task for less takes longer than tiling several blocks


def tile(
    x: ArrayLike | da.Array,
    reps: _Ints,
    chunks: Any = "auto",
    *,
    axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
) -> da.Array:
    """Tile a NumPy or Dask array, as a Dask array.

    >>> import numpy
    >>> from tilecore.integrations.dask import tile as dask_tile
    >>> pattern = numpy.arange(6).reshape(2, 3)              # shape (2, 3)
    >>> wall = dask_tile(pattern, (10**6, 10**5))            # 4.8 TB, in chunks of 128 MiB
    >>> wall.shape
    (2000000, 300000)
    >>> wall[10**6 : 10**6 + 2, -4:].compute()
    array([[2, 0, 1, 2],
           [5, 3, 4, 5]])

    Parameters
    ----------
    x : array_like or dask.array.Array
        Of any shape and dtype. A Dask array stays lazy, also in an `xarray.DataArray`, and must have known chunk sizes.
    reps : int or iterable of int
        As in `tilecore.tile`.
    chunks : optional
        Chunks of the result, in any form that `dask.array.core.normalize_chunks` takes. "auto" makes chunks of about
        ``array.chunk-size`` bytes. If the input has 8 MiB or more, its blocks are the chunks; small ones are joined.
    axis : int or tuple of int, optional
        As in `tilecore.tile`.

    Returns
    -------
    dask.array.Array
        Of the shape and dtype that `tilecore.tile` gives. Equal calls give equal keys.

    Raises
    ------
    TypeError
        An `x` of another kind, such as a masked array, or a Dask array of these; as `tilecore.tile`.
    ValueError
        Unknown chunk sizes; chunks that do not add up to the result's shape; as `tilecore.tile`.
    MemoryError
        At `compute`, if a single chunk is larger than `tilecore.get_max_bytes()`.
    """
    array, names = None, {"input": "x", "repeats": "reps"}
    try:
        array = check_input(x)
        plan = tilecore.TilePlan(array.shape, reps, array.dtype, axis=axis)
    except (RequestError, TypeError, ValueError, MemoryError) as error:
        raise format_error(error, "dask.tile", array, names, reps=reps, axis=axis) from error.__cause__
    if (more := len(plan.output_shape) - array.ndim) > 0:
        array = array[(None,) * more]
    blocks = array.chunks if isinstance(array, da.Array) else tuple((n,) for n in array.shape)
    nbytes = prod(array.shape) * plan.dtype.itemsize  # with query planning, Dask arrays have no nbytes
    limit = parse_bytes(config.get("array.chunk-size"))
    small = nbytes <= limit
    wanted = choose_chunks(chunks, plan.output_shape, plan.dtype, None if small else blocks)
    if 0 in plan.output_shape:
        empty = da.empty(plan.output_shape, dtype=plan.dtype, chunks=wanted)
        return empty.map_blocks(np.copy, dtype=plan.dtype)  # writeable: the oldest Dask's own is read-only
    if isinstance(chunks, str) and chunks == "auto" and nbytes >= MIN_BYTES and not changes_in_joins(plan.dtype):
        size = min(limit, MIN_BYTES) if isinstance(array, da.Array) else limit
        sizes = choose_chunks("auto", array.shape, plan.dtype, blocks, size)
        pieces = tuple(join_or_cut(b, max(*w, *b)) for b, w in zip(blocks, sizes, strict=True))
        source = array.rechunk(pieces, method="tasks") if isinstance(array, da.Array) else da.from_array(array, sizes)
        return da.tile(source, plan.reps)  # the chunks are the blocks themselves
    pieces = tuple(
        (sum(b),) if small or sum(b) <= max(w) else join_or_cut(b, max(w)) for b, w in zip(blocks, wanted, strict=True)
    )
    result = tile_pieces(array, pieces, wanted, plan)
    return result if isinstance(chunks, str) or result.chunks == wanted else result.rechunk(wanted)


def check_input(x: Any) -> Any:
    """`x` as a Dask array of known chunks, or as a NumPy array."""
    if is_dask_collection(x):  # such as an xarray.DataArray
        x = da.asarray(x)
    if isinstance(x, da.Array):
        if any(isnan(n) for n in x.shape):
            what = f"has unknown chunk sizes, shape {x.shape}: call x.compute_chunk_sizes() first"
            raise RequestError(ValueError, what, "input")
        kind = type(x._meta)
    else:
        if not hasattr(type(x), "__array_function__"):
            x = read_array(x)
        kind = type(x)
    if kind not in (np.ndarray, np.memmap):
        what = f"must be a NumPy array, or a Dask array of NumPy arrays, got {kind.__name__}"
        raise RequestError(TypeError, what, "input")
    return x


def choose_chunks(
    chunks: Any, shape: tuple[int, ...], dtype: np.dtype[Any], blocks: Chunks | None, limit: int | None = None
) -> Chunks:
    """The `chunks` of `shape` as sizes. "auto" follows the `blocks` of the input, if given."""
    previous = None
    if blocks is not None and max(map(len, blocks), default=0) > 1:
        previous = tuple(max(b) if len(b) > 1 else n for b, n in zip(blocks, shape, strict=True))
    # Dask refuses to count the bytes of objects; here they are references of a known size.
    plain = np.dtype(f"V{max(dtype.itemsize, 1)}")
    try:
        wanted: Chunks = normalize_chunks(chunks, shape, limit, dtype=plain, previous_chunks=previous)
    except ZeroDivisionError as reason:  # chunks of 0, or "auto" for an empty result
        if 0 not in shape:
            raise ValueError(f"dask.tile: chunks must be larger than 0, got {short_repr(chunks)}") from reason
        wanted = tuple((n,) for n in shape)
    except ValueError as reason:
        if "Empty" not in str(reason):  # Dask makes an axis without chunks of -2
            raise
        raise ValueError(f"dask.tile: chunks must be -1 or sizes of 1 or more, got {short_repr(chunks)}") from reason
    except TypeError as reason:
        got = f"got {short_repr(chunks)} of type {type_name(chunks)}"
        raise TypeError(f"dask.tile: chunks must be 'auto' or sizes for each axis, {got}") from reason
    if not all(c >= 0 for axis in wanted for c in axis):  # NaN is an unknown size
        raise ValueError(f"dask.tile: chunks must be known sizes of 1 or more, got {short_repr(chunks)}")
    return wanted


def changes_in_joins(dtype: np.dtype[Any]) -> bool:
    """Whether Dask, when it joins blocks, changes the byte order of `dtype` to the machine's, or packs a structure."""
    return np.promote_types(dtype, dtype) != dtype


def join_or_cut(blocks: tuple[int, ...], limit: int) -> tuple[int, ...]:
    """The blocks along an axis, neighbours joined and long ones cut, none longer than `limit`.

    >>> join_or_cut((2, 2, 2, 2, 9, 2), 5)
    (4, 4, 5, 4, 2)
    """
    pieces = [0]
    for block in blocks:
        if pieces[-1] + block <= limit:
            pieces[-1] += block
        else:
            count = -(-block // limit)
            size = -(-block // count)
            pieces += [size] * (count - 1) + [block - size * (count - 1)]
    return tuple(piece for piece in pieces if piece)


def tile_pieces(array: Any, pieces: Chunks, wanted: Chunks, plan: tilecore.TilePlan) -> da.Array:
    """The tiling of `array`, in `pieces` on axes that have several, else in `wanted` chunks."""
    if isinstance(array, da.Array):
        source = array.rechunk(pieces, method="tasks")  # only neighbours merge: no shuffle
    else:
        source = da.from_array(array, chunks=pieces)
    split = [len(axis) > 1 for axis in pieces]
    for axis, (is_split, repeats) in enumerate(zip(split, plan.reps, strict=True)):
        if is_split and repeats > 1:
            source = da.concatenate([source] * repeats, axis=axis)

    ndim, dtype = source.ndim, plan.dtype
    chunks = tuple(p if s else w for p, s, w in zip(source.chunks, split, wanted, strict=True))
    reps = tuple(None if s else r for s, r in zip(split, plan.reps, strict=True))
    # An axis that is not split has an index of its own, so every chunk gets the whole axis. To Dask this is a
    # reduction, so it computes the source once; broadcast blocks it would compute again in each task.
    index = [axis if is_split else ndim + axis for axis, is_split in enumerate(split)]
    arguments = [ArraySliceDep(chunks), range(ndim), source, index, reps, None, dtype, None]  # each with its index
    options = {"align_arrays": False, "dtype": dtype, "meta": np.empty((0,) * ndim, dtype)}
    return da.blockwise(tile_chunk, range(ndim), *arguments, **options)


def tile_chunk(
    where: tuple[slice, ...], block: Any, reps: tuple[int | None, ...], dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Run one task: make the region `where` of a block's tiling. An axis with reps of None stays whole."""
    while isinstance(block, list):  # one level for each axis with an index of its own
        (block,) = block
    # Dask may have joined blocks: see changes_in_joins.
    block = block.astype(dtype, casting="same_kind", copy=False)
    start = [0 if r is None else part.start for r, part in zip(reps, where, strict=True)]
    stop = [n if r is None else part.stop for r, part, n in zip(reps, where, block.shape, strict=True)]
    within = tuple(slice(a % n, a % n + b - a) for a, b, n in zip(start, stop, block.shape, strict=True))
    if all(part.stop <= n for part, n in zip(within, block.shape, strict=True)):
        return np.asarray(block[(*within, ...)])  # nothing repeats: a view, as Dask's own slices are
    counts = [1 if r is None else r for r in reps]
    return tilecore.tile_region(block, counts, start, stop, threads=1)  # Dask runs a task on every processor
