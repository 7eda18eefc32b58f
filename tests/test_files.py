"""Tiling from file to file: every byte, in either order, in little memory."""

import os
import sys
import tracemalloc
from contextlib import nullcontext
from functools import partial
from itertools import islice

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilecore
from tilecore import TilePlan
from tilecore._cli import commands, files

pytestmark = pytest.mark.quick


def tile_file(source, target, repeats, **how):
    """The slabs' sizes."""
    sizes = []
    how = {"memory": 1 << 28, "force": True} | how
    planned = lambda array: TilePlan(array.shape, repeats, array.dtype)  # noqa: E731
    files.tile_file(str(source), str(target), planned, lambda _: nullcontext(sizes.append), **how)
    return sizes


@pytest.fixture
def small_slabs(monkeypatch):
    monkeypatch.setattr(files, "SLAB", 100)


@given(st.lists(st.integers(1, 6), max_size=4).map(tuple), st.integers(1, 5), st.integers(5, 200))
def test_regions_are_the_file_in_order(shape, itemsize, limit):
    whole = np.arange(np.prod(shape)).reshape(shape)
    parts = []
    for start, stop in files.regions(shape, itemsize, limit):
        part = whole[tuple(slice(a, b) for a, b in zip(start, stop, strict=True))]
        assert 0 < part.size * itemsize <= limit
        parts.append(part.ravel())
    assert (np.concatenate(parts) == whole.ravel()).all()
    # No more of them than need be: two neighbours never fit together, but for the ends of rows.
    assert len(parts) <= 2 * -(-whole.size * itemsize // limit) * 2


@pytest.mark.whole_process
def test_regions_are_made_one_at_a_time():
    """There are so many outer blocks that a list of their numbers would take 4 GB."""
    tracemalloc.start()
    made = files.regions((10**8, 10**8, 8), itemsize=1, limit=4)
    first = list(islice(made, 5))
    assert tracemalloc.get_traced_memory()[1] < 10**5
    tracemalloc.stop()
    assert first[1:3] == [((0, 0, 4), (1, 1, 8)), ((0, 1, 0), (1, 2, 4))]


DTYPES = [
    "?", "u1", "<i2", ">i4", "f4", ">f8", "c16", "g", "M8[ns]", "m8[s]", "S3", "U2", "V5", "V150",
    [("a", "u1"), ("b", ">f8", (2,))], np.dtype([("a", "u1"), ("b", "f8")], align=True),
    [("\N{LATIN SMALL LETTER E WITH ACUTE}", "f4")], [("\N{GREEK SMALL LETTER ALPHA}", "f4")],
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Stored array in format 3.0")
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_byte_of_every_dtype(dtype, order, tmp_path, small_slabs, oracle):
    dtype = np.dtype(dtype)
    raw = np.random.default_rng(0).integers(0, 256, 24 * dtype.itemsize, np.uint8)
    x = np.asarray(np.ndarray((2, 3, 4), dtype, raw), order=order)
    np.save(tmp_path / "in.npy", x)
    for repeats in [(3, 2, 2), (2, 1, 1, 1, 3), 5]:
        sizes = tile_file(tmp_path / "in.npy", tmp_path / "out.npy", repeats)
        assert len(sizes) > 1 and max(sizes) <= max(100, dtype.itemsize)
        got = np.load(tmp_path / "out.npy")
        # As raw bytes, for NumPy's own indexing leaves the padding of structures behind.
        want = oracle(np.load(tmp_path / "in.npy").view(f"V{dtype.itemsize}"), repeats)
        assert (got.dtype, got.shape) == (dtype, want.shape)
        assert got.flags.fnc == (order == "F")
        assert sum(sizes) == got.nbytes
        assert got.view(want.dtype).tobytes() == want.tobytes()


def test_bfloat16_is_bytes_in_a_file(tmp_path):
    x = np.arange(3).astype(ml_dtypes.bfloat16)
    np.save(tmp_path / "in.npy", x)
    tile_file(tmp_path / "in.npy", tmp_path / "out.npy", 2)
    got = np.load(tmp_path / "out.npy")
    assert got.dtype == "V2" and got.view(x.dtype).tolist() == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    ("shape", "repeats"), [((), ()), ((), (2, 2)), ((0, 3), (2, 2)), ((2, 3), (0, 5)), ((1,), (1,)), ((1,) * 20, 2)]
)
def test_results_of_few_items_or_none(shape, repeats, tmp_path, oracle):
    x = np.full(shape, 7, "i2")
    np.save(tmp_path / "in.npy", x)
    tile_file(tmp_path / "in.npy", tmp_path / "out.npy", repeats)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), oracle(x, repeats), strict=True)


