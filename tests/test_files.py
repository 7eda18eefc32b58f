"""Tiling from file to file: every byte, in either order, in little memory, and atomically."""

import contextlib
import errno
import os
import shutil
import stat
import sys
from contextlib import nullcontext
from functools import partial
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ways import PLAIN, make_items

import tilecore
from tilecore import TilePlan
from tilecore._cli import commands, files

pytestmark = pytest.mark.quick
posix = pytest.mark.skipif(os.name != "posix", reason="links and modes are POSIX's")


def tile_file(source, target, repeats, force=True):
    """The slabs' sizes."""
    sizes = []
    planner = lambda array: TilePlan(array.shape, repeats, array.dtype)  # noqa: E731
    files.tile_file(str(source), str(target), planner, lambda _: nullcontext(sizes.append), force)
    return sizes


@given(st.lists(st.integers(1, 6), max_size=4).map(tuple), st.integers(1, 5), st.integers(5, 200))
def test_regions_are_the_file_in_order(shape, itemsize, limit):
    whole = np.arange(np.prod(shape)).reshape(shape)
    parts = []
    for start, stop in files.regions(shape, itemsize, limit):
        part = whole[tuple(slice(a, b) for a, b in zip(start, stop, strict=True))]
        assert 0 < part.size * itemsize <= limit
        parts.append(part.ravel())
    assert (np.concatenate(parts) == whole.ravel()).all()
    # No more regions than needed: two neighbours never fit into one, except at the ends of rows.
    assert len(parts) <= 2 * -(-whole.size * itemsize // limit) * 2


def test_regions_are_made_one_at_a_time(traced):
    """There are so many outer blocks that a list of their numbers would take 4 GB."""
    traced.clear_traces()
    made = files.regions((10**8, 10**8, 8), itemsize=1, limit=4)
    first = list(islice(made, 5))
    assert traced.get_traced_memory()[1] < 10**5
    assert first[1:3] == [((0, 0, 4), (1, 1, 8)), ((0, 1, 0), (1, 2, 4))]


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", [*PLAIN, [("a", "u1"), ("b", ">f8", (2,))], [("\u00e9", "f4")]], ids=str)
def test_as_numpy_writes_it(dtype, order, tmp_path, monkeypatch, oracle):
    """Byte for byte, in slabs of a few items."""
    monkeypatch.setattr(files, "SLAB", 100)
    np.save(tmp_path / "in.npy", np.asarray(make_items((2, 3, 4), dtype), order=order))
    x = np.load(tmp_path / "in.npy")
    for repeats in [(3, 2, 2), (2, 1, 1, 1, 3), 5]:
        sizes = tile_file(tmp_path / "in.npy", tmp_path / "out.npy", repeats)
        assert len(sizes) > 1 and max(sizes) <= max(100, x.itemsize)
        # As raw bytes, because NumPy's own indexing does not copy the padding of structures.
        want = np.asarray(oracle(x.view(f"V{x.itemsize}"), repeats), order=order).view(x.dtype)
        np.save(tmp_path / "want.npy", want)
        assert sum(sizes) == want.nbytes
        assert (tmp_path / "out.npy").read_bytes() == (tmp_path / "want.npy").read_bytes()


@pytest.mark.parametrize(("shape", "repeats", "dtype"), [
    *[((), (), "i2"), ((), (2, 2), "i2"), ((0, 3), (2, 2), "i2"), ((2, 3), (0, 5), "i2"), ((1,), (1,), "i2")],
    *[((1,) * 20, 2, "i2"), ((2, 3), 2, "S"), ((2, 3), 2, "U"), ((2, 3), 2, "V0")],
])  # fmt: skip
def test_results_of_few_bytes_or_none(shape, repeats, dtype, tmp_path, oracle):
    x = np.ndarray(shape, dtype, bytes(range(64)))
    np.save(tmp_path / "in.npy", x)
    sizes, want = tile_file(tmp_path / "in.npy", tmp_path / "out.npy", repeats), oracle(x, repeats)
    want = want if x.itemsize else np.zeros_like(want)  # NumPy shows old memory if items have no bytes
    got = np.load(tmp_path / "out.npy")
    assert (got.dtype, got.shape, got.tolist()) == (tilecore.tile(x, repeats).dtype, want.shape, want.tolist())
    assert sizes == [got.nbytes] * (got.nbytes > 0)
    assert tilecore.TilePlan(x.shape, repeats, x.dtype).nbytes == got.nbytes  # strings too, of one character


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("shape, repeats", [((160 << 20, 1), "1,2"), ((3, 56 << 20), "1,1")])
def test_resident_bytes_of_the_process(shape, repeats, tmp_path, program):
    """Input and result are each larger than the memory."""
    if shutil.disk_usage(tmp_path).free < 350 << 20:
        pytest.skip("needs 350 MiB of disk in TMPDIR")
    x = np.lib.format.open_memmap(tmp_path / "in.npy", "w+", "u1", shape)
    x.reshape(-1)[:: 1 << 20] = 1
    del x
    program(f"""
from tilecore._cli.main import main
assert main(["tile", "in.npy", "out.npy", "--repeats", "{repeats}"]) == 0
assert status("VmHWM") < 120 << 20
""")
    assert np.load(tmp_path / "out.npy", mmap_mode="r").nbytes >= 160 << 20


def test_items_larger_than_a_slab(tmp_path, settings_stay):
    """The size limit is for memory, not for files."""
    itemsize = 5 << 20
    np.save(tmp_path / "in.npy", np.frombuffer(os.urandom(itemsize), f"V{itemsize}"))
    tilecore.set_max_bytes(10)
    assert tile_file(tmp_path / "in.npy", tmp_path / "out.npy", 3) == [itemsize] * 3
    assert np.load(tmp_path / "out.npy").tobytes() == 3 * np.load(tmp_path / "in.npy").tobytes()


def header(descr="'<i8'", shape="(2,)"):
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}".encode()
    return b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text + bytes(1000)


