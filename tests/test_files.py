"""Tiling from file to file: every byte, in either order, in little memory, and whole or not at all."""

import os
import re
import subprocess
import sys
from contextlib import nullcontext

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilecore
from tilecore.__main__ import legal_repeats, parser
from tilecore._cli import files


def tile_file(source, target, repeats, **how):
    """The slabs' sizes."""
    sizes = []
    how = {"memory": 1 << 28} | how
    files.tile_file(
        source, target, lambda array: ("tile", repeats), lambda _: nullcontext(sizes.append), **how
    )
    return sizes


@pytest.fixture
def small_slabs(monkeypatch):
    monkeypatch.setattr(files, "SLAB", 100)


@given(
    st.lists(st.integers(1, 6), max_size=4).map(tuple),
    st.integers(1, 5),
    st.integers(5, 200),
)
def test_slabs_are_the_file_in_order(shape, itemsize, limit):
    whole = np.arange(np.prod(shape)).reshape(shape)
    parts = []
    for start, stop in files.slabs(shape, itemsize, limit):
        part = whole[tuple(slice(a, b) for a, b in zip(start, stop, strict=True))]
        assert 0 < part.size * itemsize <= limit
        parts.append(part.ravel())
    assert (np.concatenate(parts) == whole.ravel()).all()
    # No more of them than need be: two neighbours never fit together, but for the ends of rows.
    assert len(parts) <= 2 * -(-whole.size * itemsize // limit) * 2


DTYPES = [
    "?", "u1", "<i2", ">i4", "f4", ">f8", "c16", "g", "M8[ns]", "m8[s]", "S3", "U2", "V5", "V150",
    [("a", "u1"), ("b", ">f8", (2,))], np.dtype([("a", "u1"), ("b", "f8")], align=True),
    [("\N{LATIN SMALL LETTER E WITH ACUTE}", "f4")], [("\N{GREEK SMALL LETTER ALPHA}", "f4")],
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Stored array in format 3.0")
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_byte(dtype, order, tmp_path, small_slabs, oracle):
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


def test_files_are_those_of_numpy(tmp_path):
    x = np.arange(6).reshape(2, 3)
    np.save(tmp_path / "in.npy", x)
    tile_file(tmp_path / "in.npy", tmp_path / "out.npy", (2, 2))
    np.save(tmp_path / "numpy.npy", np.tile(x, (2, 2)))
    assert (tmp_path / "out.npy").read_bytes() == (tmp_path / "numpy.npy").read_bytes()
    modes = [(tmp_path / name).stat().st_mode for name in ("out.npy", "numpy.npy")]
    assert modes[0] == modes[1]


def test_bfloat16_is_bytes_in_a_file(tmp_path):
    x = np.arange(3).astype(ml_dtypes.bfloat16)
    np.save(tmp_path / "in.npy", x)
    tile_file(tmp_path / "in.npy", tmp_path / "out.npy", 2)
    got = np.load(tmp_path / "out.npy")
    assert got.dtype == "V2" and got.view(x.dtype).tolist() == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    ("shape", "repeats"),
    [((), ()), ((), (2, 2)), ((0, 3), (2, 2)), ((2, 3), (0, 5)), ((1,), (1,)), ((1,) * 20, 2)],
)
def test_the_smallest(shape, repeats, tmp_path, oracle):
    x = np.full(shape, 7, "i2")
    np.save(tmp_path / "in.npy", x)
    tile_file(tmp_path / "in.npy", tmp_path / "out.npy", repeats)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), oracle(x, repeats), strict=True)


