"""What a check has to say, ready for any format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.check.pipeline import Checked
from codemods.check.places import Places, Point
from codemods.check.reported import Reported
from codemods.check.severity import Severities, Severity
from codemods.engine.outcome import Outcome
from codemods.findings import Finding, Tier, applicable, in_one_group
from codemods.source.document import Document
from codemods.source.edits import Edit

if TYPE_CHECKING:
    from codemods.engine.convert import Conversion


@dataclass(frozen=True)
class Entry:
    """One finding as it is told."""

    path: Path
    document: Document
    finding: Finding
    severity: Severity
    fix: Tier | None
    """The tier at which its edits are applied; None if it has none, or they wait for a place that has none."""


@dataclass(frozen=True)
class Problem:
    """Something that could not be done."""

    path: Path
    line: int | None
    reason: str


@dataclass(frozen=True)
class Report:
    """The findings of a run and what could not be done."""

    root: Path
    """The root of the repository."""
    entries: Sequence[Entry]
    problems: Sequence[Problem]
    tier: Tier
    """Up to which tier ``--fix`` applies edits."""
    outcome: Outcome
    with_edits: bool = True
    """Whether the edits of the outcome are those that the files need."""

    @property
    def has_errors(self) -> bool:
        """Whether anything was found that makes a check fail."""
        return any(entry.severity is Severity.ERROR for entry in self.entries)

    def is_fixable(self, entry: Entry) -> bool:
        """Whether ``--fix`` applies an edit of a finding."""
        return entry.fix is not None and entry.fix <= self.tier

    def start(self, entry: Entry) -> Point:
        """Where a finding starts."""
        return self.places(entry).at(entry.finding.start)

    def end(self, entry: Entry) -> Point:
        """Where a finding ends, one behind its last character."""
        return self.places(entry).at(entry.finding.end)

    def places(self, entry: Entry) -> Places:
        """The positions of the file that a finding stands in."""
        if entry.path not in self._places:
            self._places[entry.path] = Places(entry.document)
        return self._places[entry.path]

    def edits(self, entry: Entry) -> Sequence[Edit]:
        """Edits that fix a finding by themselves, with what they need of imports; none if there are none."""
        if entry.path not in self._edits:
            self._edits[entry.path] = self._edits_in(entry.path)
        return self._edits[entry.path].get(id(entry.finding), [])

    def helpers(self, entry: Entry) -> Sequence[Path]:
        """The files that the edits of a finding import."""
        if not self.with_edits or entry.fix is None or entry.path not in self._conversions:
            return ()
        from codemods.engine.convert import names_helper

        together = in_one_group(entry.finding, [other.finding for other in self._by_path[entry.path]])
        return self._conversions[entry.path].helper.targets if names_helper(together) else ()

    @cached_property
    def _places(self) -> dict[Path, Places]:
        return {}

    @cached_property
    def _edits(self) -> dict[Path, Mapping[int, Sequence[Edit]]]:
        return {}

    @cached_property
    def _by_path(self) -> Mapping[Path, list[Entry]]:
        files: dict[Path, list[Entry]] = {}
        for entry in self.entries:
            files.setdefault(entry.path, []).append(entry)
        return files

    @cached_property
    def _conversions(self) -> Mapping[Path, Conversion]:
        return {conversion.document.path: conversion for conversion in self.outcome.conversions}

    def _edits_in(self, path: Path) -> Mapping[int, Sequence[Edit]]:
        entries = self._by_path[path]
        fixable = [entry.finding for entry in entries if entry.fix is not None]
        if not self.with_edits or not fixable or path not in self._conversions:
            return {}
        from codemods.check.fixing import edits_of_each

        findings = [entry.finding for entry in entries]
        return edits_of_each(entries[0].document, self._conversions[path].helper, findings, fixable)


def build(checked: Checked, reported: Iterable[Reported], severities: Severities, tier: Tier) -> Report:
    """The report of what a check found and left; ``reported`` is what of it is told."""
    outcome, reported = checked.outcome, list(reported)
    fixes = _fixes(reported)
    entries = [
        Entry(item.path, item.document, item.finding, severities.of(item.finding), fixes.get(id(item.finding)))
        for item in reported
    ]
    return Report(outcome.root, entries, list(_problems(outcome)), tier, outcome, checked.with_edits)


def _fixes(reported: Iterable[Reported]) -> dict[int, Tier]:
    """By the ``id`` of each finding with edits: the tier at which they are applied."""
    files: dict[Path, list[Finding]] = {}
    for item in reported:
        files.setdefault(item.path, []).append(item.finding)
    fixes: dict[int, Tier] = {}
    for tier in (Tier.REVIEW, Tier.SAFE):
        fixes.update((id(finding), tier) for findings in files.values() for finding in applicable(findings, tier))
    return fixes


def _problems(outcome: Outcome) -> Iterator[Problem]:
    for skipped in outcome.skipped:
        if skipped.failed:
            yield Problem(skipped.path, None, skipped.reason)
    for failure in outcome.failures:
        yield Problem(failure.path, failure.line, failure.reason)
