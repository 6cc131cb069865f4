"""What a project lead wants to know of a conversion, as data; the modules ``migration_*`` make it and show it.

All paths are relative to the root of the repository, as in the patch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codemods.catalogue import Rule, Series
from codemods.cuda_api import Package

BY_HAND = "by-hand"
CUDA_ONLY = "cuda-only"
REVIEW = "review"
PROBLEMS = "problems"
"""The sections that a step may send to, as the ends of links."""


@dataclass(frozen=True)
class Figures:
    """Numbers of places, by what became of them."""

    safe: int = 0
    """Converted."""
    review: int = 0
    """Converted, and worth a look."""
    by_hand: int = 0
    """Left to a person, who can move them."""
    cuda_only: int = 0
    """Left to a person, and no edit moves them: they have to be replaced or ported."""
    notes: int = 0
    """Harmless on other devices."""

    @property
    def converted(self) -> int:
        """All that were converted."""
        return self.safe + self.review

    @property
    def left(self) -> int:
        """All that are left to a person."""
        return self.by_hand + self.cuda_only

    @property
    def sites(self) -> int:
        """All but the notes."""
        return self.converted + self.left

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            self.safe + other.safe,
            self.review + other.review,
            self.by_hand + other.by_hand,
            self.cuda_only + other.cuda_only,
            self.notes + other.notes,
        )


@dataclass(frozen=True)
class Place:
    """One place that a rule speaks of."""

    path: str
    cell: int | None
    """The cell of a notebook, from 1; line and column are those in it."""
    line: int
    column: int
    message: str
    code: str
    """The line of the file, shortened where it is long."""
    held_back: bool
    """Whether the place is left only because the tier of its edit was not asked for."""

    def __str__(self) -> str:
        cell = "" if self.cell is None else f"cell {self.cell}:"
        return f"{self.path}:{cell}{self.line}:{self.column}"


@dataclass(frozen=True)
class RuleUse:
    """What one rule found."""

    rule: Rule
    figures: Figures
    review: tuple[Place, ...]
    """Converted, and worth a look."""
    by_hand: tuple[Place, ...]
    """Left to a person, who can move them."""

    def remark(self, place: Place) -> str:
        """What the message of a place says beyond that of its rule."""
        return place.message.removeprefix(self.rule.message).removeprefix(": ")


@dataclass(frozen=True)
class Kind:
    """What the rules of one series found."""

    series: Series
    figures: Figures
    rules: tuple[RuleUse, ...]


@dataclass(frozen=True)
class Obstacle:
    """Something that is CUDA's own: a package, or what a rule such as that for kernels finds."""

    title: str
    reason: str
    effort: str
    """For one place."""
    package: Package | None
    places: tuple[Place, ...]

    @property
    def files(self) -> int:
        """In how many files it is used."""
        return len({place.path for place in self.places})


@dataclass(frozen=True)
class CudaSource:
    """A CUDA source file; ``None`` stands for what could not be read."""

    path: str
    lines: int | None
    kernels: int | None


@dataclass(frozen=True)
class File:
    """A file that any rule speaks of."""

    path: str
    figures: Figures
    changed: bool
    """Whether the conversion changes it."""

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Folder:
    """A folder with the files that lie in it, those further down not among them."""

    path: str
    """Ends with ``/``; empty for the root."""
    figures: Figures
    files: tuple[File, ...]


@dataclass(frozen=True)
class Problem:
    """A path that could not be read, converted or written."""

    path: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        return self.path if self.line is None else f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Step:
    """One thing to do next."""

    text: str
    command: str = ""
    section: str = ""
    """The section of the report that has more, e.g. ``REVIEW``."""


@dataclass(frozen=True)
class Migration:
    """What became of a repository, and what is left to do."""

    name: str
    """The name of the repository's folder."""
    limits: tuple[str, ...]
    """How the run was narrowed down: one sentence each."""
    files_read: int
    files_changed: int
    """To be changed, or changed."""
    figures: Figures
    kinds: tuple[Kind, ...]
    obstacles: tuple[Obstacle, ...]
    cuda_sources: tuple[CudaSource, ...]
    builders: tuple[tuple[str, str], ...]
    """For which device, and what builds ported CUDA sources there; empty where there are none."""
    folders: tuple[Folder, ...]
    """Those with a file that any rule speaks of, by path."""
    helpers: tuple[str, ...]
    """The helper files that the conversion adds or brings up to date."""
    problems: tuple[Problem, ...]
    skipped: tuple[tuple[str, int], ...]
    """Why paths were not looked at, and how many each."""
    written: tuple[str, ...] | None
    """The files that were written; ``None`` where none was to be."""

    @property
    def rules(self) -> Iterator[RuleUse]:
        """What each rule found, by code."""
        return (use for kind in self.kinds for use in kind.rules)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to say."""
        found = (self.kinds, self.cuda_sources, self.problems)
        return not any(found)
