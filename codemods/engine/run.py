"""Converts a whole tree: discovery, the helper's place, one conversion per file, in parallel where that pays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from codemods.analysis.scan import load_triggers
from codemods.companions.kinds import kind_of
from codemods.engine.outcome import Outcome, Progress, Request
from codemods.source.discovery import Found, Skipped, discover, repository_root
from codemods.source.document import Document, SourceError
from codemods.source.repository import Repository


def run(request: Request, progress: Progress | None = None) -> Outcome:
    """Converts everything that a request names; nothing is written.

    Raises:
        HelperConflict: the repository has a module of the helper's name that is not the helper
    """
    repository = Repository(repository_root(request.paths[0]), request.unsaved)
    outcome = Outcome(repository.root)
    companions: dict[Path, str] = {}
    sources = dict(_read_hits(request, repository, outcome, companions))
    if sources:
        from codemods.engine.tree import convert_tree  # libcst is imported only where something was found

        convert_tree(request, repository, sources, outcome, progress)
    if companions:
        from codemods.engine.companions import add_companions

        add_companions(request, repository, companions, outcome)
    outcome.conversions.sort(key=lambda conversion: conversion.document.path)
    return outcome


def _read_hits(
    request: Request, repository: Repository, outcome: Outcome, companions: dict[Path, str]
) -> Iterator[tuple[Path, bytes]]:
    """The Python files that mention CUDA in any way, with their bytes.

    The files beside them are added to ``companions`` with their kinds, everything else is sorted into the outcome.
    """
    triggers = load_triggers(request.families)
    for item in _asked_for(request, repository):
        if isinstance(item, Skipped):
            outcome.skipped.append(item)
        elif item.kind == "cuda-source":
            outcome.cuda_sources.append(item.path)
        elif item.kind == "other":
            if kind := kind_of(item.path):
                companions[item.path] = kind
        elif item.kind in ("python", "notebook"):
            raw = _read(item, repository, outcome)
            if raw is None:
                continue
            code = raw if item.kind == "python" else _code_of_notebook(item.path, raw, outcome)
            if triggers.mentioned_in(code):
                yield item.path, raw


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
