"""Writing a file whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from codemods.source.document import SourceError

_ANY_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def write_atomically(path: Path, data: bytes) -> None:
    """Gives a file this content; whatever goes wrong, the old content stays whole and nothing is left behind.

    An existing file keeps its mode and, where the user may set it, its owner. A hard link is cut from its other names.

    Raises:
        SourceError: the target is read-only, a link or no regular file, or the system refuses to write
    """
    old = _existing(path)
    temporary = path.with_name(f".uncuda-{os.urandom(8).hex()}.tmp")
    try:
        _write_new(temporary, data, 0o666 if old is None else 0o600)
        if old is not None:
            _take_over(temporary, old)
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise SourceError(path, _reason(error)) from None
        raise
    _sync_folder(path.parent)


def _existing(path: Path) -> os.stat_result | None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SourceError(path, _reason(error)) from None
    if stat.S_ISLNK(status.st_mode):
        raise SourceError(path, "is a symbolic link and was not written; name the file that it points to")
    if not stat.S_ISREG(status.st_mode):
        raise SourceError(path, "is not a regular file and was not written")
    # The mode is looked at as well: `os.access` lets root write everywhere.
    if not status.st_mode & _ANY_WRITE or not os.access(path, os.W_OK):
        raise SourceError(path, "is read-only and was not written; make it writable first (chmod u+w)")
    return status


def _write_new(path: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _take_over(path: Path, old: os.stat_result) -> None:
    """Gives a new file the owner, the group and then the mode of the old one: a new owner clears some of the mode."""
    new = path.stat()
    if new.st_uid != old.st_uid:
        with contextlib.suppress(PermissionError):
            os.chown(path, old.st_uid, -1)
    if new.st_gid != old.st_gid:
        with contextlib.suppress(PermissionError):
            os.chown(path, -1, old.st_gid)
    path.chmod(stat.S_IMODE(old.st_mode))


def _sync_folder(folder: Path) -> None:
    """Makes the rename last; the content is safe already, so that a system that cannot do it is no error."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _reason(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "was not written: no space left on the device"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "was not written: its folder is read-only"
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return "was not written: its folder does not exist"
    return f"was not written: {(error.strerror or str(error)).lower()}"
