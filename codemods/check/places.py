"""Positions in a document, as editors and reports count them."""

from __future__ import annotations

from typing import NamedTuple

from codemods.analysis.positions import Lines
from codemods.source.document import Document


class Point(NamedTuple):
    """A position in a text."""

    line: int
    """From 1."""
    column: int
    """From 1, in characters."""
    offset: int
    """In bytes of the UTF-8 text."""


class Places:
    """The positions of one document."""

    def __init__(self, document: Document) -> None:
        self._utf8 = document.utf8
        self._lines = Lines(document.utf8)

    def at(self, offset: int) -> Point:
        """The position of a byte."""
        line, column = self._lines.position(offset)
        return Point(line, len(self._utf8[offset - column : offset].decode()) + 1, offset)

    def line(self, number: int) -> str:
        """A line, from 1, without its end."""
        starts = [*self._lines.starts[number - 1 : number + 1], len(self._utf8)]
        return self._utf8[starts[0] : starts[1]].decode().rstrip("\r\n")
