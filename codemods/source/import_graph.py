"""Who imports whom in a repository, and so: how each file can be run and what is then on ``sys.path``.

A *top* is a module or package that is imported by its own name, written as its path: for ``import a.b`` with ``a`` in
the folder ``lib``, ``lib/a``. The folder around a top is on ``sys.path`` when something imports it, unless the top is a
package that gets installed (which may lie deeper than at the top: ``a/b`` if only ``a.b`` is installed).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from codemods.source.discovery import Found
from codemods.source.import_lines import IMPORT_LINES, IMPORT_LINES_OF_NOTEBOOK, ImportLine, ImportLines
from codemods.source.module_tree import AROUND, ModuleTree, base, depth, parent, upwards
from codemods.source.packaging import PACKAGING_FILES, installed_packages, source_folders
from codemods.source.repository import Repository

# Folders are often named after a package that they wrap: an import of one of these is never of the folder.
_ALWAYS_FOREIGN = sys.stdlib_module_names | frozenset(
    "apex cv2 deepspeed flash_attn jax matplotlib numpy pandas PIL scipy sklearn tensorboard tensorflow "  # noqa: SIM905
    "torch torchaudio torchvision tqdm triton wandb xformers yaml".split()
)


@dataclass(frozen=True)
class Run:
    """One way in which a file is run."""

    on_path: frozenset[str] = frozenset()
    """Folders of the repository on ``sys.path``."""
    packages: frozenset[str] = frozenset()
    """Tops that can be imported and are packages."""
    own_package: str | None = None
    """The top that the file is a part of, if it is run as a part of a package."""


class ImportGraph:
    """The imports of a repository's files among each other."""

    def __init__(self, repository: Repository, files: Sequence[Path] = ()) -> None:
        """Reads the import lines of a repository, and of files that a walk may leave out."""
        self.tree = ModuleTree(repository.root)
        self._below = f"{os.path.abspath(repository.root).rstrip('/')}/"  # noqa: PTH100 (links are not followed)
        self._repository = repository
        self.lines: dict[str, ImportLines] = {}
        """Of each file."""
        self.installed: dict[str, str] = {}
        """The dotted name of each top that is a package of an installable project."""
        self._tops: set[str] = set()
        self._assumed: set[str] = set()  # packages by their relative imports alone: nobody says where they lie
        self._needed: dict[str, set[str]] = {}  # of each file: the tops without which it does not load
        self._imported: set[str] = set()  # files that another one imports
        self._names: set[str] = set()  # of all files and folders: most imports are of none of them
        self._read(files)
        self._learn()

    def relative(self, path: Path) -> str:
        """A path as it is written here."""
        text = os.fspath(path)
        if os.sep == "/" and text.startswith(self._below) and "/.." not in text:
            return text[len(self._below) :]  # as `os.path.relpath` has it, which takes ten times as long
        relative = os.path.relpath(path, self.tree.root).replace(os.sep, "/")
        return "" if relative == "." else relative

    @property
    def folders(self) -> set[str]:
        """Folders that hold Python files."""
        return {folder for file in self.lines for folder in upwards(parent(file))}

    def name_of(self, top: str) -> str:
        """The dotted name under which a top is imported."""
        return self.installed.get(top) or base(top) or self.tree.name

    def runs(self, file: str) -> Iterator[Run]:
        """The ways in which a file is run. What it needs is there in all of them: it would not load otherwise."""
        needed = self._needed.get(file) or self._needed_around(file)
        on_path = {parent(top) for top in needed if top not in self.installed} - {AROUND}
        packages = {top for top in needed if self._is_package(top)}
        for run in list(self._natural_runs(file)) or [Run(on_path=frozenset({parent(file)}))]:
            yield Run(run.on_path | on_path, run.packages | packages, run.own_package)

    def _needed_around(self, file: str) -> set[str]:
        """For a file that imports nothing at all and is no program, such as a configuration in Python: the installed
        packages that its neighbours import. Whatever loads it need not put its folder on the path."""
        lines = self.lines[file]
        if "/" not in file or lines.imports or lines.is_program or file.endswith(".ipynb") or self._tops_around(file):
            return set()
        beside = file.partition("/")[0] + "/"
        needed = (tops for other, tops in self._needed.items() if other.startswith(beside))
        return {top for tops in needed for top in tops if top in self.installed}

    def _natural_runs(self, file: str) -> Iterator[Run]:
        """The same without regard to what the file itself imports."""
        folder = parent(file)
        tops = self._tops_around(file)
        yield from (self._run_as_part_of(top, folder) for top in tops)
        if self._is_script(file, tops):
            yield Run(on_path=frozenset({folder}))
        if not tops and (_is_test(file) or base(file) == "__init__.py"):
            yield self._run_alone(file)

    def _run_as_part_of(self, top: str, folder: str) -> Run:
        if not self._is_package(top):
            return Run(frozenset({parent(top)}))
        if top in self._assumed:
            return Run(own_package=top)
        if top in self.installed:
            return Run(frozenset(), frozenset({top}), top)
        inner = {place for place in upwards(folder) if self._is_installed_from(parent(top), place)}
        return Run(frozenset({parent(top)} - {AROUND}), frozenset({top} | inner), top)

    def _is_installed_from(self, root: str, package: str) -> bool:
        return package in self.installed and self._path_of(root, self.installed[package]) == package

    def _run_alone(self, file: str) -> Run:
        """A test that pytest collects, or a package that nobody imports."""
        package = self.tree.outermost_package(parent(file))
        if not _is_test(file):
            return Run(own_package=package)
        collected_from = parent(file) if package is None else parent(package)
        return Run(frozenset({collected_from} - {AROUND}), own_package=package)

    def _is_script(self, file: str, tops: Sequence[str]) -> bool:
        if file.endswith(".ipynb"):
            return True
        lines = self.lines[file]
        if base(file) == "__init__.py" or lines.level or any(top in self.installed for top in tops):
            return False
        if lines.is_program:
            return True
        if file in self._imported:
            return False
        if parent(file) in map(parent, self._needed.get(file, ())):
            return True  # it counts on its own folder being on the path
        return lines.acts if tops else not _is_test(file)

    def _tops_around(self, file: str) -> list[str]:
        """The tops that a file is a part of, as far as its relative imports stay within them."""
        if file.endswith(".ipynb"):
            return []
        folder = parent(file)
        level = self.lines[file].level
        places = [file.removesuffix(".py"), *upwards(folder)]
        within = [place for place in places if level <= depth(folder) - depth(place) + 1]
        known = [place for place in within if place in self._tops and not self._is_left_out(file, place)]
        return known or [place for place in within if place in self._assumed]

    def _is_left_out(self, file: str, top: str) -> bool:
        """Whether a file lies in an installed package, but in a folder of scripts that is not installed with it."""
        if top not in self.installed or self.lines[file].level or file in self._imported:
            return False
        between = (folder for folder in upwards(parent(file)) if depth(folder) > depth(top))
        return not all(self.tree.is_package(folder) for folder in between)

    def _is_package(self, top: str) -> bool:
        return self.tree.is_package(top) or (self.tree.is_folder(top) and not self.tree.is_file(f"{top}.py"))

    # Learning from the files

    def _read(self, files: Sequence[Path]) -> None:
        projects = set()
        for item in self._repository.items:
            self._names.add(item.path.stem)
            if isinstance(item, Found):
                if item.path.name in PACKAGING_FILES:
                    projects.add(parent(self.relative(item.path)))
                if item.path.suffix in (".py", ".ipynb"):
                    self._read_file(item.path)
        for file in files:
            self._read_file(file)
        self._names |= {base(folder) for folder in self.folders} | {self.tree.name}
        for project in sorted(projects):
            self._read_packaging(project)

    def _read_file(self, path: Path) -> None:
        if self.relative(path) in self.lines:
            return
        try:
            raw = self._repository.read(path)
        except OSError:
            raw = b""  # whoever wants to convert it says so
        kind = IMPORT_LINES_OF_NOTEBOOK if path.suffix == ".ipynb" else IMPORT_LINES
        self.lines[self.relative(path)] = self._repository.facts.of(kind, raw)

    def _read_packaging(self, project: str) -> None:
        text = ""
        for name in PACKAGING_FILES:
            path = self.tree.root / project / name
            if path.is_file():
                text += path.read_text(encoding="utf-8", errors="replace") + "\n"
        folders = ["/".join(filter(None, (project, folder))) for folder in sorted(source_folders(text))]
        top_level = {base(package) for folder in folders for package in self.tree.packages_in(folder)}
        for name in installed_packages(text, top_level):
            paths = (self._path_of(folder, name) for folder in folders)
            self.installed.update({path: name for path in paths if self.tree.is_package(path)})

    def _path_of(self, root: str, name: str) -> str:
        for part in name.split("."):
            root = self.tree.join(root, part)
        return root

    def _learn(self) -> None:
        self._tops |= self.installed.keys()
        ambiguous = []
        for file, lines in self.lines.items():
            for line in lines.imports:
                roots = self._roots(file, line)
                if len(roots) == 1:
                    self._note(file, line, roots[0])
                elif roots:
                    ambiguous.append((file, line, roots))
        for file, line, roots in ambiguous:
            self._note(file, line, self._likeliest(file, roots))
        for file, lines in self.lines.items():
            if lines.level and not self._tops_around(file):
                self._assumed.add(self._top_by_relative_imports(file))

    def _note(self, file: str, line: ImportLine, root: str) -> None:
        self._imported |= (self.tree.load(root, line.module, line.names) or set()) - {file}
        if line.level == 0:
            tops = self._tops_of(line, root)
            self._tops |= tops
            if line.certain:
                self._needed.setdefault(file, set()).update(tops)

    def _tops_of(self, line: ImportLine, root: str) -> set[str]:
        """The tops that a line imports: installed packages as far as it names them, else the first part of the name."""
        parts = line.module.split(".")
        on_the_way = {self._path_of(root, ".".join(parts[:end])) for end in range(1, len(parts) + 1)}
        taken = {self.tree.join(self._path_of(root, line.module), name) for name in line.names}
        installed = {path for path in on_the_way | taken if self._is_installed_from(root, path)}
        return installed or {self.tree.join(root, parts[0])}

    def _roots(self, file: str, line: ImportLine) -> list[str]:
        """The folders from which a line can import what it means, nearest first."""
        above = upwards(parent(file))
        if line.level:
            return above[line.level - 1 : line.level]
        first = line.module.partition(".")[0]
        if first in _ALWAYS_FOREIGN or first not in self._names:
            return []
        roots = [root for root in (*above, AROUND) if self._can_be_meant(file, line, root)]
        if not roots:
            homes = self._homes.get(first, []) if self._changes_path(file) else self._installed_homes(first)
            roots = [root for root in homes if self._can_be_meant(file, line, root)]
            return roots if len(roots) == 1 else []
        # A folder inside a package is seldom on the path as well.
        return [root for root in roots if not self.tree.is_package(root)] or roots

    def _can_be_meant(self, file: str, line: ImportLine, root: str) -> bool:
        loaded = self.tree.load(root, line.module, line.names)
        if not loaded or loaded == {file}:
            return False
        # With relative imports a file is part of a package, and the folders inside it are no roots.
        return not (self.lines[file].level and self.tree.is_package(root))

    def _likeliest(self, file: str, roots: Sequence[str]) -> str:
        folder = parent(file)
        if folder in roots and (self.lines[file].is_program or file not in self._imported):
            return folder
        homes = {parent(top) for top in self._tops_around(file)}
        return next((root for root in roots if root in homes), roots[0])

    def _changes_path(self, file: str) -> bool:
        """Whether a file, or one beside it that it imports (``import _init_paths``), changes ``sys.path``."""
        neighbours = {self.tree.join(parent(file), f"{line.module}.py") for line in self.lines[file].imports}
        return any(self.lines[path].changes_path for path in {file} | neighbours if path in self.lines)

    def _installed_homes(self, first: str) -> list[str]:
        """The folders from which packages whose names begin so are installed."""
        tops = [top for top, name in self.installed.items() if name.partition(".")[0] == first]
        return sorted({upwards(top)[self.installed[top].count(".") + 1] for top in tops})

    @cached_property
    def _homes(self) -> dict[str, list[str]]:
        """Where each name of a module or package lies."""
        places = {file.removesuffix(".py") for file in self.lines} | self.folders - {""}
        homes: dict[str, list[str]] = {}
        for place in sorted(places):
            homes.setdefault(base(place), []).append(parent(place))
        return homes

    def _top_by_relative_imports(self, file: str) -> str:
        above = upwards(parent(file))
        reached = above[min(self.lines[file].level, len(above)) - 1]
        outermost = self.tree.outermost_package(parent(file))
        return reached if outermost is None else min(reached, outermost, key=depth)


def _is_test(file: str) -> bool:
    name = base(file)
    return name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"
