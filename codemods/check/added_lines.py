"""Which lines a change adds, so that a check can speak of these alone.

Lines are those of the files in the work tree, with one exception: where content is staged, that is what will be
committed, and a file that was changed again since has other lines. ``AddedLines.contents`` holds what is staged of such
files, to be checked in their place. Under pre-commit, which takes unstaged changes away for the run, there are none.
"""

from __future__ import annotations

import os
import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from codemods.check.reported import Reported
from codemods.source.git import Git, GitError

_DIFF = (
    "-p", "--unified=0", "--inter-hunk-context=0", "--find-renames", "--text", "--no-color", "--src-prefix=a/",
    "--dst-prefix=b/", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", f"-O{os.devnull}",
)  # fmt: skip
_STAGED = ("--cached", "--ita-invisible-in-index", "--no-ext-diff", "--ignore-submodules=all")
_FROM_PRE_COMMIT = "PRE_COMMIT_FROM_REF"
"""Set by pre-commit where it runs over the changes between two revisions: in CI and before a push."""
_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPE = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')
_ESCAPED = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}

Range = tuple[int, int]
"""The first and the last of some lines."""
_EVERY_LINE: tuple[Range, ...] = ((1, sys.maxsize),)


@dataclass(frozen=True)
class AddedLines:
    """The lines that a change adds."""

    _added: Mapping[str, tuple[Range, ...]]
    """By real path, in ascending order."""
    contents: Mapping[Path, bytes] = field(default_factory=dict)
    """What is staged of files that look otherwise in the work tree; the lines are those of these contents."""

    @classmethod
    def of_change(cls, root: Path, base: str | None = None) -> AddedLines:
        """What a change adds: against ``base``, or what pre-commit compares with, else what is staged.

        Raises:
            GitError: see ``against`` and ``staged``
        """
        base = base or os.environ.get(_FROM_PRE_COMMIT)
        return cls.against(root, base) if base else cls.staged(root)

    @classmethod
    def against(cls, root: Path, base: str) -> AddedLines:
        """What the work tree adds to the point where its branch left ``base``; untracked files are all new.

        Raises:
            GitError: there is no git, no repository or no such revision; the message says what to do
        """
        git = Git.around(root)
        return cls._to_the_work_tree(git, _fork_point(git, base))

    @classmethod
    def staged(cls, root: Path) -> AddedLines:
        """What is staged; if nothing is, what the work tree adds to the last commit, with untracked files.

        Raises:
            GitError: there is no git or no repository
        """
        git = Git.around(root)
        last = git.commit("HEAD") or git.empty_tree  # before the first commit all is new
        staged = git.names("diff-index", *_STAGED, "--name-only", last)
        if not staged:
            return cls._to_the_work_tree(git, last)
        there = git.names("diff-index", *_STAGED, "--name-only", "--diff-filter=ACMR", last)
        changed_again = there & git.names("diff-files", "--name-only", "--ignore-submodules=all")
        contents = {git.top / name: git.output("cat-file", "blob", f":0:{name}") for name in sorted(changed_again)}
        return cls(_ranges(git, last, *_STAGED), contents)

    @classmethod
    def _to_the_work_tree(cls, git: Git, tree: str) -> AddedLines:
        untracked = {os.path.realpath(path): _EVERY_LINE for path in git.untracked()}
        return cls({**_ranges(git, tree), **untracked})

    def holds(self, path: Path, line: int, end_line: int | None = None) -> bool:
        """Whether one of the lines of a place is added; lines end with a line feed, and nothing else."""
        added = self._added.get(os.path.realpath(path), ())
        last = line if end_line is None else end_line
        before = bisect_right(added, (last, sys.maxsize))  # the ranges that start up to the last line
        return before > 0 and added[before - 1][1] >= line

    def only(self, reported: Iterable[Reported]) -> Iterator[Reported]:
        """The findings that stand on added lines."""
        for item in reported:
            # Counted anew: git does not end a line at a lone carriage return, as Python does.
            utf8, finding = item.document.utf8, item.finding
            line = utf8.count(b"\n", 0, finding.start) + 1
            last = line + utf8.count(b"\n", finding.start, max(finding.start, finding.end - 1))
            if self.holds(item.path, line, last):
                yield item


def _fork_point(git: Git, base: str) -> str:
    """The commit in which the current branch and a revision have their last common state."""
    fetch = (
        "the clone is shallow: fetch more of its history (git fetch --deepen=100, or --unshallow; in GitHub Actions"
        " `fetch-depth: 0`)"
    )
    commit = git.commit(base)
    if commit is None:
        remedy = f"; {fetch}" if git.is_shallow else "; fetch it, or name another one"
        raise GitError(f"{git.top}: there is no revision {base!r} here{remedy}")
    if git.commit("HEAD") is None:
        return commit
    common = git.answer("merge-base", commit, "HEAD")
    if common is None:
        remedy = f"; {fetch}" if git.is_shallow else "; name a revision that the current branch comes from"
        raise GitError(f"{git.top}: {base!r} and HEAD have no common history here{remedy}")
    return common


def _ranges(git: Git, tree: str, *options: str) -> dict[str, tuple[Range, ...]]:
    """The lines that the work tree, or what the options choose, adds to a tree, by the real path of their file."""
    found: dict[str, list[Range]] = {}
    with git.lines("diff-index", *options, *_DIFF, tree, "--") as lines:
        for name, added in _hunks(lines):
            found.setdefault(os.path.realpath(git.top / os.fsdecode(name)), []).append(added)
    return {path: tuple(ranges) for path, ranges in found.items()}


def _hunks(lines: Iterator[bytes]) -> Iterator[tuple[bytes, Range]]:
    """The files of a patch without context, and the lines that each of its hunks adds."""
    name: bytes | None = None
    for line in lines:
        hunk = _HUNK.match(line)
        if line.startswith(b"diff "):
            name = None
        elif line.startswith(b"+++ "):
            name = _new_name(line)
        elif hunk is not None and name is not None:
            removed, start, added = (int(group) if group else 1 for group in hunk.groups())
            _skip(lines, removed + added)  # the text of a file may look like a patch
            if added:
                yield name, (start, start + added - 1)


def _skip(lines: Iterator[bytes], count: int) -> None:
    while count > 0:
        count -= not next(lines, b"").startswith(b"\\")  # "\ No newline at end of file" is no line of the file


def _new_name(line: bytes) -> bytes | None:
    r"""The file in a ``+++`` line; None for a deleted one. Git ends names with blanks by a tab and quotes odd ones."""
    name = line[4:].rstrip(b"\n").removesuffix(b"\t")
    if name.startswith(b'"'):
        name = _ESCAPE.sub(_unescaped, name[1:-1])
    return name.removeprefix(b"b/") if name.startswith(b"b/") else None


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8)]) if code.isdigit() else _ESCAPED.get(code, code)
