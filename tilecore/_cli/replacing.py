"""A file that is written whole or not at all, and stays as private as it was.

The result is written beside its place, under a hidden name, and renamed when all of it is on the
disk. Who may read or write a file is a matter of its owner, group, mode and access list together: the
new file gets all four, or the old one stays.

    0600, our own group          while it is written
    the old file's group         it has no rights yet
    the access list, the mode    rights, all at once
    the old file's owner         where we may give files away: else it is ours, as after `mv`

So at no moment may anybody do more with it than with the file that it replaces. That all this can be
had is tried before the first byte is written. Bits that lend the owner's or the group's rights to who
runs the file (setuid, setgid) were meant for the old content, and go.

The folder is opened once, and every file in it by its name in that folder: nobody can put another
in the way by renaming. Windows has neither that nor such rights; there the files have their full names.
"""

import errno
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from secrets import token_hex
from typing import BinaryIO, NamedTuple

from tilecore._cli.errors import named
from tilecore._cli.npy import refuse_special
from tilecore._cli.units import with_unit

FOLDERS_HAVE_DESCRIPTORS = os.open in os.supports_dir_fd
ACCESS_LIST = "system.posix_acl_access"
NO_ACCESS_LIST = (errno.ENODATA, errno.ENOTSUP) if sys.platform == "linux" else ()
LENT_RIGHTS = stat.S_ISUID | stat.S_ISGID


class Access(NamedTuple):
    """Who may do what with a file."""

    mode: int
    group: int
    access_list: bytes | None
    owner: int


