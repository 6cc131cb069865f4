"""How much is made of a finding."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from codemods.findings import Finding, Tier


class Severity(IntEnum):
    """Only an error makes a check fail."""

    INFO = 0
    WARNING = 1
    ERROR = 2

    @property
    def label(self) -> str:
        """The name as users write it."""
        return self.name.lower()


class Severities:
    """The severities of a project: ``severity`` of its settings, and errors where it says nothing."""

    def __init__(self, settings: Iterable[tuple[str, str]] = ()) -> None:
        """``settings`` are codes of rules or their beginnings, each with the name of a severity."""
        self._by_code = {code: Severity[name.upper()] for code, name in settings}

    def of(self, finding: Finding) -> Severity:
        """The severity of a finding; of the codes that fit, the longest counts."""
        for length in range(len(finding.rule), 0, -1):
            known = self._by_code.get(finding.rule[:length])
            if known is not None:
                return known
        return Severity.INFO if finding.tier is Tier.NOTE else Severity.ERROR
