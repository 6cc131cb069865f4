"""The folders of a repository as Python's import system sees them.

Files and folders are written as paths relative to the repository, with ``/``. The repository itself is ``""`` and the
folder around it ``..``, of which only the repository is known: its name may be that of a package.
"""

from __future__ import annotations

import os
from pathlib import Path

AROUND = ".."


def parent(path: str) -> str:
    """The folder around a file or folder."""
    return path.rpartition("/")[0] if path else AROUND


def base(path: str) -> str:
    """The last part of a path."""
    return path.rpartition("/")[2]


def depth(folder: str) -> int:
    """How far a folder is below the repository."""
    return -1 if folder == AROUND else folder.count("/") + bool(folder)


def upwards(folder: str) -> list[str]:
    """A folder and those around it, up to the repository."""
    parts = folder.split("/") if folder else []
    return ["/".join(parts[:end]) for end in range(len(parts), -1, -1)]


class ModuleTree:
    """Answers what an import finds; folders are listed when they are asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.name = Path(os.path.abspath(root)).name  # noqa: PTH100 (Path.resolve would follow links)
        self._listings: dict[str, tuple[set[str], set[str]]] = {AROUND: (set(), {self.name})}

    def join(self, folder: str, name: str) -> str:
        """The path of a file or folder in a folder."""
        if folder == AROUND:
            return "" if name == self.name else f"{AROUND}/{name}"
        return f"{folder}/{name}" if folder else name

    def is_file(self, path: str) -> bool:
        """Whether there is such a file."""
        return base(path) in self._listing(parent(path))[0]

    def is_folder(self, path: str) -> bool:
        """Whether there is such a folder."""
        return not path or base(path) in self._listing(parent(path))[1]

    def is_package(self, path: str) -> bool:
        """Whether there is such a folder and it has an ``__init__.py``."""
        return self.is_folder(path) and "__init__.py" in self._listing(path)[0]

    def packages_in(self, folder: str) -> set[str]:
        """Packages that lie directly in a folder."""
        paths = (self.join(folder, name) for name in self._listing(folder)[1])
        return {path for path in paths if self.is_package(path)}

    def outermost_package(self, folder: str) -> str | None:
        """The uppermost of the packages around a folder, itself included; None if it is no package."""
        outermost = None
        for place in upwards(folder):
            if not self.is_package(place):
                break
            outermost = place
        return outermost

    def load(self, folder: str, module: str, names: tuple[str, ...] = ()) -> set[str] | None:
        """The files that importing a module, and names from it, loads if a folder is on ``sys.path``.

        None if the module is not there. A folder without ``__init__.py`` counts only for what is found in it.
        """
        loaded: set[str] = set()
        here = folder
        parts = module.split(".") if module else []
        for number, part in enumerate(parts, 1):
            path = self.join(here, part)
            if self.is_package(path):
                loaded.add(f"{path}/__init__.py" if path else "__init__.py")
            elif self.is_file(f"{path}.py"):
                return {*loaded, f"{path}.py"} if number == len(parts) else None
            elif not self.is_folder(path):
                return None
            here = path
        for name in names:
            path = self.join(here, name)
            if self.is_package(path):
                loaded.add(f"{path}/__init__.py")
            elif self.is_file(f"{path}.py"):
                loaded.add(f"{path}.py")
        return loaded or None

    def _listing(self, folder: str) -> tuple[set[str], set[str]]:
        """The names of a folder's Python files, and of its folders."""
        if folder not in self._listings:
            files, folders = set(), set()
            try:
                with os.scandir(self.root / folder) as entries:
                    for entry in entries:
                        if entry.name.endswith(".py"):
                            files.add(entry.name)
                        elif entry.is_dir():
                            folders.add(entry.name)
            except OSError:
                pass
            self._listings[folder] = (files, folders)
        return self._listings[folder]
