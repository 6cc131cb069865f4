"""Findings: what a rule says of one place, with or without edits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

from codemods.source.edits import Edit


class Tier(IntEnum):
    """How far a finding can be trusted, and what is done with it."""

    NOTE = 0
    """Harmless on other devices: said for completeness, never changed, never an exit code."""
    SAFE = 1
    """Right on every backend that has the feature: applied."""
    REVIEW = 2
    """Applied, worth a look."""
    MANUAL = 3
    """Reported only: a person has to decide."""

    @property
    def label(self) -> str:
        """The name as users write it."""
        return self.name.lower()


@dataclass(frozen=True)
class Finding:
    """A place in a file that a rule speaks of."""

    rule: str
    """Code of the rule, e.g. ``UC101``."""
    tier: Tier
    message: str
    start: int
    """Byte offset in the UTF-8 text of the file."""
    end: int
    line: int
    """From 1; in a notebook that of the cell."""
    column: int
    """From 1, in characters."""
    edits: tuple[Edit, ...] = ()
    group: str | None = None
    """Findings of one group are applied together or not at all."""
    uses_helper: bool = False
    """Whether the edits name the helper by its module-level import."""
    cell: int | None = None
    """The number of the cell, in a notebook: from 1, all cells counted."""

    @property
    def place(self) -> str:
        """What stands behind the path: ``3:5``, ``cell 2:3:5``."""
        place = f"{self.line}:{self.column}"
        return place if self.cell is None else f"cell {self.cell}:{place}"

    def left_alone(self) -> Finding:
        """The same place, left to a person."""
        return replace(self, edits=(), tier=Tier.MANUAL if self.edits else self.tier, uses_helper=False)


def applicable(findings: Iterable[Finding], tier: Tier) -> list[Finding]:
    """The findings whose edits are to be applied up to a tier: those of a group together or not at all."""
    findings = list(findings)
    held_back = {f.group for f in findings if f.group is not None and f.tier > tier}
    return [f for f in findings if f.edits and f.tier <= tier and f.group not in held_back]


def in_one_group(finding: Finding, findings: Iterable[Finding]) -> list[Finding]:
    """A finding with those of a file that are applied together with it."""
    if finding.group is None:
        return [finding]
    return [other for other in findings if other.group == finding.group]
