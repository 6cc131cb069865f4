"""Converts a whole tree: discovery, the helper's place, one conversion per file, in parallel where that pays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.analysis.scan import MENTIONED
from codemods.analysis.settings import cuda_settings
from codemods.engine.outcome import Outcome, Progress, Request
from codemods.source.discovery import Found, Skipped, discover, repository_root
from codemods.source.document import SourceError
from codemods.source.facts import Facts
from codemods.source.repository import Repository

if TYPE_CHECKING:
    from codemods.engine.cache import Cache

_MANY = 100
"""Files from which a cache pays for the search alone (measured: 0.2 ms a file, and 20 ms for a cache of 1,000)."""


def run(request: Request, progress: Progress | None = None) -> Outcome:
    """Converts everything that a request names; nothing is written.

    Raises:
        HelperConflict: the repository has a module of the helper's name that is not the helper
    """
    root = repository_root(request.paths[0])
    cache = _cache(request, root) if _are_many(request.paths) else None
    repository = Repository(root, cache)
    outcome = Outcome(root)
    sources = dict(_read_hits(request, repository, outcome))
    if sources:
        from codemods.engine.tree import convert_tree  # imports much that only files with a hit need

        cache = cache or _cache(request, root)
        repository.facts = cache or Facts()
        convert_tree(request, repository, sources, outcome, progress, cache)
    if cache is not None:
        cache.save()
        outcome.remarks += cache.remarks
    outcome.conversions.sort(key=lambda conversion: conversion.document.path)
    return outcome


def _cache(request: Request, root: Path) -> Cache | None:
    if not request.cache:
        return None
    from codemods.engine.cache import Cache

    return Cache(root, request.cache_dir)


def _read_hits(request: Request, repository: Repository, outcome: Outcome) -> Iterator[tuple[Path, bytes]]:
    """The files that mention CUDA in any way, with their bytes; everything else is sorted into the outcome."""
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
            if raw is None or not repository.facts.of(MENTIONED, raw):
                continue
            if item.kind == "python":
                yield item.path, raw
            else:
                outcome.notebooks.append(item.path)


def _are_many(paths: Sequence[Path]) -> bool:
    """Whether so much is asked for that reading a cache is faster than searching all of it."""
    return len(paths) >= _MANY or any(path.is_dir() for path in paths)


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
