"""An outcome as plain lines of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from codemods.engine.outcome import Outcome, left
from codemods.findings import Finding, Tier
from codemods.report.paths import shown
from codemods.report.wording import count


def left_lines(outcome: Outcome, base: Path, *, notes: bool) -> Iterator[str]:
    """What was not converted, and why: one line a place; notes only if asked for, and last."""
    places = sorted(left(outcome), key=lambda place: place[1].tier is Tier.NOTE)
    for path, finding in places:
        if notes or finding.tier is not Tier.NOTE:
            yield finding_line(path, finding, base)
    yield from file_lines(outcome, base)


def file_lines(outcome: Outcome, base: Path) -> Iterator[str]:
    """The files that are not looked into."""
    for path in outcome.cuda_sources:
        yield f"{shown(path, base)}: CUDA source; its kernels have to be ported, it is not touched"
    for path, language in outcome.notebooks:
        yield f"{shown(path, base)}: notebook in {language} that mentions CUDA; it is not touched"


def finding_line(path: Path, finding: Finding, base: Path) -> str:
    """``path:line:column CODE tier message``, with ``cell N:`` before the line in a notebook."""
    return f"{shown(path, base)}:{finding.place} {finding.rule} {finding.tier.label} {finding.message}"


def problem_lines(outcome: Outcome, base: Path) -> Iterator[str]:
    """What could not be done: one line a path; and what there is to say of the run itself."""
    yield from outcome.remarks
    for skipped in outcome.skipped:
        if skipped.failed:
            yield f"{shown(skipped.path, base)}: {skipped.reason}"
    for failure in outcome.failures:
        yield f"{shown(failure.path, base)}{failure.place}: {failure.reason}"


def summary_lines(outcome: Outcome) -> Iterator[str]:
    """The figures of a run."""
    applied = Counter(finding.tier for c in outcome.conversions for finding in c.applied)
    rest = Counter(finding.tier for _, finding in left(outcome))
    sites = sum(applied.values())
    yield (
        f"{count(outcome.files, 'file')} read, {len(outcome.changed)} to change: {count(sites, 'site')} converted"
        f" ({applied[Tier.SAFE]} safe, {applied[Tier.REVIEW]} to review)"
    )
    by_hand = sum(count for tier, count in rest.items() if tier is not Tier.NOTE)
    yield f"{count(by_hand, 'site')} left to a person, {count(rest[Tier.NOTE], 'note')} (--notes lists them)"
    failed = len(outcome.failures) + sum(skipped.failed for skipped in outcome.skipped)
    if failed:
        yield f"{count(failed, 'path')} could not be read or converted"


def statistics(outcome: Outcome) -> list[tuple[str, str, int, int]]:
    """By rule: code, title, sites converted and sites left."""
    from codemods.catalogue import load_catalogue  # reads some sixty files

    converted = Counter(finding.rule for c in outcome.conversions for finding in c.applied)
    remaining = Counter(finding.rule for _, finding in left(outcome))
    catalogue = load_catalogue()
    codes = sorted(set(converted) | set(remaining))
    return [(code, catalogue[code].title, converted[code], remaining[code]) for code in codes]


def report_lines(outcome: Outcome, base: Path, *, stats: bool, notes: bool) -> Iterator[str]:
    """Everything there is to say of a run: what was left, figures by rule if asked for, the summary, problems."""
    yield from left_lines(outcome, base, notes=notes)
    if stats:
        for code, title, converted, remaining in statistics(outcome):
            yield f"{code}  converted {converted:5}  left {remaining:5}  {title}"
    yield from summary_lines(outcome)
    yield from problem_lines(outcome, base)
