"""Converts the files of a tree that mention CUDA."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.analysis.project import Project
from codemods.engine.convert import Conversion, HelperNames, Options, convert
from codemods.engine.helper_plan import HelperPlan
from codemods.engine.outcome import Outcome, Progress, Request
from codemods.runtime import helper_source, is_helper
from codemods.source.document import Document, SourceError
from codemods.source.repository import Repository

if TYPE_CHECKING:
    from codemods.engine.cache import Cache

POOL_PAYS_FROM = 24
"""Files with a hit from which a pool of processes is faster than one (measured: starting it costs about 0.5 s)."""


@dataclass(frozen=True)
class _Task:
    path: Path
    raw: bytes
    helper: HelperNames


def convert_tree(
    request: Request,
    repository: Repository,
    sources: Mapping[Path, bytes],
    outcome: Outcome,
    progress: Progress | None,
    cache: Cache | None = None,
) -> None:
    """Converts files given with their bytes, and adds what became of them to the outcome.

    Raises:
        HelperConflict: the repository has a module of the helper's name that is not the helper
    """
    sources = {path: raw for path, raw in sources.items() if not is_helper(raw.decode("utf-8", "replace"))}
    plan = HelperPlan.for_repository(list(sources), repository, request.helper_name, request.helper)
    settings = (raw for _, raw in repository.settings_files())
    project = Project.of(chain(repository.python_files(), sources.items()), repository.root, settings, repository.facts)
    options = Options(request.tier, request.select, request.ignore)
    tasks = [_Task(path, raw, _names(plan, path, request)) for path, raw in sources.items()]
    results = _results(tasks, project, options, request.jobs, cache)
    for done, result in enumerate(results, start=1):
        if isinstance(result, SourceError):
            outcome.failures.append(result)
        elif result.findings:
            outcome.conversions.append(result)
        if progress is not None:
            progress(done, len(tasks))
    _add_helpers(plan, request, outcome)


def _names(plan: HelperPlan, path: Path, request: Request) -> HelperNames:
    place = plan.for_file(path)
    return HelperNames(place.module_statement, place.from_module, request.helper_name)


def _results(
    tasks: list[_Task], project: Project, options: Options, jobs: int | None, cache: Cache | None
) -> Iterator[Conversion | SourceError]:
    """What becomes of each file, in order: from the cache, or found now and added to it."""
    if cache is None:
        yield from _found(tasks, project, options, jobs)
        return
    from codemods.engine.cache import digest_of_project

    context = digest_of_project(project)
    known = [_known(task, cache, context, options) for task in tasks]
    found = _found([task for task, item in zip(tasks, known, strict=True) if item is None], project, options, jobs)
    for task, item in zip(tasks, known, strict=True):
        result = next(found) if item is None else item
        if item is None and isinstance(result, Conversion):  # a failure may have passed by the next run
            cache.remember(cache.key(result.document, context, task.helper, options), result)
        yield result


def _known(task: _Task, cache: Cache, context: str, options: Options) -> Conversion | None:
    try:
        document = Document.from_bytes(task.path, task.raw)
    except SourceError:
        return None
    return cache.conversion(cache.key(document, context, task.helper, options), document)


def _found(
    tasks: list[_Task], project: Project, options: Options, jobs: int | None
) -> Iterator[Conversion | SourceError]:
    workers = jobs if jobs is not None else (os.cpu_count() or 1) if len(tasks) >= POOL_PAYS_FROM else 1
    if workers <= 1 or len(tasks) <= 1:
        with _without_collector():
            yield from (_convert(task, project, options) for task in tasks)
        return
    from concurrent.futures import ProcessPoolExecutor

    import codemods.engine.rewrite  # noqa: F401 (loaded once, before the processes divide)

    with ProcessPoolExecutor(workers, initializer=_start_worker, initargs=(project, options)) as pool:
        yield from pool.map(_convert_in_worker, tasks, chunksize=max(1, len(tasks) // (workers * 8)))


def _convert(task: _Task, project: Project, options: Options) -> Conversion | SourceError:
    """One file's conversion, or why there is none: a failure never stops the others."""
    try:
        return convert(Document.from_bytes(task.path, task.raw), project, task.helper, options)
    except SourceError as error:
        return error
    except Exception as error:  # noqa: BLE001
        return SourceError(
            task.path, f"left as it is: {type(error).__name__}: {error} (a fault of uncuda; please report it)"
        )


_worker: tuple[Project, Options] | None = None


@contextmanager
def _without_collector() -> Iterator[None]:
    """Switches the cyclic garbage collector off: trees have no cycles, and the search took a fifth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _start_worker(project: Project, options: Options) -> None:
    global _worker
    _worker = project, options
    gc.disable()


def _convert_in_worker(task: _Task) -> Conversion | SourceError:
    assert _worker is not None
    return _convert(task, *_worker)


def _add_helpers(plan: HelperPlan, request: Request, outcome: Outcome) -> None:
    """The helper files that the converted files import and that are not there yet, or not up to date."""
    if request.helper is not None:
        return
    text = helper_source(request.helper_name)
    for target in _targets(plan, outcome.conversions):
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            outcome.helpers[target] = text


def _targets(plan: HelperPlan, conversions: Iterable[Conversion]) -> list[Path]:
    return sorted({t for c in conversions if c.needs_helper for t in plan.for_file(c.document.path).targets})
