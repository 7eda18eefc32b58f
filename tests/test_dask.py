"""Lazy tilings: values, chunks, and what each task reads."""

import os
import sys
from importlib.util import find_spec
from itertools import product, repeat
from math import prod
from pathlib import Path

import numpy as np
import pytest

import tilecore

da = pytest.importorskip("dask.array")
import dask  # noqa: E402
from dask.array.core import normalize_chunks  # noqa: E402

from tilecore.integrations.dask import tile  # noqa: E402

pytestmark = pytest.mark.quick


@pytest.fixture(autouse=True)
def synchronous():
    """One task after the other, unless a test chooses otherwise."""
    with dask.config.set(scheduler="synchronous"):
        yield


def chunk_size(nbytes):
    return dask.config.set({"array.chunk-size": nbytes})


def tasks(array):
    (optimized,) = dask.optimize(array)
    return len(dict(optimized.__dask_graph__()))


def recorded(shape, chunks):
    """A Dask array of ones, and the list of its blocks computed so far."""
    seen = []

    def block(one, block_id=None):
        seen.append(block_id)
        return one

    ones = da.ones(shape, chunks=chunks)
    return da.map_blocks(block, ones, dtype=float, meta=np.empty((0,) * len(shape))), seen


def test_what_tile_takes(oracle):
    items = np.array([object(), object()])  # the same objects
    for array in ([1, 2], 5, items):
        np.testing.assert_array_equal(tile(array, iter([2, 2])), oracle(array, (2, 2)))


def test_a_lazy_array_in_another_object_stays_lazy(oracle):
    """As in an xarray.DataArray."""
    lazy, seen = recorded((2, 3), 2)

    class Holder:
        def __dask_graph__(self):
            return lazy.__dask_graph__()

        def to_dask_array(self):
            return lazy

        def __array__(self, *args, **keywords):
            return lazy.compute()

    result = tile(Holder(), (2, 2))
    assert not seen
    np.testing.assert_array_equal(result, oracle(np.ones((2, 3)), (2, 2)))


def test_a_memory_mapped_file(tmp_path):
    x = np.memmap(tmp_path / "x", "i4", "w+", shape=3)
    x[:] = 1, 2, 3
    for source in (da.from_array(x, chunks=2), x):
        result = tile(source, 2)
        if source is x:
            x[:] = 7  # what is changed later does not show
        np.testing.assert_array_equal(result.compute(), np.array([1, 2, 3] * 2, "i4"), strict=True)


@pytest.mark.parametrize("chunks", ["auto", "64B", 4, ("auto", -1), {1: "auto"}, ((0,), (4, 2))], ids=str)
def test_an_empty_result_can_be_written(chunks):
    result = tile(da.ones((0, 3)), (2, 2), chunks)
    assert result.chunks == ((0,), (6,) if "auto" in str(chunks) or chunks == "64B" else (4, 2))
    assert result.compute().flags.writeable


def test_one_task_for_each_chunk():
    pattern = np.arange(64 * 64, dtype="f4").reshape(64, 64)
    result = tile(pattern, (100, 100), chunks=1000)
    assert result.numblocks == (7, 7)
    assert tasks(result) == 7 * 7 + 1  # and the pattern
    assert tasks(tile(pattern, (100, 100))) < 10
    assert tasks(tile(da.from_array(pattern, chunks=32), (100, 100), 1000)) == 7 * 7 + 4 + 1


def test_equal_calls_share_keys():
    x = np.arange(6)
    assert tile(x, 2).name == tile(x.copy(), (2,)).name
    source = da.from_array(x, chunks=2)
    assert tile(source, 2).name == tile(source, 2).name
    assert len({tile(*call).name for call in [(x, 2), (x, 3), (x + 1, 2), (x, 2, 5)]}) == 4


@pytest.mark.parametrize(
    "chunks", ["auto", "64B", 3, -1, (4, "auto"), ("40B", -1), {1: 5}, ((5, 7), (9, 0, 3)), [2, [6, 6]]], ids=str
)
def test_chunks_are_read_as_dask_reads_them(chunks, oracle):
    """Exact chunks are kept, even if the input is larger than a chunk."""
    x = np.arange(24).reshape(4, 6)
    lazy = da.from_array(x, chunks=2)
    expected = normalize_chunks(chunks, (12, 12), dtype=x.dtype)
    assert tile(x, (3, 2), chunks).chunks == tile(lazy, (3, 2), chunks).chunks == expected
    with chunk_size(64):
        result, expected = tile(lazy, (3, 2), chunks), normalize_chunks(chunks, (12, 12), dtype=x.dtype)
        assert "auto" in str(chunks) or "B" in str(chunks) or result.chunks == expected
        np.testing.assert_array_equal(result, oracle(x, (3, 2)))


