"""Where the helper goes, and how each file imports it.

Of the imports that resolve in every way in which a file can be run, the plan takes those that need the fewest copies of
the helper. Folders are written as in ``codemods.source.module_tree``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from codemods.errors import UserError
from codemods.source.import_graph import ImportGraph, Run
from codemods.source.module_tree import depth, parent
from codemods.source.repository import Repository

MARK = b"# uncuda helper"
"""Begins one of the first lines of each helper that this tool wrote."""
_MARK_LINES = 30


class HelperConflict(UserError):  # noqa: N818 (no error of the tool: a state of the repository that its owner resolves)
    """Another module has the helper's name, or none has the name that is set; the message says where and what to do."""


@dataclass(frozen=True)
class HelperImport:
    """How one file imports the helper."""

    module_statement: str
    """E.g. ``import ai_device``, ``from pkg import ai_device``, ``from .. import ai_device``."""
    from_module: str
    """The module as ``from ... import autocast`` names it: ``ai_device``, ``pkg.ai_device``, ``..ai_device``."""
    targets: tuple[Path, ...]
    """The helper files that must exist for it. None where the repository's own helper is used; seldom two, for a file
    that is imported from elsewhere, is run as a script too, and imports nothing of the repository itself."""

    @property
    def target(self) -> Path | None:
        """The first of the targets."""
        return self.targets[0] if self.targets else None


class HelperPlan:
    """The imports of the helper in the files of one repository."""

    def __init__(self, imports: dict[Path, HelperImport]) -> None:
        self._imports = imports

    @classmethod
    def for_repository(
        cls, files: Sequence[Path], repository: Repository, name: str = "ai_device", existing: str | None = None
    ) -> HelperPlan:
        """The plan for the files that need the helper; all other files of the repository are evidence.

        Args:
            files: Python files and notebooks
            repository: all files, as evidence
            name: the helper's module name
            existing: dotted name of a module of the repository that is the helper already

        Raises:
            HelperConflict: another module has the helper's name, or there is no module ``existing``
        """
        graph = ImportGraph(repository, files)
        if existing is not None:
            return cls(dict.fromkeys(map(_key, files), _import_of_existing(graph, existing, name)))
        helper = _Helper(graph, name)
        needs = {_key(file): _Need.of(graph, graph.relative(file)) for file in files}
        placed = _place(needs.values(), helper.present)
        plan = cls({file: helper.import_for(need, placed) for file, need in needs.items()})
        for file, need in needs.items():
            helper.check(need, plan.for_file(file))
        return plan

    def for_file(self, path: Path) -> HelperImport:
        """How a file of the plan imports the helper; KeyError for others."""
        return self._imports[_key(path)]

    @property
    def targets(self) -> tuple[Path, ...]:
        """All helper files of the plan."""
        return tuple(sorted({target for item in self._imports.values() for target in item.targets}))


@dataclass(frozen=True)
class _Option:
    """A folder in which the helper serves a file in all its runs."""

    folder: str
    package: str
    """What the helper is imported from: a package (``pkg``), a relative place (``..``), or empty for ``sys.path``."""
    rank: int
    """How far it is from the file's own style, from 0."""


@dataclass(frozen=True)
class _Need:
    """What serves one file."""

    file: str
    runs: tuple[Run, ...]
    options: tuple[_Option, ...]
    """From the one that suits best; none if no single folder serves all runs."""

    @classmethod
    def of(cls, graph: ImportGraph, file: str) -> _Need:
        runs = tuple(graph.runs(file))
        options = sorted(_options(graph, file, runs), key=lambda item: (item.rank, depth(item.folder), item.folder))
        return cls(file, runs, tuple(options))

    def choices(self) -> Iterator[dict[str, int]]:
        """Sets of folders, with their ranks; one of each set has to hold the helper."""
        if self.options:
            yield {option.folder: option.rank for option in reversed(self.options)}
        else:
            yield from (dict.fromkeys(run.on_path, 0) for run in self.runs if run.on_path)


