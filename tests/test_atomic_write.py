from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codemods.source.atomic import write_atomically
from codemods.source.document import SourceError


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_bytes(b"old")
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def test_writes_all_bytes_and_leaves_nothing_else(target: Path) -> None:
    data = b"\r\nx\n" * 500_000
    write_atomically(target, data)
    assert target.read_bytes() == data
    assert names(target.parent) == ["net.py"]


def test_goes_on_after_a_short_write(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    write_atomically(target, b"0123456789")
    assert target.read_bytes() == b"0123456789"


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o775, 0o200])
def test_keeps_the_mode(target: Path, mode: int) -> None:
    target.chmod(mode)
    write_atomically(target, b"new")
    assert stat.S_IMODE(target.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_keeps_the_owner(target: Path) -> None:
    os.chown(target, 1234, 4321)
    target.chmod(0o755)
    write_atomically(target, b"new")
    status = target.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 4321, 0o755)


def test_an_owner_that_may_not_be_set_is_no_error(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = target.lstat()
    foreign = os.stat_result([*status[:4], status.st_uid + 1, status.st_gid + 1, *status[6:10]])
    monkeypatch.setattr(Path, "lstat", lambda self: foreign)
    monkeypatch.setattr(os, "chown", failing(errno.EPERM))
    write_atomically(target, b"new")
    monkeypatch.undo()
    assert target.read_bytes() == b"new"


def test_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    usual = tmp_path / "usual.py"
    usual.touch()
    write_atomically(tmp_path / "ai_device.py", b"new")
    assert (tmp_path / "ai_device.py").stat().st_mode == usual.stat().st_mode
    assert (tmp_path / "ai_device.py").read_bytes() == b"new"


@pytest.mark.parametrize("function", ["write", "fsync", "open"])
@pytest.mark.parametrize(
    ("number", "part"),
    [(errno.ENOSPC, "no space left"), (errno.EACCES, "folder is read-only"), (errno.EIO, "input/output error")],
)
def test_a_failure_leaves_the_old_content(
    target: Path, monkeypatch: pytest.MonkeyPatch, function: str, number: int, part: str
) -> None:
    monkeypatch.setattr(os, function, failing(number))
    with pytest.raises(SourceError, match=part) as caught:
        write_atomically(target, b"new")
    monkeypatch.undo()
    assert caught.value.path == target
    assert target.read_bytes() == b"old"
    assert names(target.parent) == ["net.py"]


@pytest.mark.parametrize("function", ["replace", "chmod"])
def test_a_failure_at_the_last_step_leaves_nothing_behind(
    target: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    monkeypatch.setattr(Path, function, failing(errno.EBUSY))
    with pytest.raises(SourceError, match="busy"):
        write_atomically(target, b"new")
    monkeypatch.undo()
    assert target.read_bytes() == b"old"
    assert names(target.parent) == ["net.py"]


def test_an_interrupt_leaves_the_old_content(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(target, b"new")
    assert target.read_bytes() == b"old"
    assert names(target.parent) == ["net.py"]


@pytest.mark.parametrize("mode", [0o444, 0o555, 0o400])
def test_a_read_only_file_is_refused_also_for_root(target: Path, mode: int) -> None:
    target.chmod(mode)
    with pytest.raises(SourceError, match="read-only"):
        write_atomically(target, b"new")
    assert target.read_bytes() == b"old"


def test_links_are_not_written_through(target: Path) -> None:
    link = target.with_name("link.py")
    link.symlink_to(target)
    with pytest.raises(SourceError, match="symbolic link"):
        write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"old"


def test_a_broken_link_is_not_replaced(tmp_path: Path) -> None:
    link = tmp_path / "link.py"
    link.symlink_to("nowhere")
    with pytest.raises(SourceError, match="symbolic link"):
        write_atomically(link, b"new")
    assert names(tmp_path) == ["link.py"]


def test_only_regular_files_are_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    for name in ("pipe.py", "."):
        with pytest.raises(SourceError, match="not a regular file"):
            write_atomically(tmp_path / name, b"new")


def test_the_folder_must_exist(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="folder does not exist"):
        write_atomically(tmp_path / "no" / "net.py", b"new")
