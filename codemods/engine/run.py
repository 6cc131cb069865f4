"""Converts a whole tree: discovery, the helper's place, one conversion per file, in parallel where that pays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.analysis.scan import load_triggers
from codemods.analysis.settings import cuda_settings
from codemods.findings import Finding, Tier
from codemods.source.discovery import Found, Skipped, discover, repository_root
from codemods.source.document import SourceError
from codemods.source.repository import Repository

if TYPE_CHECKING:
    from codemods.engine.convert import Conversion

POOL_PAYS_FROM = 24
"""Files with a hit from which a pool of processes is faster than one (measured: starting it costs about 0.5 s)."""

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


def run(request: Request, progress: Progress | None = None) -> Outcome:
    """Converts everything that a request names; nothing is written.

    Raises:
        HelperConflict: the repository has a module of the helper's name that is not the helper
    """
    repository = Repository(repository_root(request.paths[0]))
    outcome = Outcome(repository.root)
    sources = dict(_read_hits(request, repository, outcome))
    if sources:
        from codemods.engine.tree import convert_tree  # libcst is imported only where something was found

        convert_tree(request, repository, sources, outcome, progress)
    outcome.conversions.sort(key=lambda conversion: conversion.document.path)
    return outcome


def _read_hits(request: Request, repository: Repository, outcome: Outcome) -> Iterator[tuple[Path, bytes]]:
    """The files that mention CUDA in any way, with their bytes; everything else is sorted into the outcome."""
    triggers = load_triggers()
    for item in _asked_for(request, repository):
        if isinstance(item, Skipped):
            outcome.skipped.append(item)
        elif item.kind == "cuda-source":
            outcome.cuda_sources.append(item.path)
        elif item.kind == "settings":
            raw = _read(item, repository, outcome)
            outcome.settings += [(item.path, line, text) for line, text in cuda_settings(raw or b"")]
        elif item.kind in ("python", "notebook"):
            raw = _read(item, repository, outcome)
            if raw is None or not triggers.mentioned_in(raw):
                continue
            if item.kind == "python":
                yield item.path, raw
            else:
                outcome.notebooks.append(item.path)


def _asked_for(request: Request, repository: Repository) -> Iterable[Found | Skipped]:
    if request.paths == (repository.root,) and not request.exclude:
        return repository.items
    return discover(request.paths, request.exclude, request.exclude_root)


def _read(item: Found, repository: Repository, outcome: Outcome) -> bytes | None:
    try:
        raw = repository.read(item.path)
    except OSError as error:
        reason = f"cannot be read: {(error.strerror or str(error)).lower()}"
        outcome.failures.append(SourceError(item.path, reason))
        return None
    outcome.files += item.kind == "python"
    return raw


def left(outcome: Outcome) -> Iterable[tuple[Path, Finding]]:
    """What was found and not converted, by place."""
    for conversion in outcome.conversions:
        for finding in conversion.left:
            yield conversion.document.path, finding
