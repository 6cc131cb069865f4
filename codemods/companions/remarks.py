"""What the readers of all kinds of files give: remarks, and what they may know of the repository's Python."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from codemods.catalogue import load_catalogue
from codemods.findings import Finding, Tier


@dataclass(frozen=True)
class Knowledge:
    """What the Python of a repository says of the files beside it; empty where nothing is known."""

    device_settings: frozenset[str] = frozenset()
    """Settings and flags whose values provably reach a converted place: their names, or dotted paths, in lower case
    with ``_`` for ``-``."""
    modules: frozenset[str] = frozenset()
    """Top-level modules of the repository, as ``python -m`` names them."""
    commands: frozenset[str] = frozenset()
    """Commands that the repository installs."""

    def is_mapped(self, path: Iterable[str]) -> bool:
        """Whether the value of a setting, given by its path, reaches a converted place."""
        parts = ".".join(path).lower().replace("-", "_").split(".")
        return any(".".join(parts[start:]) in self.device_settings for start in range(len(parts)))


_LONG = 120
"""A detail of more characters is given once in a file."""
NOTHING_KNOWN = Knowledge()


@dataclass(frozen=True, order=True)
class Remark:
    """A place in a text that a rule speaks of."""

    start: int
    """In characters of the text, as is ``end``."""
    end: int
    rule: str
    detail: str = ""
    """What the rule's message is followed by."""
    tier: Tier | None = None
    """Where it is not the rule's own."""


def findings_of(text: str, remarks: Iterable[Remark]) -> tuple[Finding, ...]:
    """The findings of remarks on a text, in its order; each place and rule once."""
    lines = _Lines(text)
    once = {(remark.start, remark.rule): remark for remark in remarks}
    first: dict[str, int] = {}
    return tuple(_finding(once[key], lines, first) for key in sorted(once))


def _finding(remark: Remark, lines: _Lines, first: dict[str, int]) -> Finding:
    rule = load_catalogue()[remark.rule]
    line, column = lines.position(remark.start)
    detail = remark.detail
    if len(detail) > _LONG and first.setdefault(detail, line) != line:
        detail = f"as in line {first[detail]}"
    return Finding(
        rule=remark.rule,
        tier=rule.tier if remark.tier is None else remark.tier,
        message=f"{rule.message}: {detail}" if detail else rule.message,
        start=lines.bytes_before(remark.start),
        end=lines.bytes_before(remark.end),
        line=line,
        column=column,
    )


class _Lines:
    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0]
        self._starts += (at + 1 for at, character in enumerate(text) if character == "\n")

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, both from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def bytes_before(self, offset: int) -> int:
        """Bytes of UTF-8 before a character."""
        if self._text.isascii():
            return offset
        line = bisect_right(self._starts, offset) - 1
        return self._byte_starts[line] + len(self._text[self._starts[line] : offset].encode())

    @cached_property
    def _byte_starts(self) -> list[int]:
        return [0, *accumulate(len(line.encode()) + 1 for line in self._text.split("\n"))]