def _options(graph: ImportGraph, file: str, runs: Sequence[Run]) -> Iterator[_Option]:
    folder = parent(file)
    relative = graph.lines[file].level > 0
    in_package = relative or any(run.packages & graph.installed.keys() for run in runs)
    for place in frozenset.intersection(*(run.on_path for run in runs)):
        # The file's own folder is on the path before the file has done anything for it.
        yield _Option(place, "", (2 if in_package else 0) + (place != folder))
    for package in frozenset.intersection(*(run.packages for run in runs)):
        yield _Option(package, graph.name_of(package), 1 if in_package else 2)
    owners = [run.own_package for run in runs if run.own_package is not None]
    if len(owners) == len(runs):
        top = max(owners, key=depth)
        yield _Option(top, "." * (depth(folder) - depth(top) + 1), 0 if relative else 4)


def _place(needs: Iterable[_Need], present: set[str]) -> set[str]:
    """As few folders as serve all files: those that hold the helper, then each time the one that serves most."""
    choices = [choice for need in needs for choice in need.choices()]
    placed = {folder for choice in choices for folder in choice} & present
    while choices := [choice for choice in choices if not placed & choice.keys()]:
        ranks: dict[str, list[int]] = {}
        for choice in choices:
            for folder, rank in choice.items():
                ranks.setdefault(folder, []).append(rank)
        placed.add(min(ranks, key=lambda folder: (-len(ranks[folder]), sum(ranks[folder]), depth(folder), folder)))
    return placed


class _Helper:
    """The helper module under its name."""

    def __init__(self, graph: ImportGraph, name: str) -> None:
        self._graph = graph
        self._name = name
        self.present = {folder for folder in graph.folders if self._is_ours(folder)}

    def import_for(self, need: _Need, placed: set[str]) -> HelperImport:
        """The import that suits a file best, given the folders that hold the helper."""
        name = self._name
        option = next((option for option in need.options if option.folder in placed), None)
        if option is None:
            folders = {min(run.on_path & placed) for run in need.runs if run.on_path}
            return HelperImport(f"import {name}", name, tuple(map(self._target, sorted(folders))))
        target = self._target(option.folder)
        if not option.package:
            return HelperImport(f"import {name}", name, (target,))
        module = f"{option.package}{name}" if option.package.endswith(".") else f"{option.package}.{name}"
        return HelperImport(f"from {option.package} import {name}", module, (target,))

    def check(self, need: _Need, chosen: HelperImport) -> None:
        """Raises HelperConflict if another module stands in the place of the helper, or can be found before it."""
        folders = {self._graph.relative(target.parent) for target in chosen.targets}
        if chosen.from_module == self._name:
            folders |= {folder for run in need.runs for folder in run.on_path}
        for folder in sorted(folders):
            other = self._other_module(folder)
            if other is not None:
                raise HelperConflict(
                    f"{self._graph.tree.root / other} is a module named {self._name!r} and not uncuda's helper, "
                    f"but {need.file} would import it; choose another name with --helper-name"
                )

    def _target(self, folder: str) -> Path:
        return self._graph.tree.root / folder / f"{self._name}.py"

    def _other_module(self, folder: str) -> str | None:
        tree = self._graph.tree
        path = tree.join(folder, self._name)
        if tree.is_package(path):
            return path
        return f"{path}.py" if tree.is_file(f"{path}.py") and not self._is_ours(folder) else None

    def _is_ours(self, folder: str) -> bool:
        if not self._graph.tree.is_file(self._graph.tree.join(folder, f"{self._name}.py")):
            return False
        try:
            with self._target(folder).open("rb") as file:
                return any(line.startswith(MARK) for _, line in zip(range(_MARK_LINES), file, strict=False))
        except OSError:
            return False


def _import_of_existing(graph: ImportGraph, module: str, name: str) -> HelperImport:
    folders = sorted({"", *graph.folders, *map(parent, graph.installed)})
    if not any(graph.tree.load(folder, module) for folder in folders):
        raise HelperConflict(f"{graph.tree.root} has no module {module!r}, which `helper` names; correct the setting")
    statement = f"import {module}" if module == name else f"import {module} as {name}"
    return HelperImport(statement, module, ())


def _key(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 (Path.resolve would follow links)
