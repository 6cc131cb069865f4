"""Converts a whole tree: discovery, the helper's place, one conversion per file, in parallel where that pays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.analysis.scan import MENTIONED, load_triggers
from codemods.engine.outcome import Outcome, Progress, Request
from codemods.source.discovery import Found, Skipped, discover, repository_root
from codemods.source.document import Document, SourceError
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
    repository = Repository(root, cache, request.unsaved)
    outcome = Outcome(root)
    companions: dict[Path, str] = {}
    sources = dict(_read_hits(request, repository, outcome, companions))
    if sources:
        from codemods.engine.tree import convert_tree  # imports much that only files with a hit need

        cache = cache or _cache(request, root)
        repository.facts = cache or Facts()
        convert_tree(request, repository, sources, outcome, progress, cache)
    if companions:
        from codemods.engine.companions import add_companions

        add_companions(request, repository, companions, outcome)
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


def _read_hits(
    request: Request, repository: Repository, outcome: Outcome, companions: dict[Path, str]
) -> Iterator[tuple[Path, bytes]]:
    """The Python files that mention CUDA in any way, with their bytes.

    The files beside them are added to ``companions`` with their kinds, everything else is sorted into the outcome.
    """
    for item in _asked_for(request, repository):
        if isinstance(item, Skipped):
            outcome.skipped.append(item)
        elif item.kind == "cuda-source":
            outcome.cuda_sources.append(item.path)
        elif item.kind == "other":
            from codemods.companions.kinds import kind_of  # reads a table, which named Python files do not need

            if kind := kind_of(item.path):
                companions[item.path] = kind
        elif item.kind in ("python", "notebook"):
            raw = _read(item, repository, outcome)
            if raw is None:
                continue
            code = raw if item.kind == "python" else _code_of_notebook(item.path, raw, outcome)
            if _is_mentioned(code, request, repository):
                yield item.path, raw


def _is_mentioned(code: bytes, request: Request, repository: Repository) -> bool:
    if request.families:  # they have words of their own, of which a cache knows nothing
        return load_triggers(request.families).mentioned_in(code)
    return repository.facts.of(MENTIONED, code)


def _code_of_notebook(path: Path, raw: bytes, outcome: Outcome) -> bytes:
    """The Python code of a notebook: what its outputs and its texts mention is nobody's concern."""
    from codemods.source.notebook import read_notebook  # needs json, which few runs do

    triggers = load_triggers()
    try:
        notebook = read_notebook(Document.from_bytes(path, raw))
    except SourceError as error:
        if triggers.mentioned_in(raw):
            outcome.failures.append(error)
        return b""
    if notebook.is_python:
        return notebook.code
    if triggers.mentioned_in(notebook.code):
        outcome.notebooks.append((path, notebook.language))
    return b""


def _are_many(paths: Sequence[Path]) -> bool:
    """Whether so much is asked for that reading a cache is faster than searching all of it."""
    return len(paths) >= _MANY or any(path.is_dir() for path in paths)


def _asked_for(request: Request, repository: Repository) -> Iterable[Found | Skipped]:
    if request.paths == (repository.root,) and not request.exclude:
        return repository.items
    return discover(request.paths, request.exclude, request.exclude_root, request.unsaved)


def _read(item: Found, repository: Repository, outcome: Outcome) -> bytes | None:
    try:
        raw = repository.read(item.path)
    except OSError as error:
        reason = f"cannot be read: {(error.strerror or str(error)).lower()}"
        outcome.failures.append(SourceError(item.path, reason))
        return None
    outcome.files += item.kind in ("python", "notebook")
    return raw
