"""Files that are replaced: whole or not at all, and open to nobody to whom they were not.

Root may do everything, so what a user may not do is tried by root as a user; the rest by whoever runs.
"""

import os
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
from collections import namedtuple
from contextlib import contextmanager
from pathlib import Path

import pytest

from tilecore._cli import replacing as module
from tilecore._cli.replacing import replacing

pytestmark = pytest.mark.quick

posix = pytest.mark.skipif(os.name != "posix", reason="rights are POSIX's")
root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="root alone can be another user"
)
ACL = "system.posix_acl_access"
DEFAULT_ACL = "system.posix_acl_default"
SOMEBODY = 12345


def replace(path, content=b"new", **how):
    with replacing(str(path), len(content), **how) as file:
        file.write(content)


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "out.npy"
    path.write_bytes(b"old")
    return path


def rights(path):
    status = path.stat()
    return stat.S_IMODE(status.st_mode), status.st_gid, status.st_uid


@contextmanager
def watched(monkeypatch):
    """The rights of the unfinished file after each change of them: (mode, group, user)."""
    seen = []

    def watch(name, at):
        real = getattr(os, name)

        def call(*arguments, **how):
            result = real(*arguments, **how)
            status = os.fstat(result if at is None else arguments[at])
            if stat.S_ISREG(status.st_mode):
                seen.append((stat.S_IMODE(status.st_mode), status.st_gid, status.st_uid))
            return result

        monkeypatch.setattr(os, name, call)

    for name in ("fchmod", "fchown", "setxattr", "removexattr", "posix_fallocate", "fsync"):
        if hasattr(os, name):
            watch(name, 0)
    yield seen


def test_a_new_file_is_as_any_other(tmp_path):
    replace(tmp_path / "out.npy")
    (tmp_path / "other").write_bytes(b"new")
    assert (tmp_path / "out.npy").read_bytes() == b"new"
    assert rights(tmp_path / "out.npy") == rights(tmp_path / "other")
    assert sorted(os.listdir(tmp_path)) == ["other", "out.npy"]


def test_a_link_stays_one(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "out.npy").write_bytes(b"old")
    (tmp_path / "out.npy").symlink_to("folder/out.npy")
    replace(tmp_path / "out.npy")
    assert (tmp_path / "out.npy").is_symlink()
    assert (tmp_path / "folder" / "out.npy").read_bytes() == b"new"


def test_a_circle_of_links(tmp_path):
    (tmp_path / "out.npy").symlink_to("out.npy")
    with pytest.raises(OSError, match="out.npy: links that go round in a circle"):
        replace(tmp_path / "out.npy")
    assert os.listdir(tmp_path) == ["out.npy"]


def test_an_error_leaves_what_was_there(target):
    with pytest.raises(ZeroDivisionError), replacing(str(target), 10) as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert target.read_bytes() == b"old" and os.listdir(target.parent) == ["out.npy"]


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o666, 0o755, 0o1644, 0o200])
def test_the_mode_is_kept_and_never_wider(mode, target, monkeypatch):
    target.chmod(mode)
    before = rights(target)
    with watched(monkeypatch) as seen:
        replace(target)
    assert rights(target) == before
    assert all(own & ~(mode | 0o600) == 0 for own, _, _ in seen)
    target.chmod(0o600)
    assert target.read_bytes() == b"new"


@posix
@pytest.mark.parametrize("bit", [stat.S_ISUID, stat.S_ISGID])
def test_rights_that_were_lent_to_the_old_content_go(bit, target, monkeypatch):
    target.chmod(0o755 | bit)
    assert target.stat().st_mode & bit
    with watched(monkeypatch) as seen:
        replace(target)
    assert rights(target)[0] == 0o755
    assert not any(mode & bit for mode, _, _ in seen)


