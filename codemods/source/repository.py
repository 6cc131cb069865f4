"""A repository's files: found once and read once, however many parts of the tool look at them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from codemods.source.discovery import Found, Skipped, discover


class Repository:
    """The files below a folder, without what its ``.gitignore`` files leave out."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._contents: dict[Path, bytes] = {}

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
        return self._files("python")

    def settings_files(self) -> Iterator[tuple[Path, bytes]]:
        """The configuration files that can be read, with their bytes."""
        return self._files("settings")

    def _files(self, kind: str) -> Iterator[tuple[Path, bytes]]:
        for item in self.items:
            if isinstance(item, Found) and item.kind == kind:
                try:
                    yield item.path, self.read(item.path)
                except OSError:
                    continue  # it is reported where it was asked for