SHORT = [b"", b"\x93NUMPY\1", header()[:-1001], b"a text", b"PK"]


@pytest.mark.parametrize(("content", "text"), [
    *((content, f"it ends after {len(content)} bytes, within its header$") for content in SHORT),
    (header()[:-985], "mmap length|No data"),
    (b"PK\3\4 and so on", "an .npz archive is not supported; extract it by unzip$"),
    (b"\x89PNG and so on", "magic"),
    (b"\x93NUMPY\2\0" + (10_001).to_bytes(4, "little") + b" " * 10_001, "its header is long.* max_header_size=$"),
    (b"\x93NUMPY\x09\0  ", "version"), (header(descr="()"), "index"),
    (header(shape=f"({10**20},)"), ""), (header(shape=f"({2**62}, 8)"), "too (big|large)"),
    (header(shape="'" + "a" * 9900 + "'"), "a{50,199}$"),
    (header(shape="+".join(["1"] * 3000)), "(recursion|malformed)"),
    (header(descr=r"'\d'"), "descr is not a valid"),  # Python's parser warns
    (header(descr="[('a', '|O'), ('b', '<f4')]"), "Python objects"),  # pickles
])  # fmt: skip
def test_what_is_no_npy_file(content, text, tmp_path):
    (tmp_path / "in.npy").write_bytes(content)
    with pytest.raises(ValueError, match=f"in.npy: cannot be read as a .npy file: .*{text}"):
        tile_file(tmp_path / "in.npy", tmp_path / "out.npy", 2)
    assert os.listdir(tmp_path) == ["in.npy"]


@pytest.mark.filterwarnings("ignore:Stored array in format 3.0:UserWarning")
def test_names_of_fields_outside_latin_1(tmp_path):
    np.save(tmp_path / "in.npy", np.zeros(2, [("\N{GREEK CAPITAL LETTER OMEGA}", "f4")]))
    with pytest.raises(ValueError, match=r"in\.npy: names of fields outside Latin-1 are not supported$"):
        tile_file(tmp_path / "in.npy", tmp_path / "out.npy", 2)


