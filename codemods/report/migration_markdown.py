"""The report for a project lead in GitHub's Markdown, for an issue or a wiki."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import singledispatch

import codemods
from codemods.report.blocks import Bars, Block, CodeText, Fold, Heading, Paragraph, PathText, Steps, Table
from codemods.report.markup import element, prose
from codemods.report.migration import Figures, Migration, Step
from codemods.report.migration_sections import TITLES, sections, state, summary
from codemods.report.wording import visible

_PLAIN_CODE = re.compile(r"(?! )[^`|\\]+(?<! )")
_ESCAPES = str.maketrans({sign: f"\\{sign}" for sign in "*_[]~#$"} | {sign: f"&#{ord(sign)};" for sign in '&<>"`|\\'})
"""A backslash makes text of a sign of Markdown; the others mean something to HTML or to tables as well."""
_LINK = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)
_LIST = re.compile(r"^(\d*)([-+=.)])")
"""What would begin a list, or underline a heading, where a paragraph begins."""
_FIGURES = ("#safe", "#to review", "#to edit", "#cannot move", "#notes")


def render(migration: Migration) -> str:
    """The report; every text of the repository in it is text to Markdown, too."""
    shown = tuple(sections(migration))
    lines = [f"# Migration from CUDA: {_text(migration.name)}", ""]
    lines += [f"{_text(line)}  " for line in summary(migration)]
    lines += [_text(state(migration))]
    for section in shown:
        lines += ["", f"## {section.title}"]
        for block in section.blocks:
            lines += ["", *_block(block)]
    lines += ["", f"uncuda {codemods.__version__}", ""]
    return "\n".join(lines)


@singledispatch
def _block(block: Block) -> Iterator[str]:
    """The lines of a block."""
    raise TypeError(f"no block of a report: {block!r}")


@_block.register
def _(block: Paragraph) -> Iterator[str]:
    yield _LIST.sub(r"\1\\\2", _prose(block.text.strip()))


@_block.register
def _(block: Heading) -> Iterator[str]:
    yield f"### {_text(block.text)}"


@_block.register
def _(block: Table) -> Iterator[str]:
    yield _row([_text(column.removeprefix("#")) for column in block.columns])
    yield _row(["---:" if column.startswith("#") else "---" for column in block.columns])
    for row in block.rows:
        yield _row([_inline(cell) for cell in row])


@_block.register
def _(block: Bars) -> Iterator[str]:
    rows = [(name, *_numbers(figures)) for name, figures in block.rows]
    yield from _block(Table((block.heading, *_FIGURES), rows))


@_block.register
def _(block: Steps) -> Iterator[str]:
    for number, step in enumerate(block.steps, start=1):
        yield f"{number}. [ ] {_step(step)}"


@_block.register
def _(block: Fold) -> Iterator[str]:
    title = element("code", block.title) if isinstance(block.title, PathText) else prose(block.title)
    yield f"<details{' open' if block.is_open else ''}>"
    yield element("summary", element("b", title), f" ({block.aside})")
    for inner in block.blocks:
        yield ""
        yield from _block(inner)
    yield ""
    yield "</details>"


def _step(step: Step) -> str:
    more = f" ([{TITLES[step.section].long}](#{_slug(TITLES[step.section].long)}))" if step.section else ""
    return f"{_text(step.text)}{more}" + (f" {_code(step.command)}" if step.command else "")


def _slug(title: str) -> str:
    """The end of a link to a heading, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _numbers(figures: Figures) -> Iterator[str]:
    for number in (figures.safe, figures.review, figures.by_hand, figures.cuda_only, figures.notes):
        yield f"{number:,}" if number else ""


def _inline(text: str) -> str:
    return _code(text) if isinstance(text, PathText | CodeText) else _prose(text)


def _prose(text: str) -> str:
    """Text in which `code` stands between backticks, as in the messages of rules."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _text(text)
    return "".join(_code(part) if number % 2 else _text(part) for number, part in enumerate(parts))


def _text(text: str) -> str:
    return _LINK.sub(lambda match: f"&#{ord(match.group())};", visible(text).translate(_ESCAPES))


def _code(text: str) -> str:
    """A code span where it can hold the text, and else the same in HTML."""
    text = visible(text)
    return f"`{text}`" if _PLAIN_CODE.fullmatch(text) else f"<code>{_text(text)}</code>"