def test_chunks_of_one_axis():
    for chunks in ((2, 4), [2, 4], [(2, 4)], np.array([2, 4])):
        assert tile(np.arange(3), 2, chunks).chunks == ((2, 4),)
    assert tile(np.float64(1), ()).chunks == ()
    assert tile(np.zeros(3, "V0"), 2).chunks == ((6,),)
    with chunk_size("1 kB"):
        assert tile(np.zeros((), "V2000"), ()).compute().shape == ()


@pytest.mark.parametrize("blocks", [-1, 4, (1, 10), (10, 1), ((6, 1, 3), (5, 5))], ids=str)
@pytest.mark.parametrize("limit", [2000, 80])
@pytest.mark.parametrize("reps", [(6, 2), (3, 2, 2), (3, 1, 1), (1, 8), (1, 1)], ids=str)
def test_the_input_is_computed_once_for_chunks_of_the_size(blocks, limit, reps):
    with chunk_size(limit):
        source, seen = recorded((10, 10), blocks)
        result = tile(source, reps)
        assert max(map(prod, product(*result.chunks))) * 8 <= 1.25 * limit  # Dask's own tolerance
        # Dask merges later steps into the same task, but nothing that many tasks read.
        assert (result + 1).sum().compute() == 2 * result.size
        assert sorted(seen) == sorted(np.ndindex(source.numblocks))
        source, seen = recorded((), -1)
        assert tile(source, reps, 2).sum().compute() == prod(reps)
        assert seen == [()]


def test_a_chunk_reads_the_blocks_that_it_shows():
    """A chunk of a large tiling reads the blocks that it overlaps, modulo the period."""
    with chunk_size(10 * 10 * 8):
        source, seen = recorded((40, 30), (10, 10))
        result = tile(source, (3, 2))
        assert result.chunks == ((10,) * 12, (10,) * 6)
        for i, j in np.ndindex(result.numblocks):
            seen.clear()
            result.blocks[i, j].compute()
            assert seen == [(i % 4, j % 3)]


