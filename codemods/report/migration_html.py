"""The report for a project lead as one page. It is read without its script, which only filters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import singledispatch
from typing import NamedTuple

import codemods
from codemods.report.blocks import Bars, Block, CodeText, Fold, Heading, Paragraph, PathText, Section, Steps, Table
from codemods.report.markup import Child, Html, element, path, prose
from codemods.report.migration import Figures, Migration, Step
from codemods.report.migration_sections import sections, state, summary
from codemods.report.migration_style import FILTER, SCRIPT, STYLE
from codemods.report.page import Column, figures, page, table
from codemods.report.wording import count


class _Part(NamedTuple):
    """A part of a bar."""

    name: str
    """Its class."""
    label: str
    of: Callable[[Figures], int]


_PARTS = (
    _Part("safe", "converted, safe", lambda figures: figures.safe),
    _Part("review", "converted, to review", lambda figures: figures.review),
    _Part("by-hand", "left to edit", lambda figures: figures.by_hand),
    _Part("cuda-only", "cannot move", lambda figures: figures.cuda_only),
)
_NUMBERS = (
    _Part("converted", "converted", lambda figures: figures.converted),
    *_PARTS[2:],
    _Part("notes", "notes", lambda figures: figures.notes),
)
"""The columns beside bars."""


def render(migration: Migration) -> str:
    """The page; every text of the repository in it is escaped."""
    shown = tuple(sections(migration))
    return page(
        f"Migration report: {migration.name}",
        element("header", _head(migration)),
        _navigation(shown),
        element("main", map(_section, shown)),
        element("footer", element("p", f"uncuda {codemods.__version__}", class_="soft")),
        style=STYLE,
        script=SCRIPT,
    )


def _head(migration: Migration) -> Iterator[Html]:
    yield element("p", "Migration from CUDA", class_="soft")
    yield element("h1", migration.name)
    first, *more = summary(migration)
    lines = ((Html("<br>"), line) for line in more)
    yield element("p", first, lines, class_="lead")
    yield element("p", state(migration), class_="soft")
    if migration.figures.sites:
        yield _bar(migration.figures, migration.figures.sites, "bar whole")
    yield figures(_boxes(migration))


def _boxes(migration: Migration) -> Iterator[tuple[Child, Child]]:
    for part in _PARTS:
        yield (_key(part), part.label), f"{part.of(migration.figures):,}"
    sources = len(migration.cuda_sources)
    if sources:
        yield "CUDA sources", f"{sources:,}"
    if migration.problems:
        yield "could not be done", count(len(migration.problems), "path")


def _navigation(shown: Iterable[Section]) -> Html:
    links = (element("a", section.short, href=f"#{section.anchor}") for section in shown)
    return element("nav", element("div", links, class_="links"), FILTER, aria_label="Sections")


def _section(section: Section) -> Html:
    return element("section", element("h2", section.title), map(_block, section.blocks), id=section.anchor)


# -- blocks ------------------------------------------------------------------------------------------------------------


@singledispatch
def _block(block: Block) -> Html:
    raise TypeError(f"no block of a report: {block!r}")


@_block.register
def _(block: Paragraph) -> Html:
    return element("p", prose(block.text), class_="soft" if block.soft else None)


@_block.register
def _(block: Heading) -> Html:
    return element("h3", block.text)


@_block.register
def _(block: Table) -> Html:
    first = block.rows[0] if block.rows else ("",) * len(block.columns)
    columns = [_column(label, cell) for label, cell in zip(block.columns, first, strict=True)]
    return table(columns, (map(_inline, row) for row in block.rows))


@_block.register
def _(block: Bars) -> Html:
    most = max((figures.sites for _, figures in block.rows), default=0)
    numbers = [number for number in _NUMBERS if any(number.of(figures) for _, figures in block.rows)]
    columns = (
        Column(block.heading, "name"),
        Column("", "drawn"),
        *(Column(number.label, "figure") for number in numbers),
    )
    rows = (
        (_inline(name), _bar(figures, most), *(_number(number.of(figures)) for number in numbers))
        for name, figures in block.rows
    )
    return table(columns, rows, class_="bars")


@_block.register
def _(block: Steps) -> Html:
    return element("ol", map(_step, block.steps), class_="steps")


@_block.register
def _(block: Fold) -> Html:
    aside = element("span", block.aside, class_="soft")
    if block.figures is not None:
        aside = element("span", _bar(block.figures, block.figures.sites), aside, class_="drawn")
    title = element("summary", element("b", _inline(block.title)), " ", aside)
    return element("details", title, element("div", map(_block, block.blocks)), Html("\n"), open=block.is_open)


def _step(step: Step) -> Html:
    command = element("code", step.command, class_="command") if step.command else None
    more = element("a", "Show", href=f"#{step.section}") if step.section else None
    return element("li", step.text, " " if more else None, more, command)


def _column(label: str, cell: str) -> Column:
    kinds = {PathText: "code place", CodeText: "code"}
    return Column(label.removeprefix("#"), "figure" if label.startswith("#") else kinds.get(type(cell), ""))


def _inline(text: str) -> Html:
    if isinstance(text, PathText):
        return path(text)
    return element("code", text) if isinstance(text, CodeText) else prose(text)


def _number(number: int) -> str:
    return f"{number:,}" if number else ""


def _bar(figures: Figures, full: int, class_: str = "bar") -> Html:
    """The figures as lengths, where ``full`` is the whole width; the same in words for who does not see it."""
    parts = [(part, part.of(figures)) for part in _PARTS if part.of(figures)]
    if not parts:
        return Html()
    words = ", ".join(f"{number:,} {part.label}" for part, number in parts)
    lengths = (element("i", class_=part.name, style=f"width:{100 * number / full:.2f}%") for part, number in parts)
    return element("span", lengths, class_=class_, role="img", aria_label=words, title=words)


def _key(part: _Part) -> Html:
    return element("i", class_=f"key {part.name}")