def test_a_dialect_that_lacks_the_type(tmp_path):
    np.save(tmp_path / "in.npy", np.zeros(2, "M8[s]"))
    arguments = commands.parser().parse_args(["tile", "in.npy", "out.npy", "--dialect=onnx", "--repeats=2"])
    planner = partial(commands.make_plan, arguments, commands.version_of(arguments))
    with pytest.raises(TypeError, match="input is of type datetime64"):
        files.tile_file(str(tmp_path / "in.npy"), str(tmp_path / "out.npy"), planner, nullcontext)


@posix
def test_what_is_missing_or_no_regular_file(source, tmp_path, monkeypatch):
    names = ["link", "nowhere", "circle", "folder"]
    for name, to in zip(names, ["in.npy", "absent", "circle"], strict=False):
        (tmp_path / name).symlink_to(to)
    (tmp_path / "folder").mkdir()
    before = source.read_bytes()
    for path in [*(tmp_path / name for name in names), os.devnull]:
        with pytest.raises(ValueError, match="not a regular file; use - for standard output"):
            tile_file(source, path, 2)
    with pytest.raises(ValueError, match="not a regular file; use - for standard input"):
        tile_file(os.devnull, tmp_path / "out.npy", 2)
    with pytest.raises(IsADirectoryError, match="folder"):
        tile_file(tmp_path / "folder", tmp_path / "out.npy", 2)
    for path, target in (("absent.npy", "out.npy"), ("in.npy", "absent/out.npy")):
        with pytest.raises(FileNotFoundError, match="absent"):
            tile_file(tmp_path / path, tmp_path / target, 2)
    with pytest.raises(NotADirectoryError) as error:
        tile_file(source, source / "out.npy", 2)
    assert error.value.filename == str(source / "out.npy")
    monkeypatch.setattr(os, "write", None)  # it is not called
    with pytest.raises(FileNotFoundError):
        tile_file(source, "", 2)
    assert source.read_bytes() == before and sorted(os.listdir(tmp_path)) == sorted([*names, "in.npy"])


@pytest.mark.skipif(sys.platform != "linux", reason="Linux limits addresses")
def test_a_limit_of_addresses(tmp_path, program):
    """The error names the file."""
    np.lib.format.open_memmap(tmp_path / "in.npy", "w+", "u1", (8 << 30,))  # a hole
    printed = program("""
from tilecore._cli.main import main
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
sys.stderr = sys.stdout
main(["tile", "in.npy", "out.npy", "--repeats", "2"])
""")
    assert printed == "tilecore: in.npy: Cannot allocate memory\n"


def test_one_file_for_both_needs_force(source, oracle):
    before, want = source.read_bytes(), oracle(np.load(source), (2, 3))
    with pytest.raises(ValueError, match="in.npy: exists already; use --force to replace it$"):
        tile_file(source, source, (2, 3), force=False)
    assert source.read_bytes() == before
    if os.name == "posix":  # Windows replaces no file that is mapped
        tile_file(source, source, (2, 3))
        np.testing.assert_array_equal(np.load(source), want, strict=True)
        assert os.listdir(source.parent) == ["in.npy"]


