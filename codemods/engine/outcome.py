"""What is asked of a conversion of a tree, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.findings import Finding, Tier
from codemods.source.discovery import Skipped
from codemods.source.document import SourceError

if TYPE_CHECKING:
    from codemods.engine.convert import Conversion

Progress = Callable[[int, int], None]


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
    helper: str | None = None
    """A module of the repository to use instead of writing a helper."""
    helper_name: str = "ai_device"
    jobs: int | None = None
    """Processes; ``None`` decides by the amount of work."""
    cache: bool = False
    """Whether what earlier runs found is used, and kept for later ones."""
    cache_dir: Path | None = None
    """Where it is kept; by default where ``codemods.engine.cache.cache_folder`` says."""


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
    notebooks: list[Path] = field(default_factory=list)
    settings: list[tuple[Path, int, str]] = field(default_factory=list)
    """Lines of configuration files that name CUDA: file, line and text."""
    files: int = 0
    """Python files that were looked at."""
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
        return 1 if said or self.cuda_sources or self.notebooks or self.settings else 0


def left(outcome: Outcome) -> Iterable[tuple[Path, Finding]]:
    """What was found and not converted, by place."""
    for conversion in outcome.conversions:
        for finding in conversion.left:
            yield conversion.document.path, finding