class TestMemory:
    @pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
    @pytest.mark.parametrize("shape, repeats", [((72 << 20, 1), "1,2"), ((3, 24 << 20), "1,1")])
    def test_resident_bytes_of_the_process(self, shape, repeats, tmp_path):
        """Input and result are each larger than the memory."""
        x = np.lib.format.open_memmap(tmp_path / "in.npy", "w+", "u1", shape)
        x.reshape(-1)[:: 1 << 20] = 1
        del x
        code = f"""
from tilecore.__main__ import main
print(main(["tile", "in.npy", "out.npy", "--repeats", "{repeats}", "--memory", "68M"]))
print(open("/proc/self/status").read())
"""
        shown = subprocess.check_output([sys.executable, "-c", code], cwd=tmp_path, text=True)
        assert shown.startswith("0\n")
        assert int(re.search(r"VmHWM:\s*(\d+) kB", shown)[1]) << 10 < 68 << 20
        assert np.load(tmp_path / "out.npy", mmap_mode="r").nbytes >= 72 << 20

    def test_large_items(self, tmp_path):
        itemsize = 5 << 20
        np.save(tmp_path / "in.npy", np.frombuffer(os.urandom(itemsize), f"V{itemsize}"))
        with pytest.raises(ValueError, match="items of 5242880 bytes need a memory of 74M or more"):
            tile_file(tmp_path / "in.npy", tmp_path / "out.npy", 3, memory=73 << 20)
        tile_file(tmp_path / "in.npy", tmp_path / "out.npy", 3, memory=74 << 20)
        x, got = np.load(tmp_path / "in.npy"), np.load(tmp_path / "out.npy")
        assert got.tobytes() == 3 * x.tobytes()

    def test_too_little(self, tmp_path):
        with pytest.raises(ValueError, match="expected 68M or more"):
            tile_file(tmp_path / "in.npy", tmp_path / "out.npy", 3, memory=(68 << 20) - 1)

    def test_the_size_limit_is_for_what_is_allocated(self, tmp_path):
        np.save(tmp_path / "in.npy", np.arange(1000))
        before = tilecore.get_max_bytes()
        tilecore.set_max_bytes(10)
        try:
            tile_file(tmp_path / "in.npy", tmp_path / "out.npy", 3)
        finally:
            tilecore.set_max_bytes(before)


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
            (b"", "EOF"),
            (b"PK\3\4 and so on", "magic"),
            (b"\x93NUMPY\x09\0  ", "format version"),
            (b"\x93NUMPY\1\0\x05\0[1,2(", "EOF in"),
            (header(shape=f"({10**20},)"), "too large"),
            (header(shape="(True,)"), "integer"),
            (header(shape="(-1,)"), "negative"),
            (header(descr="'<U0'", shape="(-1,)"), "negative"),  # of which NumPy dies
            (header(descr="()"), "index"),
            (header(shape="+".join(["1"] * 3000)), "(recursion|malformed)"),
            (header(descr="'|O'"), "Python objects"),
        ],
    )
    def test_what_is_no_npy_file(self, content, text, tmp_path):
        (tmp_path / "in.npy").write_bytes(content)
        with pytest.raises(ValueError, match=f"in.npy: .*{text}"):
            tile_file(tmp_path / "in.npy", tmp_path / "out.npy", 2)
        assert os.listdir(tmp_path) == ["in.npy"]

    def test_a_file_cut_short(self, source):
        source.write_bytes(source.read_bytes()[:-1])
        with pytest.raises(ValueError, match="in.npy: mmap length is greater than file size"):
            tile_file(source, source.with_name("out.npy"), 2)

    @pytest.mark.parametrize("dtype", [object, [("a", "O"), ("b", "f4")]])
    def test_objects_would_be_pickles(self, dtype, tmp_path):
        np.save(tmp_path / "in.npy", np.zeros(2, dtype), allow_pickle=True)
        with pytest.raises(ValueError, match="in.npy: .*Python objects in dtype"):
            tile_file(tmp_path / "in.npy", tmp_path / "out.npy", 2)

    def test_a_dialect_that_lacks_the_type(self, tmp_path):
        np.save(tmp_path / "in.npy", np.zeros(2, "M8[s]"))
        typed = ["tile", "in.npy", "out.npy", "--dialect=onnx", "--repeats=2"]
        rule = legal_repeats(parser().parse_args(typed))
        with pytest.raises(TypeError, match="^ONNX Tile-13: input is of type datetime64"):
            files.tile_file(tmp_path / "in.npy", tmp_path / "out.npy", rule, nullcontext, 1 << 28)

    def test_a_missing_input_or_folder(self, source):
        with pytest.raises(FileNotFoundError, match="absent.npy"):
            tile_file(source.with_name("absent.npy"), source.with_name("out.npy"), 2)
        with pytest.raises(FileNotFoundError, match="absent: no such folder"):
            tile_file(source, source.with_name("absent") / "out.npy", 2)

    def test_what_is_no_regular_file(self, source):
        for path in (source.parent, source.parent / "missing" / "..", os.devnull):
            path = type(source)(path)
            with pytest.raises((ValueError, FileNotFoundError)):
                tile_file(path, source.with_name("out.npy"), 2)
            with pytest.raises(ValueError, match="expected a regular file"):
                tile_file(source, path, 2)

    def test_links_in_a_circle(self, source):
        circle = source.with_name("out.npy")
        circle.symlink_to(circle)
        with pytest.raises(OSError, match="in a circle"):
            tile_file(source, circle, 2)
        assert sorted(os.listdir(source.parent)) == ["in.npy", "out.npy"]

    def test_one_file_for_both(self, source):
        before = source.read_bytes()
        os.link(source, source.with_name("link.npy"))
        for target in (source, source.with_name("link.npy")):
            with pytest.raises(ValueError, match="the input and the output are the same file"):
                tile_file(source, target, 2)
        assert source.read_bytes() == before

    @pytest.mark.parametrize("repeats", [2**40, 2**57, (2**63 - 1) // 48])
    def test_more_than_any_disk(self, repeats, source):
        with pytest.raises(OSError, match="cannot make a file of [0-9]+ bytes"):
            tile_file(source, source.with_name("out.npy"), (repeats, 1))
        assert os.listdir(source.parent) == ["in.npy"]

    def test_a_full_disk_tells_before_anything_is_written(self, source):
        resource = pytest.importorskip("resource")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        try:
            with pytest.raises(OSError, match="cannot make a file of 4800 bytes: .*too large"):
                tile_file(source, source.with_name("out.npy"), (10, 10))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert os.listdir(source.parent) == ["in.npy"]


def test_an_existing_file_is_replaced_and_a_link_stays_one(tmp_path):
    np.save(tmp_path / "in.npy", np.arange(2))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "out.npy").write_bytes(b"before")
    (tmp_path / "out.npy").symlink_to("folder/out.npy")
    tile_file(tmp_path / "in.npy", tmp_path / "out.npy", 2)
    assert (tmp_path / "out.npy").is_symlink()
    assert np.load(tmp_path / "folder" / "out.npy").tolist() == [0, 1, 0, 1]


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_the_permissions_of_what_is_replaced(mode, tmp_path, monkeypatch):
    np.save(tmp_path / "in.npy", np.arange(2))
    target = tmp_path / "out.npy"
    target.write_bytes(b"a secret")
    target.chmod(mode)
    meanwhile = []

    def replace(temporary, name, real=os.replace):
        meanwhile.append(temporary.stat().st_mode & 0o777)
        real(temporary, name)

    monkeypatch.setattr(os, "replace", replace)
    tile_file(tmp_path / "in.npy", target, 2)
    assert np.load(target).tolist() == [0, 1, 0, 1]
    assert meanwhile == [mode] and target.stat().st_mode & 0o777 == mode
