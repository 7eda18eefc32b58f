"""What may stand in an array's place: buffers, `__array__`, DLPack; and what may not."""

import array
import ctypes

import numpy as np
import pytest

import tilecore
from tilecore import directml, onnx, openvino
from tilecore._core.request.inputs import as_array

pytestmark = pytest.mark.quick

X = np.arange(6, dtype="f4").reshape(2, 3)


class HasArray:
    """That gives an array, or fails."""

    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        if isinstance(self.x, Exception):
            raise self.x
        return self.x


class HasInterface:
    def __init__(self, x):
        self.x = x
        self.__array_interface__ = x.__array_interface__


class HasDLPack:
    """That alone; in the memory of another device, if told so."""

    def __init__(self, x, device=None):
        self.x, self.device = x, device

    def __dlpack__(self, **options):
        if self.device:
            raise BufferError(f"no capsule for device {self.device}")
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device or self.x.__dlpack_device__()


class SequenceWithDLPack(HasDLPack):
    """Item by item, NumPy would make Python floats of it, and float64 of them."""

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i].tolist()


KINDS = [memoryview, HasArray, HasInterface, HasDLPack, SequenceWithDLPack]

CALLS = {
    "tile": lambda x: tilecore.tile(x, (2, 2)),
    "tile_region": lambda x: tilecore.tile_region(x, (2, 2), (0, 0), (4, 6)),
    "tile_mapped": lambda x: tilecore.tile_mapped(x, (2, 2)),
    "TilePlan": lambda x: tilecore.TilePlan((2, 3), (2, 2), "f4").tile(x),
    "TilePlan.region": lambda x: tilecore.TilePlan((2, 3), (2, 2), "f4").region(x, (0, 0), (4, 6)),
    "onnx.tile": lambda x: onnx.tile(x, [2, 2]),
    "onnx.tile_6": lambda x: onnx.tile_6(x, [2, 2]),
    "onnx.tile_1": lambda x: onnx.tile_1(onnx.tile_1(x, 2, 0), 2, 1),
    "openvino.tile": lambda x: openvino.tile(x, [2, 2]),
    "directml.tile": lambda x: directml.tile(x, [2, 2]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_everywhere(kind, call, oracle):
    result = call(kind(X))
    assert type(result) is np.ndarray and result.flags.writeable
    np.testing.assert_array_equal(result, oracle(X, (2, 2)), strict=True)
    assert not np.shares_memory(result, X)


@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_shared_on_the_way(kind):
    assert np.shares_memory(as_array(kind(X)), X)


@pytest.mark.parametrize(
    "x",
    [
        X.T, X[:, ::-1], X[::2], np.lib.stride_tricks.as_strided(X, (4, 2, 3), (0, 12, 4)), np.array(5.0), np.zeros((0, 3)),
        np.arange(3) > 1, np.arange(3) * 1j, np.arange(3, dtype="u8"),
    ],
)  # fmt: skip
def test_dlpack_of_every_layout(x, oracle):
    np.testing.assert_array_equal(tilecore.tile(HasDLPack(x), 2), oracle(x, 2), strict=True)


def test_buffers_of_the_standard_library():
    for x in (array.array("h", [1, 2]), (ctypes.c_int16 * 2)(1, 2)):
        result = tilecore.tile(x, 2)
        assert (result.dtype, result.tolist()) == (np.int16, [1, 2, 1, 2])
    assert tilecore.tile(bytearray(b"ab"), 2).tolist() == [97, 98, 97, 98]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_another_device(call):
    with pytest.raises(TypeError, match="(input|data|a) of type HasDLPack cannot be read") as e:
        call(HasDLPack(X, device=(2, 0)))  # a CUDA device
    assert isinstance(e.value.__cause__, (BufferError, RuntimeError))


# A KeyError is nobody's way to refuse: a fault that is to be seen as it is.
@pytest.mark.parametrize(
    ("error", "kind"),
    [(RuntimeError, TypeError), *((kind, kind) for kind in (TypeError, ValueError, MemoryError, KeyError))],
)
def test_errors_of_other_libraries(error, kind):
    for name, call in (
        ("tile: a", CALLS["tile"]),
        ("ONNX Tile-13: input", CALLS["onnx.tile"]),
        ("OpenVINO Tile-1: data", CALLS["openvino.tile"]),
        ("DirectML Tile, feature level 4_1: input", CALLS["directml.tile"]),
    ):
        with pytest.raises(kind, match="no") as raised:
            call(HasArray(error("no")))
        if kind is not KeyError:
            assert str(raised.value).startswith(f"{name} of type HasArray cannot be read as an array: no")
            assert type(raised.value.__cause__) is error


def test_repeats_by_dlpack():
    repeats = HasDLPack(np.array([2, 2]))
    for call in (onnx.tile, openvino.tile, directml.tile):
        assert call(X, repeats).shape == (4, 6)


def test_arrow(oracle):
    pa = pytest.importorskip("pyarrow")
    tensor = pa.Tensor.from_numpy(X)
    np.testing.assert_array_equal(tilecore.tile(tensor, (2, 2)), oracle(X, (2, 2)), strict=True)
    assert np.shares_memory(as_array(tensor), X)
    assert tilecore.tile(pa.array([1, 2, 3]), 2).tolist() == [1, 2, 3, 1, 2, 3]


@pytest.mark.parametrize(
    "x",
    [
        1.5, 7, True, 2j, 2**63, "abc", b"ab", [], (), [1, 2], (1, 2.5), [[1, 2], [3, 4]], [None, 1], None,
        np.float64(1.5), np.int8(3), np.bool_(True), np.str_("ab"), np.datetime64("2026-01-02"), range(3), 10**30,
        ...,  # anything may be an item of an array of objects
        type("Own", (float,), {})(2.5), type("OwnList", (list,), {})([1, 2]),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("reps", [0, 1, 3, (), (1, 1), (2, 3)], ids=repr)
def test_what_numpy_makes_arrays_of(x, reps, oracle):
    want = oracle(np.asarray(x), reps)
    for got in (tilecore.tile(x, reps), tilecore.tile_mapped(x, reps)):
        np.testing.assert_array_equal(got, want, strict=True)


def test_what_gives_a_subclass():
    """A mask is not lost: what numpy.tile makes of it, or a refusal."""
    masked = HasArray(np.ma.array([1, 2], mask=[1, 0]))
    assert tilecore.tile(masked, 2).mask.tolist() == [True, False] * 2
    records = HasArray(np.rec.array([(1, 2.0)]))
    assert type(tilecore.tile(records, 2)) is np.recarray
    with pytest.raises(TypeError, match="tile_region: a must be a plain array"):
        tilecore.tile_region(masked, 2, 0, 1)
    with pytest.raises(TypeError, match="input of type HasArray gives a MaskedArray"):
        onnx.tile(masked, [2])
