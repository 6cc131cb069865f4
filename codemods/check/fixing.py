"""Fixes: the edits of what is reported, and where the other findings stand after them. Imports libcst."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from codemods.analysis.module import Module
from codemods.check.pipeline import Checked
from codemods.check.places import Places
from codemods.check.reported import Reported
from codemods.engine.convert import Conversion, HelperNames, all_edits, apply_findings
from codemods.engine.outcome import Outcome
from codemods.findings import Finding, Tier, applicable, in_one_group
from codemods.report import patch
from codemods.source.document import Document, SourceError
from codemods.source.edits import Edit, in_order


def restrict(outcome: Outcome, reported: Iterable[Reported], tier: Tier) -> None:
    """Leaves an outcome with the edits of what is reported, up to a tier; a file that cannot be fixed is a failure."""
    findings: dict[Path, list[Finding]] = {}
    for item in reported:
        findings.setdefault(item.path, []).append(item.finding)
    conversions = outcome.conversions
    outcome.conversions = []
    for conversion in conversions:
        try:
            kept = findings.get(conversion.document.path, [])
            outcome.conversions.append(_restricted(conversion, kept, tier))
        except SourceError as error:
            outcome.failures.append(error)
    needed = {target for c in outcome.conversions if c.needs_helper for target in c.helper.targets}
    outcome.helpers = {path: text for path, text in outcome.helpers.items() if path in needed}


def _restricted(conversion: Conversion, findings: Sequence[Finding], tier: Tier) -> Conversion:
    if len(findings) == len(conversion.findings):
        return conversion
    module = Module(conversion.document)
    return apply_findings(module, conversion.document, conversion.helper, findings, applicable(findings, tier))


def shown_only(outcome: Outcome, reported: Iterable[Reported]) -> Checked:
    """The patch of an outcome, and what it leaves, where it stands now."""
    applied = {id(finding) for conversion in outcome.conversions for finding in conversion.applied}
    left = [item for item in reported if id(item.finding) not in applied]
    return Checked(outcome, left, patch=patch.patch(outcome))


def fixed(outcome: Outcome, reported: Iterable[Reported], *, write: bool) -> Checked:
    """Makes the changes of an outcome, in the files if asked for; what they leave, where it stands then."""
    written = patch.write(outcome) if write else []
    changed = {c.document.path: c.after for c in outcome.changed if not write or c.document.path in written}
    return Checked(outcome, _still_there(outcome, reported, changed), changed=changed, written=written)


def _still_there(outcome: Outcome, reported: Iterable[Reported], changed: Mapping[Path, bytes]) -> list[Reported]:
    """What is reported of the new contents of files: what was not fixed, at its new place."""
    conversions = {c.document.path: c for c in outcome.conversions if c.document.path in changed}
    moves = {path: _Moves(conversion) for path, conversion in conversions.items()}
    return [
        moves[item.path].moved(item) if item.path in moves else item
        for item in reported
        if item.path not in moves or not moves[item.path].removes(item.finding)
    ]


class _Moves:
    """Where the places of a file are after its edits."""

    def __init__(self, conversion: Conversion) -> None:
        self._applied = set(map(id, conversion.applied))
        edits = in_order(conversion.edits)
        grown = (len(edit.replacement.encode()) - (edit.end - edit.start) for edit in edits)
        self._edits = edits
        self._ends = [edit.end for edit in edits]
        self._shifts = [0, *accumulate(grown)]
        self._document = Document.from_bytes(conversion.document.path, conversion.after)
        self._places = Places(self._document)

    def removes(self, finding: Finding) -> bool:
        """Whether a finding is fixed, or stands in a line that goes, such as a comment behind an import."""
        gone = any(edit.start <= finding.start and finding.end <= edit.end for edit in self._edits)
        return gone or id(finding) in self._applied

    def moved(self, item: Reported) -> Reported:
        """A finding at its new place."""
        start, end = self._at(item.finding.start), self._at(item.finding.end)
        place = self._places.at(start)
        edits = tuple(Edit(self._at(edit.start), self._at(edit.end), edit.replacement) for edit in item.finding.edits)
        finding = replace(
            item.finding, start=start, end=max(start, end), line=place.line, column=place.column, edits=edits
        )
        return Reported(item.path, self._document, finding)

    def _at(self, offset: int) -> int:
        number = bisect_right(self._ends, offset)
        if number < len(self._edits):
            offset = min(offset, self._edits[number].start)  # what lies within an edit is moved to its start
        return offset + self._shifts[number]


def edits_of_each(
    document: Document, helper: HelperNames, findings: Sequence[Finding], fixable: Iterable[Finding]
) -> dict[int, list[Edit]]:
    """By the ``id`` of a finding: the edits that fix it alone, with its group and the imports that it calls for."""
    module = Module(document)
    edits: dict[int, list[Edit]] = {}
    for finding in fixable:
        edits[id(finding)] = in_order(all_edits(module, helper, in_one_group(finding, findings)))
    return edits
