"""Which files of the given paths are looked at, and why the others are not."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from codemods.source.ignore import Ignored, Patterns

Kind = Literal["python", "notebook", "cuda-source", "other"]

SKIPPED_FOLDERS = {
    **dict.fromkeys((".git", ".hg", ".svn", ".bzr"), "version control"),
    **dict.fromkeys((".venv", "venv", "site-packages"), "virtual environment"),
    **dict.fromkeys((".tox", ".nox", ".eggs", "node_modules"), "installed packages"),
    **dict.fromkeys(
        (
            "__pycache__",
            ".mypy_cache",
            ".pytest_cache",
            ".ruff_cache",
            ".uncuda_cache",
            ".hypothesis",
            ".ipynb_checkpoints",
        ),
        "cache",
    ),
    **dict.fromkeys(("build", "dist"), "build output"),
    **dict.fromkeys(
        ("third_party", "third-party", "thirdparty", "3rdparty", "vendor", "vendored", "_vendor"), "vendored code"
    ),
    **dict.fromkeys(("extern", "external", "externals"), "vendored code"),
}
"""Folders that are not entered unless they are named, each with what it is taken for."""

_BUILD_OUTPUT = ("build", "dist")
_KINDS: dict[str, Kind] = {
    ".py": "python",
    ".pyi": "python",
    ".pyw": "python",
    ".ipynb": "notebook",
    ".cu": "cuda-source",
    ".cuh": "cuda-source",
}
_PYTHON_SHEBANG = re.compile(rb"#![^\r\n]*\bpython[\d.]*\b")


@dataclass(frozen=True)
class Found:
    """A file to look at."""

    path: Path
    root: Path
    """The folder that was walked to find it; the folder that holds it where the file itself was named."""
    kind: Kind


@dataclass(frozen=True)
class Skipped:
    """A file or folder that is not looked at."""

    path: Path
    reason: str
    """One line for the user."""
    failed: bool = False
    """Whether something asked for could not be done: the run then ends with exit code 2."""


def discover(
    paths: Sequence[Path],
    exclude: Sequence[str] = (),
    exclude_root: Path | None = None,
    unsaved: Container[Path] = (),
) -> Iterator[Found | Skipped]:
    """The files at and below paths, in the order of the paths and, within a folder, of the names; each file once.

    Folders are walked without following links and without what the repository's ``.gitignore`` files leave out and the
    ``SKIPPED_FOLDERS``. A path that is given itself is not subject to these.

    Args:
        paths: files and folders; none means nothing
        exclude: patterns in the syntax of ``.gitignore``; they hold for given paths as well
        exclude_root: the folder that the patterns refer to; the working directory unless given
        unsaved: those of the paths whose content is at hand; they need not exist
    """
    excluded = Patterns(exclude_root or Path.cwd(), exclude) if exclude else None
    walk = _Walk(excluded)
    for path in paths:
        yield from walk.unsaved(path) if path in unsaved else walk.given(path)


def repository_root(path: Path) -> Path:
    """The repository around a path: the nearest folder with version control, else with packaging, else its own."""
    folder = Path(_absolute(path))
    if not folder.is_dir():
        folder = folder.parent
    above = [folder, *folder.parents]
    for markers in ((".git", ".hg"), ("pyproject.toml", "setup.py", "setup.cfg")):
        for candidate in above:
            if any((candidate / marker).exists() for marker in markers):
                return candidate
    return folder


class _Walk:
    """One run over several paths."""

    def __init__(self, excluded: Patterns | None) -> None:
        self._excluded = excluded
        self._seen: set[str] = set()

    def given(self, path: Path) -> Iterator[Found | Skipped]:
        """What is at a path that the user named."""
        try:
            status = path.lstat()
            linked = stat.S_ISLNK(status.st_mode)
            if linked:
                status = path.stat()
        except OSError as error:
            yield Skipped(path, _unreachable(error), failed=True)
            return
        is_folder = stat.S_ISDIR(status.st_mode)
        if self._is_excluded(os.fspath(path), is_folder):
            yield Skipped(path, "excluded")
        elif is_folder:
            yield from self._below(path)
        elif linked:
            yield Skipped(path, f"a symbolic link; name the file itself: {os.path.realpath(path)}")
        elif not stat.S_ISREG(status.st_mode):
            yield Skipped(path, "not a regular file", failed=True)
        elif self._is_new(path):
            yield Found(path, path.parent, _KINDS.get(path.suffix) or _kind_by_first_line(path))

    def unsaved(self, path: Path) -> Iterator[Found | Skipped]:
        """A file that the user named, and whose content comes from elsewhere; Python unless its name says otherwise."""
        if self._is_excluded(os.fspath(path), False):
            yield Skipped(path, "excluded")
        elif self._is_new(path):
            yield Found(path, path.parent, _KINDS.get(path.suffix, "python"))

    def _below(self, root: Path) -> Iterator[Found | Skipped]:
        # A stack of its own, since folders can be nested deeper than Python may call.
        stack = [self._entries(root, root, Ignored.above(root))]
        while stack:
            item = next(stack[-1], None)
            if item is None:
                stack.pop()
            elif isinstance(item, _Folder):
                stack.append(self._entries(item.path, root, item.ignored))
            else:
                yield item

    def _entries(self, folder: Path, root: Path, ignored: Ignored) -> Iterator[Found | Skipped | _Folder]:
        if not self._is_new(folder):
            return
        try:
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            yield Skipped(folder, _unreachable(error), failed=True)
            return
        ignored = ignored.within(folder)
        for entry in entries:
            if entry.is_symlink():
                yield _link(entry, root)
            elif entry.is_dir(follow_symlinks=False):
                reason = self._reason_against(entry, ignored)
                yield Skipped(folder / entry.name, reason) if reason else _Folder(folder / entry.name, ignored)
            else:
                yield from self._file(entry, folder, root, ignored)

    def _reason_against(self, entry: os.DirEntry[str], ignored: Ignored) -> str | None:
        """Why a folder is not entered."""
        if entry.name in SKIPPED_FOLDERS and not _is_source_package(entry):
            return SKIPPED_FOLDERS[entry.name]
        if self._is_excluded(entry.path, True):
            return "excluded"
        if os.path.lexists(os.path.join(entry.path, "pyvenv.cfg")):  # noqa: PTH118 (a Path for each folder would cost)
            return "virtual environment"
        if ignored.ignores(entry.path, True):
            return "ignored by git"
        return None

    def _file(self, entry: os.DirEntry[str], folder: Path, root: Path, ignored: Ignored) -> Iterator[Found | Skipped]:
        path = folder / entry.name
        kind = _KINDS.get(path.suffix, "other")
        if not entry.is_file(follow_symlinks=False):
            yield Skipped(path, "not a regular file")
        elif self._is_excluded(entry.path, False):
            yield Skipped(path, "excluded")
        elif ignored.ignores(entry.path, False):
            # Ignored data and logs can be many and are nobody's source.
            if kind != "other":
                yield Skipped(path, "ignored by git")
        elif self._is_new(path):
            yield Found(path, root, kind)

    def _is_excluded(self, path: str, is_folder: bool) -> bool:
        return self._excluded is not None and self._excluded.cover(path, is_folder)

    def _is_new(self, path: Path) -> bool:
        key = _absolute(path)
        if key in self._seen:
            return False
        self._seen.add(key)
        return True


@dataclass(frozen=True)
class _Folder:
    path: Path
    ignored: Ignored


def _is_source_package(entry: os.DirEntry[str]) -> bool:
    """Whether a folder with the name of build output is a package of the project (``dist`` as in distributed)."""
    return entry.name in _BUILD_OUTPUT and os.path.lexists(os.path.join(entry.path, "__init__.py"))  # noqa: PTH118


def _link(entry: os.DirEntry[str], root: Path) -> Skipped:
    path = Path(entry.path)
    try:
        path.stat()
    except OSError as error:
        # Links to data that this machine lacks are usual and no loss: only a source file is missed.
        return Skipped(path, _unreachable(error), failed=path.suffix in _KINDS)
    target = Path(os.path.realpath(path))
    inside = target.is_relative_to(os.path.realpath(root))
    return Skipped(path, "symbolic link within the tree" if inside else f"symbolic link out of the tree, to {target}")


def _unreachable(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "symbolic link that leads to itself"
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return "does not exist, or is a symbolic link to nothing"
    return f"cannot be read: {(error.strerror or str(error)).lower()}"


def _kind_by_first_line(path: Path) -> Kind:
    if path.suffix:
        return "other"
    try:
        with path.open("rb") as file:
            start = file.read(256)
    except OSError:
        return "other"
    return "python" if _PYTHON_SHEBANG.match(start) else "other"


def _absolute(path: Path) -> str:
    return os.path.abspath(path)  # noqa: PTH100 (Path.resolve would follow links)
