"""What a report is made of, before it is a page or Markdown. Every string in it is text, never markup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from codemods.report.migration import Figures, Step


class PathText(str):
    """A path, or a place in a file."""

    __slots__ = ()


class CodeText(str):
    """A line or word of code."""

    __slots__ = ()


@dataclass(frozen=True)
class Paragraph:
    """Text of some sentences."""

    text: str
    soft: bool = False
    """Whether it is less important than what is around it."""


@dataclass(frozen=True)
class Table:
    """Rows of text."""

    columns: tuple[str, ...]
    """A name that begins with ``#`` is that of a column of figures."""
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Bars:
    """Figures beside each other, each row with what it is of."""

    heading: str
    rows: Sequence[tuple[str, Figures]]


@dataclass(frozen=True)
class Steps:
    """A list to work through from the first to the last."""

    steps: Sequence[Step]


@dataclass(frozen=True)
class Fold:
    """Something with a title that can be folded away."""

    title: str
    aside: str
    """How much is in it, in a few words."""
    blocks: Sequence[Block]
    is_open: bool
    figures: Figures | None = None
    """What became of the places in it."""


@dataclass(frozen=True)
class Heading:
    """The title of a part of a section."""

    text: str


Block: TypeAlias = "Paragraph | Table | Bars | Steps | Fold | Heading"


@dataclass(frozen=True)
class Section:
    """A part of the report."""

    anchor: str
    """Unique in the report: links go there."""
    title: str
    short: str
    """The title where there is little room."""
    blocks: Sequence[Block]
