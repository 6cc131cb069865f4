"""Converts the files of a tree that mention CUDA."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.analysis.project import Project
from codemods.analysis.waivers import skips_file
from codemods.engine.convert import Conversion, HelperNames, Options, convert
from codemods.engine.helper_plan import HelperPlan
from codemods.engine.notebook import convert_notebook
from codemods.engine.outcome import Outcome, Progress, Request
from codemods.engine.per_file import PerFileIgnores
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
    ignore: tuple[str, ...]
    """Rules that are left out in this file."""

    @property
    def is_notebook(self) -> bool:
        return self.path.suffix == ".ipynb"

    def options(self, options: Options) -> Options:
        """The options of the run for this file."""
        return replace(options, ignore=options.ignore + self.ignore)

    def key(self, cache: Cache, document: Document, context: str, options: Options) -> str:
        """What the file's conversion is known by."""
        return cache.key(document, context, self.helper, self.options(options))


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
    sources = {path: raw for path, raw in sources.items() if not _is_left_out(path, raw)}
    names = _helper_names(list(sources), repository, request)
    settings = (raw for _, raw in repository.settings_files())
    project = Project.of(chain(repository.python_files(), sources.items()), repository.root, settings, repository.facts)
    ignores = PerFileIgnores(request.per_file_ignores, request.exclude_root)
    tasks = [_Task(path, raw, names[path], ignores.ignored_in(path)) for path, raw in sources.items()]
    for done, result in enumerate(_results(tasks, project, request.options, request.jobs, cache), start=1):
        if isinstance(result, SourceError):
            outcome.failures.append(result)
        else:
            outcome.failures += result.failures
            if result.findings:
                outcome.conversions.append(result)
        if progress is not None:
            progress(done, len(tasks))
    _add_helpers(request, outcome)


def _is_left_out(path: Path, raw: bytes) -> bool:
    """Whether a file is the helper, or its author takes it out."""
    if b"uncuda" not in raw:
        return False
    try:
        return is_helper(raw.decode("utf-8", "replace")) or skips_file(Document.from_bytes(path, raw))
    except SourceError:
        return False  # it is reported when its turn comes


def _helper_names(files: Sequence[Path], repository: Repository, request: Request) -> dict[Path, HelperNames]:
    """How each file names the helper."""
    name = request.helper_name
    if not request.plan_helper:
        return dict.fromkeys(files, HelperNames(f"import {name}", name, name))
    plan = HelperPlan.for_repository(files, repository, name, request.helper)
    places = {path: plan.for_file(path) for path in files}
    return {
        path: HelperNames(place.module_statement, place.from_module, name, place.targets)
        for path, place in places.items()
    }


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
        if item is None and isinstance(result, Conversion) and not result.failures:  # those may have passed
            cache.remember(task.key(cache, result.document, context, options), result)
        yield result


def _known(task: _Task, cache: Cache, context: str, options: Options) -> Conversion | None:
    try:
        document = Document.from_bytes(task.path, task.raw)
    except SourceError:
        return None
    return cache.conversion(task.key(cache, document, context, options), document, task.helper)


def _found(
    tasks: list[_Task], project: Project, options: Options, jobs: int | None
) -> Iterator[Conversion | SourceError]:
    workers = jobs if jobs is not None else (os.cpu_count() or 1) if len(tasks) >= POOL_PAYS_FROM else 1
    if workers <= 1 or len(tasks) <= 1:
        with _without_collector():
            yield from (_convert(task, project, options) for task in tasks)
        return
    from concurrent.futures import ProcessPoolExecutor  # brings multiprocessing, which few runs need

    import codemods.engine.rewrite  # noqa: F401 (loaded once, before the processes divide)

    with ProcessPoolExecutor(workers, initializer=_start_worker, initargs=(project, options)) as pool:
        yield from pool.map(_convert_in_worker, tasks, chunksize=max(1, len(tasks) // (workers * 8)))


def _convert(task: _Task, project: Project, options: Options) -> Conversion | SourceError:
    """One file's conversion, or why there is none: a failure never stops the others."""
    options = task.options(options)
    try:
        document = Document.from_bytes(task.path, task.raw)
        if task.is_notebook:
            return convert_notebook(document, project, task.helper, options)
        return convert(document, project, task.helper, options)
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


def _add_helpers(request: Request, outcome: Outcome) -> None:
    """The helper files that the converted files import and that are not there yet, or not up to date."""
    if request.helper is not None:
        return
    text = helper_source(request.helper_name)
    for target in _targets(outcome.conversions):
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            outcome.helpers[target] = text


def _targets(conversions: Iterable[Conversion]) -> list[Path]:
    return sorted({target for c in conversions if c.needs_helper for target in c.helper.targets})
