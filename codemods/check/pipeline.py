"""From paths to what a check reports, fixes or would fix.

What is found passes through filters, each from a list of findings to those of them that are reported: a baseline, say,
or the lines that a change adds. What a filter takes out is not fixed either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from codemods.check.reported import Reported
from codemods.engine.outcome import Outcome, Progress, Request
from codemods.engine.run import run
from codemods.errors import UserError
from codemods.findings import Tier

Filter = Callable[[list[Reported]], list[Reported]]


class Mode(Enum):
    """What is done about findings."""

    REPORT = "report"
    FIX = "fix"
    DIFF = "diff"


@dataclass(frozen=True)
class Checked:
    """What became of a check."""

    outcome: Outcome
    reported: Sequence[Reported]
    """What was found, or is left, by place; notes included."""
    patch: bytes = b""
    """What a fix would change."""
    changed: Mapping[Path, bytes] = field(default_factory=dict)
    """The new contents of the files that a fix changed."""
    written: Sequence[Path] = ()
    """The files that a fix wrote, the helper among them."""
    with_edits: bool = True
    """Whether the edits of findings are those that their files need."""

    @property
    def failed(self) -> bool:
        """Whether something could not be done."""
        return bool(self.outcome.failures) or any(skipped.failed for skipped in self.outcome.skipped)

    @property
    def has_changes(self) -> bool:
        """Whether something was changed, or would be."""
        return bool(self.patch or self.changed or self.written)


def check(
    request: Request,
    mode: Mode = Mode.REPORT,
    filters: Sequence[Filter] = (),
    progress: Progress | None = None,
    *,
    with_edits: bool = True,
) -> Checked:
    """Checks what a request names, and fixes it if that is the mode; files that are not saved are not written.

    Args:
        filters: take findings out, one after the other
        with_edits: whether a report has a use for the edits of findings, which take longer to find than the findings

    Raises:
        UserError: something in the repository or the settings has to be mended first
    """
    outcome, with_edits = _run(request, mode, with_edits, progress)
    found = [
        Reported(conversion.document.path, conversion.document, finding)
        for conversion in outcome.conversions
        for finding in conversion.findings
    ]
    reported = _filtered(found, filters)
    if mode is Mode.REPORT or not found:
        return Checked(outcome, reported, with_edits=with_edits)
    from codemods.check import fixing as fixes  # libcst is loaded already

    fixes.restrict(outcome, reported, request.tier)
    if mode is Mode.DIFF:
        return fixes.shown_only(outcome, reported)
    return fixes.fixed(outcome, reported, write=not request.unsaved)


def _run(request: Request, mode: Mode, with_edits: bool, progress: Progress | None) -> tuple[Outcome, bool]:
    """The outcome, and whether the edits in it are those that the files need."""
    if mode is not Mode.REPORT:
        return run(request, progress), True
    request = replace(request, tier=Tier.NOTE)
    if with_edits:
        try:
            return run(request, progress), True
        except UserError:
            pass  # the helper has no place: the findings are the same, but no edit can be told
    return run(replace(request, plan_helper=False), progress), False


def without_notes(reported: Iterable[Reported]) -> list[Reported]:
    """What is more than a note."""
    return [item for item in reported if item.finding.tier is not Tier.NOTE]


def _filtered(found: list[Reported], filters: Iterable[Filter]) -> list[Reported]:
    """What the filters leave. What would be fixed together with something that they took out is left to a person."""
    reported = found
    for filter_ in filters:
        reported = filter_(reported)
    kept = {id(item.finding) for item in reported}
    groups = {_group(item) for item in found if item.finding.group is not None and id(item.finding) not in kept}
    return [replace(item, finding=item.finding.left_alone()) if _group(item) in groups else item for item in reported]


def _group(item: Reported) -> tuple[Path, str | None]:
    return item.path, item.finding.group