@pytest.mark.parametrize("dtype", ["S", "U", "V0"])
def test_items_of_no_bytes(dtype, tmp_path):
    np.save(tmp_path / "in.npy", np.ndarray((2, 3), np.dtype(dtype)))
    assert tile_file(tmp_path / "in.npy", tmp_path / "out.npy", 2) == []
    assert np.load(tmp_path / "out.npy").shape == (2, 6)


class TestMemory:
    @pytest.mark.process
    @pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
    @pytest.mark.parametrize("shape, repeats", [((72 << 20, 1), "1,2"), ((3, 24 << 20), "1,1")])
    def test_resident_bytes_of_the_process(self, shape, repeats, tmp_path, program):
        """Input and result are each larger than the memory."""
        x = np.lib.format.open_memmap(tmp_path / "in.npy", "w+", "u1", shape)
        x.reshape(-1)[:: 1 << 20] = 1
        del x
        program(f"""
from tilecore._cli.main import main
assert main(["tile", "in.npy", "out.npy", "--repeats", "{repeats}", "--memory", "68M"]) == 0
assert status("VmHWM") < 68 << 20
""")
        assert np.load(tmp_path / "out.npy", mmap_mode="r").nbytes >= 72 << 20

    def test_items_larger_than_the_buffer(self, tmp_path, settings_stay):
        """The size limit is for memory, not for files."""
        itemsize = 5 << 20
        np.save(tmp_path / "in.npy", np.frombuffer(os.urandom(itemsize), f"V{itemsize}"))
        tilecore.set_max_bytes(10)
        with pytest.raises(ValueError, match="items of 5.24 MB need --memory 74M or more"):
            tile_file(tmp_path / "in.npy", tmp_path / "out.npy", 3, memory=73 << 20)
        tile_file(tmp_path / "in.npy", tmp_path / "out.npy", 3, memory=74 << 20)
        x, got = np.load(tmp_path / "in.npy"), np.load(tmp_path / "out.npy")
        assert got.tobytes() == 3 * x.tobytes()


def header(descr="'<i8'", shape="(2,)"):
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}".encode()
    return b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text + bytes(1000)


