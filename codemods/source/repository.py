"""A repository's files: found once and read once, however many parts of the tool look at them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

from codemods.source.discovery import Found, Skipped, discover
from codemods.source.facts import Facts

_SETTINGS = {".yaml", ".yml", ".json", ".toml"}
_LARGEST_SETTINGS = 1 << 20
"""Bytes of the largest file that is taken for configuration; what is larger is data."""


class Repository:
    """The files below a folder, without what its ``.gitignore`` files leave out."""

    def __init__(self, root: Path, facts: Facts | None = None, unsaved: Mapping[Path, bytes] | None = None) -> None:
        """``unsaved`` holds contents that count instead of those on disk."""
        self.root = root
        self.facts = facts or Facts()
        self._contents: dict[Path, bytes] = dict(unsaved or {})

    @cached_property
    def items(self) -> tuple[Found | Skipped, ...]:
        """Everything that a walk finds, in its order."""
        return tuple(discover([self.root]))

    def read(self, path: Path) -> bytes:
        """The content of a file.

        Raises:
            OSError: it cannot be read
        """
        if path not in self._contents:
            self._contents[path] = path.read_bytes()
        return self._contents[path]

    def python_files(self) -> Iterator[tuple[Path, bytes]]:
        """The Python files that can be read, with their bytes."""
        return self._contents_of(item.path for item in self.items if isinstance(item, Found) and item.kind == "python")

    def settings_files(self) -> Iterator[tuple[Path, bytes]]:
        """The configuration files that can be read, with their bytes."""
        found = (item.path for item in self.items if isinstance(item, Found))
        return self._contents_of(path for path in found if path.suffix in _SETTINGS and _is_small(path))

    def _contents_of(self, paths: Iterable[Path]) -> Iterator[tuple[Path, bytes]]:
        for path in paths:
            try:
                yield path, self.read(path)
            except OSError:
                continue  # it is reported where it was asked for


def _is_small(path: Path) -> bool:
    try:
        return path.stat().st_size <= _LARGEST_SETTINGS
    except OSError:
        return False
