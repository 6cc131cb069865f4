"""What is asked of a conversion of a tree, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.engine.per_file import PerFile
from codemods.findings import Finding, Tier
from codemods.source.discovery import Skipped
from codemods.source.document import SourceError

if TYPE_CHECKING:
    from codemods.engine.convert import Conversion

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Options:
    """What is found and how much of it is applied."""

    tier: Tier = Tier.REVIEW
    """Edits up to this tier are applied."""
    select: tuple[str, ...] = ()
    """Prefixes of rule codes; empty selects all."""
    ignore: tuple[str, ...] = ()
    """Prefixes of rule codes that are left out."""
    families: frozenset[str] = frozenset()
    """The families of rules that are off unless asked for, and were: ``tests``, ``graph``."""

    def wants(self, finding: Finding) -> bool:
        """Whether a finding is among the selected rules."""
        chosen = not self.select or finding.rule.startswith(self.select)
        return chosen and not (self.ignore and finding.rule.startswith(self.ignore))


@dataclass(frozen=True)
class Request:
    """What is to be converted, and how."""

    paths: tuple[Path, ...]
    exclude: tuple[str, ...] = ()
    """Patterns as in ``.gitignore``."""
    exclude_root: Path | None = None
    """The folder that the patterns refer to; the working directory unless given."""
    tier: Tier = Tier.REVIEW
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    families: frozenset[str] = frozenset()
    """The families of rules that are off unless asked for, and were: ``tests``, ``graph``."""
    per_file_ignores: PerFile = ()
    """Rules that are left out in files that match a pattern; the patterns are as those of ``exclude``."""
    helper: str | None = None
    """A module of the repository to use instead of writing a helper."""
    helper_name: str = "ai_device"
    plan_helper: bool = True
    """Whether to find out where the helper goes, which takes most of the time where few files have a hit.

    Without it, the findings are the same, but imports are not those that the files need.
    """
    unsaved: Mapping[Path, bytes] = field(default_factory=dict)
    """Contents of files that differ from those on disk, such as an editor holds. One that is among ``paths`` need not
    exist."""
    jobs: int | None = None
    """Processes; ``None`` decides by the amount of work."""
    cache: bool = False
    """Whether what earlier runs found is used, and kept for later ones."""
    cache_dir: Path | None = None
    """Where it is kept; by default where ``codemods.engine.cache.cache_folder`` says."""

    @property
    def options(self) -> Options:
        """What of this holds for each file alike."""
        return Options(self.tier, self.select, self.ignore, self.families)


@dataclass
class Outcome:
    """What became of a tree."""

    root: Path
    conversions: list[Conversion] = field(default_factory=list)
    """One for each file that any rule speaks of, by path."""
    helpers: dict[Path, str] = field(default_factory=dict)
    """Helper files to be written, with their content."""
    skipped: list[Skipped] = field(default_factory=list)
    failures: list[SourceError] = field(default_factory=list)
    cuda_sources: list[Path] = field(default_factory=list)
    notebooks: list[tuple[Path, str]] = field(default_factory=list)
    """Notebooks that mention CUDA in another language than Python, with the language."""
    files: int = 0
    """Files that were read, be they Python, notebooks or beside them."""
    remarks: list[str] = field(default_factory=list)
    """What there is to say of the run itself."""

    @property
    def changed(self) -> list[Conversion]:
        """The conversions with something to write."""
        return [conversion for conversion in self.conversions if conversion.changed]

    @property
    def exit_code(self) -> int:
        """0 nothing to say, 1 findings or changes, 2 something could not be done."""
        if self.failures or any(skipped.failed for skipped in self.skipped):
            return 2
        said = any(finding.tier > Tier.NOTE for c in self.conversions for finding in c.findings)
        return 1 if said or self.cuda_sources or self.notebooks else 0


def left(outcome: Outcome) -> Iterable[tuple[Path, Finding]]:
    """What was found and not converted, by place."""
    for conversion in outcome.conversions:
        for finding in conversion.left:
            yield conversion.document.path, finding
