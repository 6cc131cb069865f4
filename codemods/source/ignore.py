"""Patterns in the syntax of ``.gitignore``, read without running git: a scanned repository is not trusted."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

_NAME = ".gitignore"
_ESCAPE = re.compile(r"\\(.)")


class Patterns:
    """Patterns that refer to one folder; the last one that matches a path decides."""

    def __init__(self, folder: Path, lines: Iterable[str]) -> None:
        self._folder = _parts(folder)
        self._patterns = [pattern for pattern in map(_parse, lines) if pattern is not None]
        self._patterns.reverse()
        # Most patterns are names for any folder, and most files have none of them: one search finds out.
        self._others = [pattern for pattern in self._patterns if pattern.name is None]
        names = [pattern.name for pattern in self._patterns if pattern.name is not None]
        self._any_name = re.compile("|".join(names)) if names else None

    def verdict(self, path: str | Path, is_folder: bool) -> bool | None:
        """Whether a path is meant, by itself and not by a folder around it; None if no pattern speaks of it.

        Patterns without a folder also hold for paths elsewhere.
        """
        return self._verdict(self._relative(path), is_folder)

    def cover(self, path: str | Path, is_folder: bool) -> bool:
        """Whether a path or a folder around it is meant."""
        parts = self._relative(path)
        return any(self._verdict(parts[:end], is_folder or end < len(parts)) for end in range(1, len(parts) + 1))

    def _relative(self, path: str | Path) -> list[str]:
        parts = _parts(path)
        depth = len(self._folder)
        return parts[depth:] if parts[:depth] == self._folder else parts

    def _verdict(self, parts: list[str], is_folder: bool) -> bool | None:
        is_name = self._any_name is not None and bool(parts) and self._any_name.match(parts[-1]) is not None
        for pattern in self._patterns if is_name else self._others:
            if (is_folder or not pattern.folders_only) and pattern.match(parts):
                return pattern.takes
        return None


class Ignored:
    """What the ``.gitignore`` files from the repository's root down to a folder say."""

    def __init__(self, levels: tuple[Patterns, ...] = ()) -> None:
        self._levels = levels

    @classmethod
    def above(cls, folder: Path) -> Ignored:
        """The files above a folder, up to its repository's root; none of them if they ignore the folder itself."""
        start = Path(os.path.abspath(folder))  # noqa: PTH100 (Path.resolve would follow links)
        repository = next((parent for parent in (start, *start.parents) if (parent / ".git").exists()), start)
        above = [parent for parent in reversed((start, *start.parents)) if parent.is_relative_to(repository)]
        ignored = cls()
        for parent, child in pairwise(above):
            ignored = ignored.within(parent)
            if ignored.ignores(child, True):
                return cls()
        return ignored

    def within(self, folder: Path) -> Ignored:
        """The same and what the folder's own file says."""
        file = folder / _NAME
        # Git does not follow a linked file either, and what is no regular file could block the reader.
        if file.is_symlink() or not file.is_file():
            return self
        try:
            text = file.read_bytes().removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
        except OSError:
            return self
        return Ignored((*self._levels, Patterns(folder, text.split("\n"))))

    def ignores(self, path: str | Path, is_folder: bool) -> bool:
        """Whether a path is ignored; its folder must not be."""
        for patterns in reversed(self._levels):
            verdict = patterns.verdict(path, is_folder)
            if verdict is not None:
                return verdict
        return False


@dataclass(frozen=True)
class _Pattern:
    takes: bool
    """False for a pattern that takes back (``!``)."""
    folders_only: bool
    segments: tuple[re.Pattern[str] | None, ...]
    """One for each part of a path; None for ``**``, which stands for any number of parts."""

    @property
    def name(self) -> str | None:
        """What the last part of a path has to match, if nothing else is asked of it."""
        if len(self.segments) != 2 or self.segments[0] is not None or self.segments[1] is None:
            return None
        return self.segments[1].pattern

    def match(self, parts: list[str]) -> bool:
        # All places in the path that the segments so far can lead to: linear, whatever the pattern.
        places = {0}
        for number, segment in enumerate(self.segments, 1):
            if segment is None:
                inside = number == len(self.segments)  # `folder/**` is not the folder itself
                places = set(range(min(places) + inside, len(parts) + 1))
            else:
                places = {place + 1 for place in places if place < len(parts) and segment.match(parts[place])}
            if not places:
                return False
        return len(parts) in places


def _parse(line: str) -> _Pattern | None:
    """The pattern on a line, None if there is none or git passes over it."""
    line = line.rstrip("\r")
    while line.endswith(" ") and not line.endswith("\\ "):
        line = line[:-1]
    if line.startswith("#"):
        return None
    takes = not line.startswith("!")
    body = line.removeprefix("!")
    path = body.rstrip("/")
    if not path or path.endswith("\\"):
        return None
    parts = path.lstrip("/").split("/")
    if "/" not in path:
        parts.insert(0, "**")
    try:
        return _Pattern(takes, body != path, tuple(None if part == "**" else _segment(part) for part in parts))
    except re.error:
        return None


def _segment(text: str) -> re.Pattern[str]:
    text = _ESCAPE.sub(lambda match: f"[{match[1]}]" if match[1] in "*?[" else match[1], text)
    return re.compile(fnmatch.translate(text.replace("[^", "[!")))


def _parts(path: str | Path) -> list[str]:
    absolute = os.path.abspath(path)  # noqa: PTH100 (Path.resolve would follow links)
    return [part for part in absolute.split(os.sep) if part]  # noqa: PTH206 (half the time)
