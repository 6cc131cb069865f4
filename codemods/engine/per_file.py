"""Rules that are left out in some files: ``per-file-ignores`` of the settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from codemods.source.ignore import Patterns

PerFile = tuple[tuple[str, tuple[str, ...]], ...]
"""Patterns as in ``.gitignore``, each with codes of rules, or their beginnings."""


class PerFileIgnores:
    """Tells which rules are left out in a file."""

    def __init__(self, entries: Sequence[tuple[str, tuple[str, ...]]], root: Path | None) -> None:
        """``root`` is the folder that the patterns refer to; the working directory unless given."""
        self._entries = [(Patterns(root or Path.cwd(), [pattern]), codes) for pattern, codes in entries]

    def ignored_in(self, path: Path) -> tuple[str, ...]:
        """The codes of all patterns that a path matches."""
        return tuple(code for patterns, codes in self._entries if patterns.cover(path, False) for code in codes)