@contextmanager
def replacing(
    path: str, nbytes: int, source: os.stat_result | None = None, force: bool = False
) -> Iterator[BinaryIO]:
    """A file to be written, that takes the place of `path` if all goes well.

    Parameters
    ----------
    nbytes : how many bytes are going to be written
    source : of the file that is being read, which must not be this one
    force : whether a file that is write-protected may be replaced
    """
    with _place(path) as place:
        before = place.access(source, force)
        place.refuse_too_large(nbytes)
        temporary = f"{place.prefix}.tilecore-{token_hex(8)}.part"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        file = None
        try:
            with named(path):
                # A new file is as the process' umask, or the folder's default list, will have it.
                mode = 0o666 if before is None else 0o600
                fd = os.open(temporary, flags, mode, dir_fd=place.folder)
            file = os.fdopen(fd, "wb")
            if before is not None:
                _give(path, fd, before)
                _close_off(fd)
            with named(path):
                _make_room(fd, nbytes)
            yield file
            with named(path):
                file.flush()
            # As it is now: it may have been changed, or made, or deleted, meanwhile.
            before = place.access(source, force) or before
            if before is not None:
                _give(path, fd, before)
            with named(path):
                os.fsync(fd)
                place.refuse_other(temporary, fd)
                file.close()  # Windows renames no open file
                os.replace(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
                place.sync()
        finally:
            try:
                if file is not None:
                    with suppress(OSError):  # what it could not write is told already
                        file.close()
            finally:  # a signal may end the closing too
                with suppress(FileNotFoundError):  # renamed
                    os.unlink(temporary, dir_fd=place.folder)


# ---------------------------------------------------------------- where it lies


class Place(NamedTuple):
    """A file's folder, held open, and the file's name in it."""

    path: str  # as the user has it
    folder: int | None
    folder_path: str
    prefix: str  # of names in the folder
    name: str

    def access(self, source: os.stat_result | None, force: bool) -> Access | None:
        """Of the file that is there, if it may be replaced; None where there is none."""
        if sys.platform != "linux":
            try:
                status = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
            except FileNotFoundError:
                return None
            self._refuse(status, source, force)
            return _access(None, status)
        try:
            # No right to read the file is needed for this.
            fd = os.open(self.name, os.O_PATH | os.O_NOFOLLOW, dir_fd=self.folder)
        except FileNotFoundError:
            return None
        try:
            status = os.fstat(fd)
            self._refuse(status, source, force)
            try:
                return _access(f"/proc/self/fd/{fd}", status)
            except OSError as error:
                raise _not_kept(self.path, "access list", error) from None
        finally:
            os.close(fd)

    def _refuse(self, status: os.stat_result, source: os.stat_result | None, force: bool) -> None:
        refuse_special(self.path, status)
        if source is not None and os.path.samestat(status, source):
            raise ValueError(f"{self.path}: the input and the output are the same file")
        # Root may write whatever is protected; that it is, tells that somebody wants it kept.
        writable = status.st_mode & 0o222 and os.access(
            self.name,
            os.W_OK,
            dir_fd=self.folder,
            effective_ids=os.access in os.supports_effective_ids,
        )
        if not writable and not force:
            raise PermissionError(f"{self.path}: write-protected; --force replaces it all the same")
        if self.folder is not None:
            folder = os.fstat(self.folder)
            ours = os.geteuid() in (0, status.st_uid, folder.st_uid)
            if folder.st_mode & stat.S_ISVTX and not ours:  # the system would tell in the end
                raise PermissionError(f"{self.path}: its owner alone may replace it in this folder")

    def refuse_too_large(self, nbytes: int) -> None:
        disk = shutil.disk_usage(self.folder_path if self.folder is None else self.folder)
        if nbytes > disk.free and disk.total > 0:  # some network file systems do not tell
            needed, free = with_unit(nbytes, "B"), with_unit(disk.free, "B")
            raise OSError(f"{self.path}: takes {needed}, and {free} are free on its disk")

    def refuse_other(self, temporary: str, fd: int) -> None:
        try:
            status = os.stat(temporary, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            status = None
        if status is None or not os.path.samestat(status, os.fstat(fd)):
            raise OSError(f"{self.path}: its unfinished file was taken away meanwhile")

    def sync(self) -> None:
        """The new name, on the disk too. Windows does that by itself."""
        if self.folder is not None:
            try:
                os.fsync(self.folder)
            except OSError as error:
                # A folder that we may not read, or a file system that has nothing to sync.
                if error.errno not in (errno.EBADF, errno.EINVAL, errno.ENOTSUP):
                    raise


@contextmanager
def _place(path: str) -> Iterator[Place]:
    resolved = os.path.realpath(path) if os.path.islink(path) else path  # a link stays one
    if os.path.islink(resolved):
        raise OSError(f"{path}: links that go round in a circle")
    parent, name = os.path.split(resolved)
    parent = parent or os.curdir
    if not name:
        raise ValueError(f"{path or repr(path)}: expected a regular file")
    if not os.path.isdir(parent):
        raise FileNotFoundError(f"{parent}: no such folder")
    if not FOLDERS_HAVE_DESCRIPTORS:
        yield Place(path, None, parent, os.path.join(parent, ""), resolved)
        return
    try:
        folder = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        if not hasattr(os, "O_PATH"):
            raise
        folder = os.open(parent, os.O_PATH | os.O_DIRECTORY)  # a drop box: written, not read
    try:
        yield Place(path, folder, parent, "", name)
    finally:
        os.close(folder)


def _make_room(fd: int, nbytes: int) -> None:
    """A full disk tells now; and to write into room that is there takes half as long."""
    if hasattr(os, "posix_fallocate") and nbytes:
        try:
            os.posix_fallocate(fd, 0, nbytes)
        except OSError as error:
            # Not every file system can. EINVAL is ZFS's word, and also of sizes beyond all files.
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise


# ---------------------------------------------------------------- who may do what with it


def _access(file: str | int | None, status: os.stat_result) -> Access:
    access_list = None
    if sys.platform == "linux" and file is not None:
        try:
            access_list = os.getxattr(file, ACCESS_LIST)
        except OSError as error:
            if error.errno not in NO_ACCESS_LIST:
                raise
    mode = stat.S_IMODE(status.st_mode) & ~LENT_RIGHTS
    return Access(mode, status.st_gid, access_list, status.st_uid)


def _give(path: str, fd: int, access: Access) -> None:
    """The rights of `access` to a file that has none yet but its owner's; an error where that fails."""
    if not hasattr(os, "fchown"):  # Windows
        return
    what = "permissions"
    try:
        _close_off(fd)
        status = os.fstat(fd)
        if status.st_gid != access.group:
            what = "group"
            os.fchown(fd, -1, access.group)
        if sys.platform == "linux":
            what = "access list"
            if access.access_list is not None:
                os.setxattr(fd, ACCESS_LIST, access.access_list)
            else:
                _remove_access_list(fd)
        what = "permissions"
        os.fchmod(fd, access.mode)
        if status.st_uid != access.owner:
            try:
                os.fchown(fd, access.owner, -1)
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.EINVAL):  # not allowed; nobody we know
                    raise
        # Some file systems take all of it and do nothing.
        if _access(fd, os.fstat(fd))[:3] != access[:3]:
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    except OSError as error:
        raise _not_kept(path, what, error) from None


def _close_off(fd: int) -> None:
    if hasattr(os, "fchmod"):
        os.fchmod(fd, 0o600)  # of an access list too, for this sets its mask


def _remove_access_list(fd: int) -> None:
    """That of the folder's default, which no file had that was made before the default."""
    try:
        os.removexattr(fd, ACCESS_LIST)
    except OSError as error:
        if error.errno not in NO_ACCESS_LIST:
            raise


def _not_kept(path: str, what: str, error: OSError) -> OSError:
    why = error.strerror or str(error)
    return PermissionError(f"{path}: not replaced, for its {what} cannot be kept: {why}")