@posix
@pytest.mark.parametrize("mode", [0o444, 0o400])
def test_a_write_protected_file_needs_force(mode, target):
    target.chmod(mode)
    with pytest.raises(PermissionError, match="out.npy: write-protected; --force replaces it"):
        replace(target)
    assert target.read_bytes() == b"old" and os.listdir(target.parent) == ["out.npy"]
    replace(target, force=True)
    assert target.read_bytes() == b"new" and rights(target)[0] == mode


@posix
def test_what_happens_to_the_target_meanwhile(target):
    """Deleted, it costs nothing; more private, or made, it stays what it is."""
    target.chmod(0o640)
    with replacing(str(target), 3) as file:
        file.write(b"new")
        target.unlink()
    assert target.read_bytes() == b"new" and rights(target)[0] == 0o640
    with replacing(str(target), 3) as file:
        file.write(b"two")
        target.chmod(0o600)
    assert target.read_bytes() == b"two" and rights(target)[0] == 0o600
    target.unlink()
    with replacing(str(target), 3) as file:
        file.write(b"six")
        target.write_bytes(b"a secret")
        target.chmod(0o600)
    assert target.read_bytes() == b"six" and rights(target)[0] == 0o600
    assert os.listdir(target.parent) == ["out.npy"]


@posix
def test_a_target_that_is_protected_or_special_meanwhile_is_not_replaced(target):
    with pytest.raises(PermissionError, match="write-protected"), replacing(str(target), 3):
        target.chmod(0o444)
    target.unlink()
    with pytest.raises(ValueError, match="out.npy: expected a regular file"):
        with replacing(str(target), 3):
            target.symlink_to("elsewhere")
    assert os.readlink(target) == "elsewhere" and os.listdir(target.parent) == ["out.npy"]


@posix
def test_a_folder_that_is_renamed_meanwhile(target):
    """The file goes where its folder has gone, and nothing into one that took its name."""
    folder = target.parent / "folder"
    folder.mkdir()
    with replacing(str(folder / "out.npy"), 3) as file:
        file.write(b"new")
        folder.rename(target.parent / "moved")
        folder.mkdir()
    assert os.listdir(folder) == []
    assert os.listdir(target.parent / "moved") == ["out.npy"]


@posix
def test_an_unfinished_file_that_is_taken_away(target):
    with pytest.raises(
        OSError, match="^[^ ]*out.npy: its unfinished file was taken away meanwhile$"
    ):
        with replacing(str(target), 3):
            (hidden,) = set(os.listdir(target.parent)) - {"out.npy"}
            (target.parent / hidden).unlink()
            (target.parent / hidden).write_bytes(b"not ours")
    assert target.read_bytes() == b"old"


def test_data_are_on_the_disk_before_they_have_the_name(target, monkeypatch):
    done = []

    def watch(name, note):
        real = getattr(os, name)

        def call(*arguments, **how):
            done.append(note(*arguments))
            return real(*arguments, **how)

        monkeypatch.setattr(os, name, call)

    def synced(fd):
        status = os.fstat(fd)
        return "folder" if stat.S_ISDIR(status.st_mode) else f"file of {status.st_size}"

    watch("fsync", synced)
    watch("replace", lambda old, new: "renamed")
    replace(target)
    assert done[:2] == ["file of 3", "renamed"]
    assert os.name != "posix" or done[2:] == ["folder"]


class TestRoom:
    def test_the_disk_is_asked_before_anything_is_made(self, target, monkeypatch):
        """240 GB onto a disk with 71 GB: a call that took it all would disturb everybody there."""
        usage = namedtuple("usage", "total used free")
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**12, 0, 71 * 10**9))
        monkeypatch.setattr(module, "_make_room", lambda *_: pytest.fail("room was taken"))
        with (
            pytest.raises(OSError, match="out.npy: takes 240 GB, and 71 GB are free on its disk"),
            replacing(str(target), 240 * 10**9),
        ):
            pytest.fail("it began")
        assert os.listdir(target.parent) == ["out.npy"]

    def test_a_file_system_that_does_not_tell(self, target, monkeypatch):
        usage = namedtuple("usage", "total used free")
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, 0))
        replace(target)
        assert target.read_bytes() == b"new"

    def test_a_limit_that_the_disk_does_not_know(self, target):
        resource = pytest.importorskip("resource")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        try:
            with pytest.raises(OSError, match="File too large: '.*out.npy'"):
                replace(target, 4800 * b"x")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert target.read_bytes() == b"old" and os.listdir(target.parent) == ["out.npy"]


