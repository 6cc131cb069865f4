"""The report for a project lead, section by section: what is said, and in which order, in every format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from codemods.catalogue import Rule, load_kinds
from codemods.cuda_api import Package
from codemods.report.alternatives import offers
from codemods.report.blocks import Bars, Block, CodeText, Fold, Heading, Paragraph, PathText, Section, Steps, Table
from codemods.report.migration import (
    BY_HAND,
    CUDA_ONLY,
    PROBLEMS,
    REVIEW,
    CudaSource,
    Figures,
    Folder,
    Kind,
    Migration,
    Obstacle,
    Place,
    RuleUse,
)
from codemods.report.migration_steps import steps
from codemods.report.wording import count


class Title(NamedTuple):
    """The title of a section."""

    long: str
    short: str
    """Where there is little room."""


TITLES = {
    "kinds": Title("By kind", "By kind"),
    "next": Title("What to do next", "Next steps"),
    BY_HAND: Title("What needs a person", "Needs a person"),
    CUDA_ONLY: Title("What cannot move as it is", "Cannot move"),
    "converted": Title("What was converted", "Converted"),
    REVIEW: Title("Converted, and worth a look", "To review"),
    "files": Title("By folder and file", "By file"),
    PROBLEMS: Title("What could not be done", "Not done"),
    "about": Title("About this report", "About"),
}
"""By the ends of links to them."""

_FEW = 8
"""So many rows are shown at once; more are folded away."""
_TIERS = (
    "Converted are edits of the tier safe, right on every device that has the feature, and of the tier review, made as "
    "well and worth a look."
)
_SOURCES = (
    "What is said of vendors comes from rules/packages.toml and rules/devices of uncuda; (unverified) marks what was "
    "not seen first-hand. No vendor's hardware was used."
)
_EFFORT = "Effort is a rough hint for one place, from the kind of place; nothing was measured."


def summary(migration: Migration) -> Iterator[str]:
    """The whole report in a few sentences."""
    figures = migration.figures
    had_to = "to change" if migration.written is None else "had to change"
    yield f"{count(migration.files_read, 'file')} read, {migration.files_changed:,} {had_to}."
    if migration.is_empty:
        yield "Nothing names CUDA."
        return
    if figures.sites:
        yield from _summary_of_places(figures)
    else:
        yield "No place in them has to be converted."
    if migration.cuda_sources:
        has = "has" if len(migration.cuda_sources) == 1 else "have"
        yield f"{count(len(migration.cuda_sources), 'CUDA source')} {has} to be ported."


def _summary_of_places(figures: Figures) -> Iterator[str]:
    share = _share(figures.converted, figures.sites)
    yield (
        f"Of {count(figures.sites, 'place')} that name CUDA, {figures.converted:,} ({share}) are converted: "
        f"{figures.safe:,} safe, {figures.review:,} to review."
    )
    if figures.left:
        bound = f", {figures.cuda_only:,} of them cannot move as they are" if figures.cuda_only else ""
        yield f"{figures.left:,} {'is' if figures.left == 1 else 'are'} left to a person{bound}."


def state(migration: Migration) -> str:
    """Whether the conversion was written."""
    if migration.written is None:
        return "Nothing was written: this is what a conversion would do."
    if not migration.files_changed:
        return "Nothing had to be written."
    missing = migration.files_changed + len(migration.helpers) - len(migration.written)
    lost = f"; {count(missing, 'file')} could not be written" if missing else ""
    return f"{count(len(migration.written), 'file')} written, {len(migration.helpers):,} of them helpers{lost}."


def sections(migration: Migration) -> Iterator[Section]:
    """The sections that have something to say, in their order."""
    makers = {
        "kinds": _overview,
        "next": _next,
        BY_HAND: _by_hand,
        CUDA_ONLY: _cuda_only,
        "converted": _converted,
        REVIEW: _review,
        "files": _files,
        PROBLEMS: _problems,
        "about": _about,
    }
    every = (Section(anchor, *TITLES[anchor], tuple(make(migration))) for anchor, make in makers.items())
    return (section for section in every if section.blocks)


def _overview(migration: Migration) -> Iterator[Block]:
    rows = [(kind.series.title, kind.figures) for kind in migration.kinds if kind.figures.sites]
    if rows:
        yield Bars("kind", rows)


def _next(migration: Migration) -> Iterator[Block]:
    listed = tuple(steps(migration))
    if listed:
        yield Steps(listed)


# -- what needs a person -----------------------------------------------------------------------------------------------


def _by_hand(migration: Migration) -> Iterator[Block]:
    kinds = [kind for kind in migration.kinds if kind.figures.by_hand]
    if not kinds:
        return
    yield Paragraph(_EFFORT, soft=True)
    yield Table(("effort", "meaning", "#places"), tuple(_efforts(kinds)))
    for kind in kinds:
        yield Heading(f"{kind.series.title}: {count(kind.figures.by_hand, 'place')}")
        yield Paragraph(kind.series.about, soft=True)
        for use in kind.rules:
            if use.by_hand:
                yield _places_of(use, use.by_hand, use.rule.effort)


def _efforts(kinds: Iterable[Kind]) -> Iterator[tuple[str, str, str]]:
    uses = [use for kind in kinds for use in kind.rules]
    for effort, meaning in load_kinds().efforts.items():
        places = sum(use.figures.by_hand for use in uses if use.rule.effort == effort)
        if places:
            yield effort, meaning, f"{places:,}"


def _places_of(use: RuleUse, places: Sequence[Place], effort: str = "") -> Fold:
    aside = ", ".join(filter(None, (count(len(places), "place"), f"{effort} each" if effort else "")))
    end = ":" if all(use.remark(place) for place in places) else "."
    blocks = (Paragraph(_sentence(use.rule.message, end)), *_by_remark(use, places))
    return Fold(_title(use.rule), aside, blocks, len(places) <= _FEW)


def _by_remark(use: RuleUse, places: Sequence[Place]) -> Iterator[Block]:
    """The places of each remark below it; those whose remark is theirs alone, or that have none, together at last."""
    by_remark: dict[str, list[Place]] = {}
    for place in places:
        by_remark.setdefault(_remark(use, place), []).append(place)
    rest = []
    for remark, same in sorted(by_remark.items(), key=lambda item: -len(item[1])):
        if remark and len(same) > 1:
            yield Paragraph(f"{remark.rstrip('.')}: {count(len(same), 'place')}")
            yield _places([(place, "") for place in same])
        else:
            rest += [(place, remark) for place in same]
    if rest:
        yield _places(sorted(rest, key=lambda row: (row[0].path, row[0].line, row[0].column)))


def _remark(use: RuleUse, place: Place) -> str:
    remark = use.remark(place)
    if place.held_back:
        return "; ".join(filter(None, (remark, "an edit is ready: --tier review")))
    return remark


def _places(rows: Sequence[tuple[Place, str]]) -> Table:
    """Places with their lines, and a remark where any has one."""
    if not any(remark for _, remark in rows):
        return Table(("place", "line"), tuple((PathText(place), CodeText(place.code)) for place, _ in rows))
    cells = ((PathText(place), CodeText(place.code), remark) for place, remark in rows)
    return Table(("place", "line", "remark"), tuple(cells))


# -- what cannot move --------------------------------------------------------------------------------------------------


def _cuda_only(migration: Migration) -> Iterator[Block]:
    if migration.obstacles:
        yield Paragraph("Each is a decision for the project, not for a place: replace it, port it, or do without.")
        yield from map(_obstacle, migration.obstacles)
    if migration.cuda_sources:
        yield Heading(f"CUDA sources: {count(len(migration.cuda_sources), 'file')}")
        yield _cuda_sources(migration.cuda_sources)
    if migration.builders:
        yield Paragraph("What builds a ported extension:")
        yield Table(("device", "tool"), migration.builders)


def _obstacle(obstacle: Obstacle) -> Fold:
    blocks: list[Block] = [Paragraph(_sentence(obstacle.reason))]
    if obstacle.package is not None:
        blocks += _instead(obstacle.package)
    blocks.append(_places([(place, "") for place in obstacle.places]))
    aside = f"{count(obstacle.files, 'file')}, {count(len(obstacle.places), 'place')}, {obstacle.effort} each"
    return Fold(_sentence(obstacle.title, ""), aside, tuple(blocks), is_open=False)


def _instead(package: Package) -> Iterator[Block]:
    rows = tuple(offers(package))
    if rows:
        yield Table(("for", "instead"), rows)
    else:
        yield Paragraph("Nothing is known that takes its place.")


def _cuda_sources(sources: Sequence[CudaSource]) -> Block:
    rows = [(PathText(source.path), _figure(source.lines), _figure(source.kernels)) for source in sources]
    known = [source for source in sources if source.lines is not None]
    lines, kernels = sum(source.lines or 0 for source in known), sum(source.kernels or 0 for source in known)
    aside = f"{count(lines, 'line')}, {count(kernels, '__global__ function')}"
    table = Table(("file", "#lines", "#__global__ functions"), tuple(rows))
    return Fold("Files to port", aside, (table,), len(rows) <= _FEW)


def _figure(number: int | None) -> str:
    return "unreadable" if number is None else f"{number:,}"


# -- what was converted ------------------------------------------------------------------------------------------------


def _converted(migration: Migration) -> Iterator[Block]:
    uses = [use for use in migration.rules if use.figures.converted]
    if not uses:
        return
    rows = ((_title(use.rule), _some(use.figures.safe), _some(use.figures.review)) for use in uses)
    yield Table(("rule", "#safe", "#to review"), tuple(rows))
    if migration.helpers:
        yield Paragraph("Converted code imports the helper, which the conversion adds:")
        yield Table(("helper",), tuple((PathText(path),) for path in migration.helpers))


def _review(migration: Migration) -> Iterator[Block]:
    for use in migration.rules:
        if use.review:
            yield _places_of(use, use.review)


def _files(migration: Migration) -> Iterator[Block]:
    return map(_folder, migration.folders)


def _folder(folder: Folder) -> Fold:
    rows = tuple((PathText(file.name), file.figures) for file in folder.files)
    figures = folder.figures
    parts = [f"{figures.converted:,} converted"] if figures.converted else []
    parts += [f"{figures.left:,} left"] if figures.left else []
    parts += [count(figures.notes, "note")] if figures.notes else []
    aside = f"{count(len(rows), 'file')}: {', '.join(parts)}"
    return Fold(PathText(folder.path or "./"), aside, (Bars("file", rows),), is_open=False, figures=figures)


# -- the rest ----------------------------------------------------------------------------------------------------------


def _problems(migration: Migration) -> Iterator[Block]:
    if migration.problems:
        rows = tuple((PathText(problem), problem.reason) for problem in migration.problems)
        yield Table(("path", "reason"), rows)


def _about(migration: Migration) -> Iterator[Block]:
    for limit in migration.limits:
        yield Paragraph(limit)
    yield Paragraph(_TIERS, soft=True)
    yield Paragraph(_SOURCES, soft=True)
    if migration.figures.notes:
        yield _notes(migration)
    if migration.skipped:
        rows = tuple((reason, f"{number:,}") for reason, number in migration.skipped)
        total = sum(number for _, number in migration.skipped)
        yield Fold("Not looked at", count(total, "path"), (Table(("why", "#paths"), rows),), is_open=False)


def _notes(migration: Migration) -> Fold:
    uses = [use for use in migration.rules if use.figures.notes]
    rows = tuple((_title(use.rule), f"{use.figures.notes:,}") for use in uses)
    aside = f"{count(migration.figures.notes, 'place')}; --notes lists them"
    return Fold("Harmless on other devices", aside, (Table(("rule", "#places"), rows),), is_open=False)


def _title(rule: Rule) -> str:
    return f"{rule.code} {rule.title}"


def _some(number: int) -> str:
    """The number, nothing for none."""
    return f"{number:,}" if number else ""


def _share(part: int, whole: int) -> str:
    """A percentage that says neither all nor nothing unless it is so."""
    percent = round(100 * part / whole)
    if part not in (0, whole):
        percent = min(max(percent, 1), 99)
    return f"{percent}%"


def _sentence(text: str, end: str = ".") -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}{end}"
