"""What is not reported anew: findings of a baseline, and findings on lines that a change does not add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from codemods.check.added_lines import AddedLines
from codemods.check.baseline import Baseline, Scope, stale_lines
from codemods.check.pipeline import Checked, Filter
from codemods.check.reported import Reported
from codemods.engine.outcome import Request
from codemods.findings import Tier


@dataclass
class Known:
    """The filters of a check, by what was asked for."""

    root: Path
    """The root of the repository."""
    file: Path | None = None
    """The file of the baseline."""
    writes: bool = False
    """Whether the baseline is written instead of being used."""
    added: AddedLines | None = None
    _baseline: Baseline = field(default_factory=Baseline)
    _found: list[Reported] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Reads the baseline.

        Raises:
            BaselineError: it cannot be used
        """
        if self.file is not None and (not self.writes or self.file.exists()):
            self._baseline = Baseline.load(self.file)

    @property
    def filters(self) -> Sequence[Filter]:
        """The filters, in their order."""
        return [self._on_added_lines, self._not_in_the_baseline]

    def _on_added_lines(self, reported: list[Reported]) -> list[Reported]:
        return reported if self.added is None else list(self.added.only(reported))

    def _not_in_the_baseline(self, reported: list[Reported]) -> list[Reported]:
        if self.file is None:
            return reported
        self._found = [item for item in reported if item.finding.tier is not Tier.NOTE]
        new, _ = self._baseline.split(self._found, self.root)
        kept = set(map(id, new))
        notes = [item for item in reported if item.finding.tier is Tier.NOTE]
        return [] if self.writes else [item for item in reported if id(item) in kept or item in notes]

    def remarks(self, request: Request, checked: Checked) -> list[str]:
        """Writes the baseline, or says what in it is stale.

        Raises:
            SourceError: it cannot be written
        """
        if self.file is None:
            return []
        scope = Scope.of(request, checked.outcome)
        if self.writes:
            written = self._baseline.updated(self._found, self.root, scope)
            written.write(self.file)
            return [f"wrote {self.file}: {len(written.entries):,} known"]
        _, stale = self._baseline.split(self._found, self.root, scope)
        return list(stale_lines(stale, self.file))
