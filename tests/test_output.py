"""Files that appear whole or not at all, and what may not be replaced."""

import errno
import os
import shutil
import stat
from collections import namedtuple

import pytest

from tilecore._cli import output

pytestmark = pytest.mark.quick
posix = pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
SOURCE = os.stat(__file__)


def open_output(path, size=3, **how):
    return output.open_output(str(path), size, SOURCE, **how)


def write(path, content=b"new", **how):
    with open_output(path, len(content), **how) as write_next:
        write_next(memoryview(content))


def refuse(number):
    def call(*_, **__):
        raise OSError(number, os.strerror(number))

    return call


def is_as_before(path):
    return path.read_bytes() == b"old" and os.listdir(path.parent) == [path.name]


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "out.npy"
    path.write_bytes(b"old")
    return path


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_is_as_any_other(tmp_path):
    write(tmp_path / "out.npy")
    (tmp_path / "other").write_bytes(b"new")
    assert (tmp_path / "out.npy").read_bytes() == b"new"
    assert mode_of(tmp_path / "out.npy") == mode_of(tmp_path / "other")
    assert sorted(os.listdir(tmp_path)) == ["other", "out.npy"]


def test_a_file_that_exists_needs_force(target):
    with pytest.raises(ValueError, match=r"out\.npy: exists already; use --force to replace it$"):
        write(target)
    assert is_as_before(target)
    write(target, force=True)
    assert target.read_bytes() == b"new" and os.listdir(target.parent) == ["out.npy"]


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_is_made_meanwhile_stays(links, target, monkeypatch):
    if not links:  # as on FAT
        monkeypatch.setattr(os, "link", refuse(errno.EPERM))
    target.unlink()
    with pytest.raises(ValueError, match="exists already; use --force to replace it"), open_output(target):
        target.write_bytes(b"old")
    assert is_as_before(target)
    target.unlink()
    write(target)
    assert target.read_bytes() == b"new" and os.listdir(target.parent) == ["out.npy"]


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755, 0o444, 0o200])
def test_a_file_that_is_replaced_keeps_its_mode(mode, target):
    target.chmod(mode)
    with open_output(target, force=True) as write_next:
        write_next(memoryview(b"new"))
        (part,) = target.parent.glob(".tilecore-*.part")
        assert mode_of(part) == 0o600
    assert mode_of(target) == mode
    target.chmod(0o600)
    assert target.read_bytes() == b"new"


@posix
@pytest.mark.parametrize("bit", [stat.S_ISUID, stat.S_ISGID])
def test_rights_that_were_lent_to_the_old_content_go(bit, target):
    target.chmod(0o755 | bit)
    assert target.stat().st_mode & bit
    write(target, force=True)
    assert mode_of(target) == 0o755


@posix
@pytest.mark.parametrize("force", [True, False])
def test_what_is_no_regular_file_is_never_replaced(force, target):
    folder = target.parent
    for name, to in {"link": "out.npy", "nowhere": "absent", "circle": "circle"}.items():
        (folder / name).symlink_to(to)
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    names = ["link", "nowhere", "circle", "folder", "pipe"]
    for path in [*(folder / name for name in names), os.devnull, "/dev/stdout"]:
        with pytest.raises(ValueError, match="not a regular file; use - for standa"):
            write(path, force=force)
    with pytest.raises(ValueError, match="^'': expected the name of a file"):
        write("", force=force)
    assert target.read_bytes() == b"old"
    assert sorted(os.listdir(folder)) == sorted([*names, "out.npy"])


@pytest.mark.parametrize("end", [ZeroDivisionError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_what_was_there(end, target):
    with pytest.raises(end), open_output(target, 10, force=True) as write_next:
        write_next(memoryview(b"half"))
        raise end
    assert is_as_before(target)


def test_the_unfinished_file_goes_though_a_signal_ends_its_closing(target, monkeypatch):
    real = os.close

    def close(fd):
        real(fd)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), open_output(target, force=True):
        monkeypatch.setattr(os, "close", close)
        raise OSError("a full disk")
    monkeypatch.undo()
    assert is_as_before(target)


@pytest.mark.parametrize("force", [True, False])
def test_bytes_are_on_the_disk_before_they_have_the_name(force, tmp_path, monkeypatch):
    done = []
    for name, real in [(name, getattr(os, name)) for name in ("fsync", "link", "replace")]:

        def call(*arguments, name=name, real=real):
            done.append(f"{name} {os.fstat(arguments[0]).st_size if name == 'fsync' else ''}".strip())
            return real(*arguments)

        monkeypatch.setattr(os, name, call)
    write(tmp_path / "out.npy", force=force)
    assert done == ["fsync 3", "replace" if force else "link"]


def test_a_write_that_takes_a_part_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "write", lambda fd, data, real=os.write: real(fd, data[:2]))
    write(tmp_path / "out.npy", b"seven b")
    assert (tmp_path / "out.npy").read_bytes() == b"seven b"


class TestRoom:
    def test_the_disk_is_asked_before_anything_is_made(self, tmp_path, monkeypatch):
        """A file of 240 GB would fill a disk with 71 GB free, and disturb its other users."""
        usage = namedtuple("usage", "total used free")
        path = tmp_path / "out.npy"
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, 0))  # some file systems do not tell
        write(path)
        path.unlink()
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**12, 0, 71 * 10**9))
        monkeypatch.setattr(output, "_make_room", lambda *_: pytest.fail("room was taken"))
        words = r"needs 240 GB, but its disk has 71 GB free: '.*out\.npy'"
        with pytest.raises(OSError, match=words), open_output(path, 240 * 10**9):
            pytest.fail("it began")
        assert os.listdir(tmp_path) == []

    @pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="not on this system")
    def test_a_file_system_that_allocates_nothing_ahead(self, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "posix_fallocate", refuse(errno.EOPNOTSUPP))
        write(tmp_path / "out.npy")
        assert (tmp_path / "out.npy").read_bytes() == b"new"
        monkeypatch.setattr(os, "posix_fallocate", refuse(errno.EDQUOT))
        with pytest.raises(OSError, match=r"'.*another\.npy'"):
            write(tmp_path / "another.npy")
        assert os.listdir(tmp_path) == ["out.npy"]

    def test_a_limit_that_the_disk_does_not_know(self, target):
        resource = pytest.importorskip("resource")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        try:
            with pytest.raises(OSError, match=r"File too large: '.*out\.npy'"):
                write(target, 4800 * b"x", force=True)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert is_as_before(target)