# ---------------------------------------------------------------- access lists


def access_list(user=0o6, group=0o4, mask=0o4, other=0, somebody=0o6):
    everybody = 0xFFFFFFFF
    entries = [(1, user, everybody), (2, somebody, SOMEBODY), (4, group, everybody)]
    entries += [(0x10, mask, everybody), (0x20, other, everybody)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def set_access_list(path, value, name=ACL):
    if sys.platform != "linux":
        pytest.skip("Python reads access lists on Linux alone")
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        pytest.skip(f"this file system has no access lists: {error}")


def access_list_of(path):
    try:
        return os.getxattr(path, ACL)
    except OSError:
        return None


@pytest.mark.parametrize("group, mask", [(0o4, 0o6), (0, 0o6), (0o6, 0o4)])
def test_access_lists_are_kept(group, mask, target, monkeypatch):
    value = access_list(group=group, mask=mask)
    set_access_list(target, value)
    before = rights(target)
    with watched(monkeypatch) as seen:
        replace(target)
    assert target.read_bytes() == b"new"
    assert (rights(target), access_list_of(target)) == (before, value)
    assert all(mode & ~(0o600 | before[0]) == 0 for mode, _, _ in seen)


def test_a_default_list_of_the_folder_gives_no_access(target, monkeypatch):
    """It is for files that are new; one that was made before it stays as it was."""
    set_access_list(target.parent, access_list(mask=0o6), DEFAULT_ACL)
    target.chmod(0o640)
    with watched(monkeypatch) as seen:
        replace(target)
    assert target.read_bytes() == b"new"
    assert (rights(target)[0], access_list_of(target)) == (0o640, None)
    assert all(mode & ~0o640 == 0 for mode, _, _ in seen)
    replace(target.parent / "another.npy")
    assert access_list_of(target.parent / "another.npy") is not None


def test_where_the_list_cannot_be_kept_nothing_is_replaced(target, monkeypatch):
    value = access_list()
    set_access_list(target, value)

    def setxattr(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "setxattr", setxattr)
    with pytest.raises(PermissionError, match="its access list cannot be kept: Operation not supp"):
        with replacing(str(target), 3):
            pytest.fail("it began")
    assert (target.read_bytes(), access_list_of(target)) == (b"old", value)
    assert os.listdir(target.parent) == ["out.npy"]


@posix
def test_a_file_system_that_keeps_nothing_and_does_not_say(target, monkeypatch):
    target.chmod(0o640)
    monkeypatch.setattr(os, "fchmod", lambda *_: None)
    with pytest.raises(PermissionError, match="not replaced, for its permissions cannot be kept"):
        replace(target)
    assert target.read_bytes() == b"old" and os.listdir(target.parent) == ["out.npy"]


# ---------------------------------------------------------------- groups and owners


@posix
def test_a_group_of_ours_is_kept(target):
    others = [group for group in os.getgroups() if group != target.stat().st_gid]
    if os.geteuid() == 0:
        others.append(SOMEBODY)
    if not others:
        pytest.skip("a user of one group")
    os.chown(target, -1, others[0])
    target.chmod(0o640)
    before = rights(target)
    replace(target)
    assert target.read_bytes() == b"new" and rights(target) == before


@pytest.mark.process
class TestUsers:
    """A folder where everybody may write, and processes of two users in it."""

    ALICE, BOB, SHARED, PRIVATE = 20001, 20002, 20010, 20011

    @pytest.fixture
    def folder(self):
        folder = Path(tempfile.mkdtemp())  # whose parents let others through, unlike tmp_path's
        folder.chmod(0o777)
        yield folder
        shutil.rmtree(folder)

    def replaced_by(self, user, groups, path, *options):
        code = f"""
import os
from tilecore._cli.replacing import replacing
os.setgroups({groups})  # only now: others may not read this Python's folders
os.setgid({groups[0]})
os.setuid({user})
try:
    with replacing({str(path)!r}, 3, force={"force" in options}) as file:
        file.write(b"new")
except OSError as error:
    print(error)
"""
        return subprocess.check_output([sys.executable, "-c", code], cwd=path.parent, text=True)

    @pytest.fixture
    def target(self, folder):
        path = folder / "out.npy"
        path.write_bytes(b"old")
        path.chmod(0o660)
        os.chown(path, self.ALICE, self.SHARED)
        return path

    @pytest.mark.quick
    @root
    def test_root_keeps_owner_and_group(self, target, monkeypatch):
        before = rights(target)
        with watched(monkeypatch) as seen:
            replace(target)
        assert target.read_bytes() == b"new" and rights(target) == before
        assert all(not mode & 0o077 or group == self.SHARED for mode, group, _ in seen)

    @root
    def test_a_member_of_the_group_keeps_it(self, target):
        assert self.replaced_by(self.BOB, [self.PRIVATE, self.SHARED], target) == ""
        assert target.read_bytes() == b"new"
        assert rights(target) == (0o660, self.SHARED, self.BOB)

    @root
    def test_a_group_of_others_cannot_be_kept(self, target):
        target.chmod(0o666)
        shown = self.replaced_by(self.BOB, [self.PRIVATE], target)
        assert "not replaced, for its group cannot be kept: Operation not permitted" in shown
        assert target.read_bytes() == b"old"
        assert rights(target) == (0o666, self.SHARED, self.ALICE)
        assert os.listdir(target.parent) == ["out.npy"]

    @root
    def test_what_one_may_not_write_needs_force(self, target):
        target.chmod(0o640)
        groups = [self.PRIVATE, self.SHARED]
        assert "write-protected" in self.replaced_by(self.BOB, groups, target)
        assert target.read_bytes() == b"old"
        assert self.replaced_by(self.BOB, groups, target, "force") == ""
        assert rights(target) == (0o640, self.SHARED, self.BOB)

    @root
    def test_a_program_of_another_user_does_not_become_ours(self, target):
        target.chmod(0o4770)
        assert self.replaced_by(self.BOB, [self.SHARED], target) == ""
        assert rights(target) == (0o770, self.SHARED, self.BOB)

    @root
    def test_a_folder_that_one_may_write_and_not_read(self, target):
        target.parent.chmod(0o733)
        assert self.replaced_by(self.BOB, [self.SHARED], target) == ""
        assert target.read_bytes() == b"new"

    @root
    def test_a_folder_where_everybody_may_replace_their_own_alone(self, target):
        target.parent.chmod(0o1777)
        shown = self.replaced_by(self.BOB, [self.SHARED], target)
        assert shown == f"{target}: its owner alone may replace it in this folder\n"
        assert target.read_bytes() == b"old"
        assert self.replaced_by(self.ALICE, [self.SHARED], target) == ""
        assert target.read_bytes() == b"new"


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_signal_while_a_failure_is_cleaned_up(target, monkeypatch, end):
    """The unfinished file goes, though what closes it is ended by a signal's handler."""
    real = os.fdopen

    def fdopen(fd, mode):
        file = real(fd, mode)

        class Ended:
            write = file.write

            def close(self):
                file.close()
                raise end

        return Ended()

    monkeypatch.setattr(os, "fdopen", fdopen)
    with pytest.raises(end), replacing(str(target), 3):
        raise OSError("a full disk")
    assert [path.name for path in target.parent.iterdir()] == [target.name]
    assert target.read_bytes() == b"old"
