"""Makes the report for a project lead from what became of a tree."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.analysis.cuda_source import measure
from codemods.catalogue import load_catalogue, load_kinds
from codemods.cuda_api import Package, find_package
from codemods.engine.outcome import Outcome, Request
from codemods.findings import Finding, Tier, applicable
from codemods.report.alternatives import extension_builders
from codemods.report.migration import (
    CudaSource,
    Figures,
    File,
    Folder,
    Kind,
    Migration,
    Obstacle,
    Place,
    Problem,
    RuleUse,
)
from codemods.report.paths import shown

if TYPE_CHECKING:
    from codemods.engine.convert import Conversion  # with libcst, which is loaded only where something was found

_LONGEST_LINE = 160
_LINE_ENDS = (b"\n", b"\r")


def build(outcome: Outcome, request: Request, written: Sequence[Path] | None = None) -> Migration:
    """The report of a run; ``written`` are the files that it wrote, ``None`` if it was not to write."""
    uses = _uses(outcome)
    files = [_file(conversion, outcome.root) for conversion in outcome.conversions]
    obstacles = tuple(_obstacles(outcome))
    sources = tuple(_cuda_source(path, outcome.root) for path in outcome.cuda_sources)
    return Migration(
        name=outcome.root.name or "repository",
        limits=tuple(_limits(request)),
        files_read=outcome.files,
        files_changed=len(outcome.changed),
        figures=_sum(file.figures for file in files),
        kinds=tuple(_kinds(uses)),
        obstacles=obstacles,
        cuda_sources=sources,
        builders=tuple(extension_builders()) if sources else (),
        folders=tuple(_folders(files)),
        helpers=tuple(shown(path, outcome.root) for path in outcome.helpers),
        problems=tuple(_problems(outcome)),
        skipped=tuple(Counter(item.reason for item in outcome.skipped if not item.failed).most_common()),
        written=None if written is None else tuple(shown(path, outcome.root) for path in written),
    )


def _limits(request: Request) -> Iterator[str]:
    if request.select:
        yield f"Only these rules were used: {', '.join(request.select)}."
    if request.ignore:
        yield f"These rules were left out: {', '.join(request.ignore)}."
    if request.exclude:
        yield f"These paths were left out: {', '.join(request.exclude)}."
    if request.tier is Tier.SAFE:
        yield "Only edits of the tier safe were made; those of the tier review wait for --tier review."


# -- places and their figures ------------------------------------------------------------------------------------------


def _uses(outcome: Outcome) -> list[RuleUse]:
    """What each rule found, by code."""
    figures: defaultdict[str, Figures] = defaultdict(Figures)
    review, by_hand = defaultdict(list), defaultdict(list)
    for conversion in outcome.conversions:
        applied = set(map(id, conversion.applied))
        could_be = set(map(id, applicable(conversion.findings, Tier.REVIEW)))
        for finding in conversion.findings:
            one = _figures(finding, id(finding) in applied)
            figures[finding.rule] += one
            if one.review:
                review[finding.rule].append(_place(conversion, finding, outcome.root))
            elif one.by_hand:
                place = _place(conversion, finding, outcome.root, held_back=id(finding) in could_be)
                by_hand[finding.rule].append(place)
    catalogue = load_catalogue()
    return [
        RuleUse(catalogue[code], figures[code], tuple(review[code]), tuple(by_hand[code])) for code in sorted(figures)
    ]


def _figures(finding: Finding, applied: bool) -> Figures:
    """One place, counted as what became of it."""
    if applied:
        return Figures(safe=1) if finding.tier is Tier.SAFE else Figures(review=1)
    if finding.tier is Tier.NOTE:
        return Figures(notes=1)
    return Figures(cuda_only=1) if load_catalogue()[finding.rule].cuda_only else Figures(by_hand=1)


def _sum(figures: Iterable[Figures]) -> Figures:
    return sum(figures, Figures())


def _kinds(uses: Iterable[RuleUse]) -> Iterator[Kind]:
    by_series: defaultdict[str, list[RuleUse]] = defaultdict(list)
    kinds = load_kinds()
    for use in uses:
        by_series[kinds.series_of(use.rule.code).code].append(use)
    for code, series in kinds.series.items():
        if code in by_series:
            yield Kind(series, _sum(use.figures for use in by_series[code]), tuple(by_series[code]))


def _place(conversion: Conversion, finding: Finding, root: Path, *, held_back: bool = False) -> Place:
    return Place(
        path=shown(conversion.document.path, root),
        cell=finding.cell,
        line=finding.line,
        column=finding.column,
        message=finding.message,
        code=_line_around(conversion.document.utf8, finding.start),
        held_back=held_back,
    )


def _line_around(utf8: bytes, offset: int) -> str:
    """The line at an offset, without what is blank around it; of a long one the part from there on."""
    start = max(utf8.rfind(end, 0, offset) for end in _LINE_ENDS) + 1
    if offset - start > _LONGEST_LINE // 2:
        start = offset
    ends = (utf8.find(end, offset) for end in _LINE_ENDS)
    end = min((end for end in ends if end >= 0), default=len(utf8))
    line = utf8[start:end].decode().strip().replace("\t", " ")
    return line if len(line) <= _LONGEST_LINE else line[: _LONGEST_LINE - 3] + "..."


# -- folders and files -------------------------------------------------------------------------------------------------


def _file(conversion: Conversion, root: Path) -> File:
    applied = set(map(id, conversion.applied))
    figures = _sum(_figures(finding, id(finding) in applied) for finding in conversion.findings)
    return File(shown(conversion.document.path, root), figures, conversion.changed)


def _folders(files: Iterable[File]) -> Iterator[Folder]:
    below: defaultdict[str, list[File]] = defaultdict(list)
    for file in files:
        below[file.path.removesuffix(file.name)].append(file)
    for path in sorted(below):
        yield Folder(path, _sum(file.figures for file in below[path]), tuple(below[path]))


# -- what cannot move --------------------------------------------------------------------------------------------------


def _obstacles(outcome: Outcome) -> Iterator[Obstacle]:
    """What is CUDA's own, that of the most files first: by package where it is one, else by rule."""
    catalogue = load_catalogue()
    groups: defaultdict[tuple[str, str], list[Place]] = defaultdict(list)
    packages: dict[str, Package] = {}
    for conversion in outcome.conversions:
        for finding in conversion.left:
            if finding.tier is Tier.NOTE or not catalogue[finding.rule].cuda_only:
                continue
            package = _package(conversion.document.utf8[finding.start : finding.end].decode(), finding.message)
            if package is not None:
                packages[package.name] = package
            groups[finding.rule, package.name if package else ""].append(_place(conversion, finding, outcome.root))
    obstacles = [_obstacle(rule, packages.get(name), tuple(places)) for (rule, name), places in sorted(groups.items())]
    yield from sorted(obstacles, key=lambda obstacle: -obstacle.files)