@pytest.mark.parametrize("repeats", [2**40, 2**57, (2**63 - 1) // 24])
def test_more_than_any_disk(repeats, source):
    with pytest.raises(OSError, match="needs .*B, but its disk has .*B free: '.*out.npy'"):
        tile_file(source, source.with_name("out.npy"), (repeats, 1))
    assert os.listdir(source.parent) == ["in.npy"]


@posix
@pytest.mark.parametrize("mode", [None, 0o600, 0o640, 0o755, 0o444, 0o4755, 0o2755])
def test_the_mode(mode, source, monkeypatch):
    """That of the replaced file, or of any new file; setuid and setgid were meant for the old content.

    Others may write to the folder: they must not read the new content before, or get another file's mode changed.
    """
    target = source.with_name("out.npy")
    if mode is not None:
        target.touch()
        target.chmod(mode)
    first = []
    fchmod = os.fchmod
    monkeypatch.setattr(os, "fchmod", lambda fd, mode: [first.append(os.fstat(fd).st_mode), fchmod(fd, mode)])
    monkeypatch.setattr(os, "chmod", None)  # by a name, which may have become a link
    with files.open_output(str(target), 9, force=True):
        modes = [part.stat().st_mode for part in source.parent.glob(".tilecore-*.part")]
    assert modes == [target.stat().st_mode] and first == [stat.S_IFREG | 0o600] * (mode is not None)
    assert stat.S_IMODE(modes[0]) == (source.stat().st_mode if mode is None else mode) & 0o777


@pytest.mark.parametrize("end", [ZeroDivisionError, KeyboardInterrupt, OSError(errno.ENOSPC, "a full disk")])
def test_an_error_leaves_what_was_there(end, source):
    before = source.read_bytes()
    with pytest.raises(end if isinstance(end, type) else OSError) as error, files.open_output(str(source), 9, True):
        raise end
    assert source.read_bytes() == before and os.listdir(source.parent) == ["in.npy"]
    assert error.type is not OSError or error.value.filename == str(source)


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.parametrize("force", [False, True])
def test_a_signal_handler_that_raises_at_any_moment(force, tmp_path, raised_between):
    """Only the complete file remains, or none."""

    def write():
        path.unlink(missing_ok=True)
        with files.open_output(str(path), 3, force) as fd:
            files.write_all(fd, memoryview(b"new"))

    path = tmp_path / "out.npy"
    for _ in raised_between(write, lambda code: code.co_filename in (files.__file__, contextlib.__file__)):
        assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] in ([], [("out.npy", b"new")])


def test_bytes_are_on_the_disk_before_they_have_the_name(tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(os, "fsync", lambda fd: done.append(os.fstat(fd).st_size))
    for name in ("link", "replace"):
        monkeypatch.setattr(os, name, lambda *names, **_: done.append(names[1]))
    monkeypatch.setattr(os, "write", lambda fd, data, real=os.write: real(fd, data[:2]))  # a part at a time
    target = str(tmp_path / "out.npy")
    for force in (False, True):
        with files.open_output(target, 3, force) as fd:
            files.write_all(fd, memoryview(b"new"))
    assert done == [3, target] * 2


MEANWHILE = {
    "a file": lambda path: path.write_bytes(b"theirs"),
    "a link": lambda path: path.symlink_to("elsewhere"),
    "a FIFO": lambda path: os.mkfifo(path),
}


def no_links(*names, **options):
    raise PermissionError(errno.EPERM, "this file system has no links")


@posix
@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("link", [os.link, no_links])
@pytest.mark.parametrize("what", MEANWHILE)
def test_what_appears_while_the_result_is_written(what, link, force, tmp_path, monkeypatch):
    """It stays, unless it is a file, and `force` is given."""
    monkeypatch.setattr(os, "link", link)
    replaces = force and what == "a file"
    text = "exists already; use --force" if what == "a file" else "not a regular file"
    refused = nullcontext() if replaces else pytest.raises(ValueError, match=f"out.npy: {text}")
    with refused, files.open_output(str(tmp_path / "out.npy"), 3, force) as fd:
        os.write(fd, b"ours")
        MEANWHILE[what](tmp_path / "out.npy")
        before = (tmp_path / "out.npy").lstat()
    assert os.listdir(tmp_path) == ["out.npy"] and ((tmp_path / "out.npy").lstat().st_ino != before.st_ino) == replaces


@pytest.mark.parametrize("force", [False, True])
def test_a_file_system_without_links(force, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", no_links)
    with files.open_output(str(tmp_path / "out.npy"), 3, force) as fd:
        os.write(fd, b"ours")
    assert os.listdir(tmp_path) == ["out.npy"] and (tmp_path / "out.npy").read_bytes() == b"ours"