class TestRefused:
    @pytest.fixture
    def source(self, tmp_path):
        np.save(tmp_path / "in.npy", np.arange(6).reshape(2, 3))
        return tmp_path / "in.npy"

    @pytest.mark.parametrize(
        ("content", "text"),
        [
            *((content, "not a .npy file$") for content in (b"", b"PKZIP", b"\x93NUMP")),
            (b"PK\3\4 and so on", "not a .npy file but a .npz archive"),
            (b"\x93NUMPY\1", "EOF"),
            (b"\x93NUMPY\x09\0  ", "format version"),
            (b"\x93NUMPY\1\0\x05\0[1,2(", "EOF in"),
            (header(shape=f"({10**20},)"), "truncated: .* bytes, expected 80+85"),
            (header(descr="'|V0'", shape=f"({10**20},)"), "[Mm]aximum"),
            (header(shape="(True,)"), "integers"),
            (header(shape="(-1,)"), "0 or more"),
            (header(descr="'<U0'", shape="(-1,)"), "0 or more"),  # of which NumPy dies
            (header(descr="()"), "index"),
            (header(shape="+".join(["1"] * 3000)), "(recursion|malformed)"),
            (header(shape="-" * 9000 + "1"), "(recursion|malformed|too many nested|too complex)"),
            (header(descr="'|O'"), "contains Python objects"),  # pickles
            (header(descr="[('a', '|O'), ('b', '<f4')]"), "contains Python objects"),
            (header()[:-985], "truncated: .* bytes, expected "),
        ],
    )
    def test_what_is_no_npy_file(self, content, text, tmp_path):
        (tmp_path / "in.npy").write_bytes(content)
        with pytest.raises(ValueError, match=f"in.npy: .*{text}"):
            tile_file(tmp_path / "in.npy", tmp_path / "out.npy", 2)
        assert os.listdir(tmp_path) == ["in.npy"]

    def test_a_dialect_that_lacks_the_type(self, tmp_path):
        np.save(tmp_path / "in.npy", np.zeros(2, "M8[s]"))
        arguments = commands.parser().parse_args(["tile", "in.npy", "out.npy", "--dialect=onnx", "--repeats=2"])
        planned = partial(commands.make_plan, arguments, commands.rule_of(arguments))
        with pytest.raises(TypeError, match="^ONNX Tile-13: input is of type datetime64"):
            files.tile_file(str(tmp_path / "in.npy"), str(tmp_path / "out.npy"), planned, nullcontext, 1 << 28)

    def test_what_is_missing_or_no_regular_file(self, source):
        target = source.with_name("out.npy")
        with pytest.raises(FileNotFoundError, match="absent.npy"):
            tile_file(source.with_name("absent.npy"), target, 2)
        with pytest.raises(FileNotFoundError, match="absent.out.npy"):
            tile_file(source, source.with_name("absent") / "out.npy", 2)
        for path in (source.parent, source.parent / "folder" / "..", os.devnull):
            with pytest.raises((ValueError, FileNotFoundError)):
                tile_file(path, target, 2)

    def test_one_file_for_both_needs_force(self, source, oracle):
        before = source.read_bytes()
        want = oracle(np.load(source), (2, 3))
        with pytest.raises(ValueError, match="exists already"):
            tile_file(source, source, (2, 3), force=False)
        assert source.read_bytes() == before
        if os.name == "posix":  # Windows replaces no file that is mapped
            tile_file(source, source, (2, 3))
            np.testing.assert_array_equal(np.load(source), want, strict=True)

    @pytest.mark.parametrize("repeats", [2**40, 2**57, (2**63 - 1) // 48])
    def test_more_than_any_disk(self, repeats, source):
        with pytest.raises(OSError, match="needs .*B, but its disk has .*B free: '.*out.npy'"):
            tile_file(source, source.with_name("out.npy"), (repeats, 1))
        assert os.listdir(source.parent) == ["in.npy"]

    def test_a_name_that_another_file_takes(self, source, monkeypatch, oracle):
        """The file that was opened is read, even if its name means another one meanwhile."""
        want = oracle(np.load(source), 2)

        def planned(array):
            os.replace(source, source.with_name("moved.npy"))
            np.save(source, np.zeros(7))
            return TilePlan(array.shape, 2, array.dtype)

        target = source.with_name("out.npy")
        files.tile_file(str(source), str(target), planned, lambda _: nullcontext(lambda n: None), 1 << 28)
        np.testing.assert_array_equal(np.load(target), want, strict=True)


@pytest.mark.process
def test_nothing_is_opened_again_by_name(tmp_path, program):
    np.save(tmp_path / "in.npy", np.arange(6))
    program("""
from tilecore._cli.main import main
opened = []
sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event == "open" else None)
main(["tile", "in.npy", "out.npy", "--repeats", "2"])
assert opened.count("in.npy") == 1 == sum(name.endswith(".part") for name in opened)
""")


@pytest.mark.filterwarnings("ignore:Stored array in format 3.0")
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize(
    ("version", "dtype"),
    [
        ((1, 0), "f4"),
        ((2, 0), "f4"),
        ((3, 0), [("\N{GREEK SMALL LETTER ALPHA}", "f4"), ("\\\N{LATIN SMALL LETTER O WITH ACUTE}'", "i2")]),
    ],
)  # fmt: skip
def test_versions_of_the_format(version, dtype, order, tmp_path):
    """Byte for byte as NumPy writes them, in the version that the input has, with the mode of a new file."""
    x = np.zeros((2, 3), dtype, order)
    for name, array in [("in.npy", x), ("numpy.npy", np.asarray(np.tile(x, (2, 2)), order=order))]:
        with open(tmp_path / name, "wb") as file:
            np.lib.format.write_array(file, array, version)
    tile_file(tmp_path / "in.npy", tmp_path / "out.npy", (2, 2))
    got, want = tmp_path / "out.npy", tmp_path / "numpy.npy"
    assert got.read_bytes() == want.read_bytes() and got.stat().st_mode == want.stat().st_mode