def _obstacle(code: str, package: Package | None, places: tuple[Place, ...]) -> Obstacle:
    rule = load_catalogue()[code]
    if package is None:
        return Obstacle(rule.title, rule.message, rule.effort, None, places)
    return Obstacle(package.title, package.reason, rule.effort, package, places)


def _package(statement: str, message: str) -> Package | None:
    """The package that an import is reported for: of several, the one whose reason the message gives."""
    found = [package for name in _imported(statement) if (package := find_package(name))]
    return next((package for package in found if package.reason.rstrip(".") in message), found[0] if found else None)


def _imported(statement: str) -> Iterator[str]:
    """``a.b`` for ``import a.b`` and ``a.b.c`` for ``from a.b import c``; nothing for any other text."""
    try:
        parsed = ast.parse(statement).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in parsed:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _cuda_source(path: Path, root: Path) -> CudaSource:
    try:
        size = measure(path.read_bytes())
    except OSError:
        return CudaSource(shown(path, root), None, None)
    return CudaSource(shown(path, root), size.lines, size.kernels)


# -- what went wrong ---------------------------------------------------------------------------------------------------


def _problems(outcome: Outcome) -> Iterator[Problem]:
    for skipped in outcome.skipped:
        if skipped.failed:
            yield Problem(shown(skipped.path, outcome.root), None, skipped.reason)
    for failure in outcome.failures:
        yield Problem(shown(failure.path, outcome.root), failure.line, failure.reason)