def test_an_axis_in_one_piece_is_tiled_by_the_tasks():
    with chunk_size(10 * 10 * 8):
        source, seen = recorded((40, 5), (10, 5))
        result = tile(source, (2, 100))
        rows, columns = result.numblocks
        assert rows * columns > 100
        assert tasks(result) <= rows * columns + 3 * rows  # and those that cut and repeat the blocks
        seen.clear()
        result.blocks[rows // 2].compute()  # the first rows of the second repeat
        assert seen == [(0, 0)]


@pytest.mark.parametrize("dtype", ["f8", ">f8", "O", [("a", "u1"), ("b", "f4")]], ids=str)
def test_blocks_of_a_large_input_are_the_chunks(dtype, monkeypatch, oracle):
    """Nothing is copied. Small blocks are joined."""
    monkeypatch.setattr("tilecore.integrations.dask.MIN_BYTES", 100)
    x = np.zeros((40, 30), dtype)
    x[...] = np.arange(40)[:, None]
    for blocks, chunks in (((10, 30), 10), ((1, 1), 3 if dtype == "f8" else None), (-1, 40)):
        source = da.from_array(x, chunks=blocks).persist()
        result = tile(source, (2, 3, 2))
        np.testing.assert_array_equal(result, oracle(x, (2, 3, 2)), strict=True)
        if dtype in ("f8", "O") and chunks:
            assert result.chunksize[1] == chunks
    np.testing.assert_array_equal(tile(x, (3, 1)), oracle(x, (3, 1)), strict=True)


def test_a_chunk_in_which_nothing_repeats_is_a_view():
    source = da.from_array(np.arange(40).reshape(4, 10), chunks=(4, 5)).persist()
    for chunks, shared in (((2, 5), True), ((4, 10), True), ((3, 10), False)):
        blocks = tile(source, (3, 1), chunks=chunks).map_blocks(lambda x: np.full((1, 1), x.base is not None))
        assert blocks.compute().all() == shared


def test_small_blocks_are_joined_to_save_tasks():
    with chunk_size(2**13):
        result = tile(da.ones(2**16, chunks=16), 3)
        assert set(result.chunks[0]) == {2**10}
        assert result.npartitions == 3 * 2**6


@pytest.mark.parametrize("source", [np.ones((2, 3)), da.ones((2, 3), chunks=1)], ids=["numpy", "dask"])
@pytest.mark.parametrize("reps", [-1, (2, -1), 1.0, "a", [[1, 2]], 2**62, (2**40, 2**40), [1] * 65, None], ids=str)
def test_errors_are_those_of_tile(source, reps):
    with pytest.raises((TypeError, ValueError)) as expected:
        tilecore.tile(np.ones((2, 3)), reps)
    with pytest.raises(expected.type, match="^dask.tile: .*input shape") as caught:
        tile(source, reps)
    said = [str(info.value).partition(": ")[2].partition(";")[0] for info in (expected, caught)]
    assert said[0] == said[1]
    with pytest.raises(np.exceptions.AxisError, match="^dask.tile: axis 2 is out of bounds"):
        tile(source, 2, axis=2)


def test_more_than_memory_is_no_error_and_a_chunk_of_that_is(settings_stay):
    pattern = np.arange(64 * 64.0).reshape(64, 64)
    wall = tile(pattern, (9000, 9000))  # 2.7 TB, of which only the requested part is made
    assert wall[-1, ::100_000].compute().tolist() == pattern[-1][np.arange(0, 64 * 9000, 100_000) % 64].tolist()
    assert tile(pattern, (10**6, 10**6)).nbytes == 64 * 64 * 8 * 10**12
    tiled = tile(np.ones(4), 10**5, chunks=-1)
    tilecore.set_max_bytes(1000)
    with pytest.raises(MemoryError, match="3200000 bytes, more than the limit of 1000 bytes"):
        tiled.compute()


def test_unknown_chunk_sizes():
    x = da.from_array(np.arange(10), chunks=5)
    unknown = x[x > 3]
    with pytest.raises(ValueError, match=r"^dask.tile: .*unknown chunk sizes.*compute_chunk_sizes"):
        tile(unknown, 2)
    assert tile(unknown.compute_chunk_sizes(), 2).compute().tolist() == [4, 5, 6, 7, 8, 9] * 2
    with pytest.raises(ValueError, match="^dask.tile: chunks must be known"):
        tile(x, 2, ((np.nan, np.nan),))


def test_chunks_that_do_not_fit():
    for chunks in (None, 0, 2.5j, (1, 2, 3), ((1, 2), (3,)), "large"):
        with pytest.raises((TypeError, ValueError)):
            tile(np.ones((2, 3)), (2, 2), chunks)
    for chunks in (-2, -5, {0: -3}, ((-1, 5), (6,))):
        with pytest.raises(ValueError, match="^Chunks do not add up|^dask.tile: chunks must be"):
            tile(np.ones((2, 3)), 2, chunks)
    with pytest.raises(TypeError, match="^dask.tile: chunks must be 'auto' or sizes for each axis"):
        tile(np.zeros(3), 2, chunks=repeat(1))


def test_arrays_of_other_kinds():
    masked = np.ma.masked_array([1, 2], [True, False])
    for x in (masked, da.from_array(masked), np.rec.array([1])):
        with pytest.raises(TypeError, match="^dask.tile: x must be a NumPy array.*, got (Masked|rec)"):
            tile(x, 2)
    assert tile(memoryview(np.arange(3)), 2).compute().tolist() == [0, 1, 2] * 2
    with pytest.raises(ValueError, match="^dask.tile: x of type list cannot be read as an ar"):
        tile([[1, 2], [3]], 2)


def test_what_reps_itself_raises_comes_out_as_it_is():
    class Reps:
        def __iter__(self):
            raise UnicodeDecodeError("utf-8", b"x", 0, 1, "mine")

    with pytest.raises(UnicodeDecodeError, match="mine"):
        tile(np.ones(3), Reps())


@pytest.mark.parametrize("scheduler", ["threads", pytest.param("processes", marks=pytest.mark.process)])
def test_every_scheduler_gives_the_same(scheduler, oracle):
    x = np.arange(35).reshape(5, 7)
    with chunk_size(100):
        both = [tile(source, (3, 2)) for source in (x, da.from_array(x, chunks=2))]
        for result in dask.compute(*both, scheduler=scheduler, num_workers=2):
            np.testing.assert_array_equal(result, oracle(x, (3, 2)), strict=True)


@pytest.mark.package
@pytest.mark.parametrize("planning", [False, True])
def test_query_planning(planning, run, tmp_path):
    """Dask reads the setting once, at its import: the same tests in a process of their own."""
    if planning and not find_spec("dask.array._array_expr"):
        pytest.skip("this version of Dask has it in another package")
    env = os.environ | {"DASK_ARRAY__QUERY_PLANNING": str(planning)}
    module = run(sys.executable, "-c", "import dask.array; print(dask.array.Array.__module__)", cwd=tmp_path, env=env)
    assert ("expr" in module) == planning
    chosen = ["-k", "computed_once or share_keys or dask-", __file__, Path(__file__).with_name("test_every_way.py")]
    run(sys.executable, "-m", "pytest", "-n", "0", *chosen, cwd=tmp_path, env=env)


@pytest.mark.package
def test_a_cluster_of_processes(oracle):
    distributed = pytest.importorskip("distributed")
    x = np.arange(40 * 30.0).reshape(40, 30)
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
    ):
        for source in (x, da.from_array(x, chunks=10)):
            result = tile(source, (3, 4), chunks=30)
            processes = result.map_blocks(lambda _: np.full((1, 1), os.getpid()), chunks=(1, 1))
            assert os.getpid() not in processes.compute()
            np.testing.assert_array_equal(result.compute(), oracle(x, (3, 4)), strict=True)
