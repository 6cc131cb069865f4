"""A baseline: the findings that a repository has already, so that a check speaks of new ones only.

An entry says rule, file, and the text of the place and of its line. No line number is in it, so that an entry holds
while its file changes around it. Two equal places are two equal entries: one more of them is a new finding.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from codemods.check.reported import Reported
from codemods.engine.outcome import Outcome, Request
from codemods.errors import UserError
from codemods.report.paths import shown
from codemods.source.atomic import write_atomically

VERSION = 1
_VERSION_KEY = "uncuda-baseline"
_LONGEST = 160
"""Characters of a text that are kept; of a longer one its beginning and a digest."""
_DIGEST = re.compile(r" … ([0-9a-f]{16})\Z")
_BEFORE_CLOSING = re.compile(r",(?=[)\]}])")
_LINE_END = re.compile(rb"\r\n|\r|\n")


class BaselineError(UserError):
    """A baseline that cannot be used; the message names the file and the remedy."""


@dataclass(frozen=True, order=True)
class Entry:
    """A finding that is known."""

    path: str
    """Relative to the root of the repository, with ``/``."""
    rule: str
    place: str
    """The text that the finding speaks of, with single blanks."""
    line: str
    """The line on which it begins, likewise."""

    @classmethod
    def of(cls, reported: Reported, root: Path) -> Entry:
        """The entry of a finding."""
        finding, utf8 = reported.finding, reported.document.utf8
        place = utf8[finding.start : finding.end]
        return cls(shown(reported.path, root), finding.rule, _short(place), _short(_line_around(utf8, finding.start)))

    @property
    def kind(self) -> tuple[str, str, str]:
        """What an entry and a finding must have in common: rule, file and place, however these are laid out."""
        return self.path, self.rule, _laid_out_alike(self.place)

    @property
    def same_line(self) -> str:
        """The line, however it is laid out."""
        return _laid_out_alike(self.line)


@dataclass(frozen=True)
class Scope:
    """What a run looked at: an entry of anything else cannot be missed by it."""

    paths: tuple[str, ...] = ("",)
    """Files and folders relative to the root; empty for the root itself."""
    unread: frozenset[str] = frozenset()
    """Files and folders in them that were left out or could not be read."""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    @classmethod
    def of(cls, request: Request, outcome: Outcome) -> Scope:
        """The scope of a run."""
        unread = [failure.path for failure in outcome.failures] + [skipped.path for skipped in outcome.skipped]
        return cls(
            paths=tuple(_relative(path, outcome.root) for path in request.paths),
            unread=frozenset(_relative(path, outcome.root) for path in unread),
            select=request.select,
            ignore=request.ignore,
        )

    def covers(self, entry: Entry) -> bool:
        """Whether the run would have found the place of an entry."""
        around = _upwards(entry.path)
        return self.chooses(entry) and not around.isdisjoint(self.paths) and around.isdisjoint(self.unread)

    def chooses(self, entry: Entry) -> bool:
        """Whether the rule of an entry was among those of the run."""
        chosen = not self.select or entry.rule.startswith(self.select)
        return chosen and not (self.ignore and entry.rule.startswith(self.ignore))


EVERYTHING = Scope()


@dataclass(frozen=True)
class Baseline:
    """The known findings of a repository."""

    entries: tuple[Entry, ...] = ()

    @classmethod
    def of(cls, reported: Iterable[Reported], root: Path) -> Baseline:
        """The baseline that knows these findings."""
        return cls(tuple(sorted(Entry.of(item, root) for item in reported)))

    @classmethod
    def load(cls, file: Path) -> Baseline:
        """The baseline of a file.

        Raises:
            BaselineError: it cannot be read, or is no baseline of this version
        """
        try:
            data = json.loads(file.read_bytes())
        except FileNotFoundError:
            raise BaselineError(f"{file}: there is no such baseline; --write-baseline makes it") from None
        except OSError as error:
            raise BaselineError(f"{file}: cannot be read: {(error.strerror or str(error)).lower()}") from None
        except (ValueError, RecursionError) as error:
            raise BaselineError(
                f"{file}: not valid JSON ({error}); resolve what a merge left in it, or remove it and write it anew"
                " with --write-baseline"
            ) from None
        return cls(tuple(_entries(data, file)))

    def updated(self, reported: Iterable[Reported], root: Path, scope: Scope = EVERYTHING) -> Baseline:
        """The baseline after a run: what it found, and the entries of what it did not look at."""
        kept = (entry for entry in self.entries if not scope.covers(entry))
        return Baseline(tuple(sorted((*Baseline.of(reported, root).entries, *kept))))

    def write(self, file: Path) -> None:
        """Writes the baseline: sorted and an entry a line, so that git merges what two branches took out.

        Raises:
            SourceError: the system refuses
        """
        lines = [json.dumps({"path": e.path, "rule": e.rule, "place": e.place, "line": e.line}) for e in self.entries]
        # The list ends with null: so each entry ends with a comma, and a new last one leaves the line before it alone.
        body = "".join(f"{line},\n" for line in lines)
        text = f'{{"{_VERSION_KEY}": {VERSION}, "findings": [\n{body}null\n]}}\n'
        write_atomically(file.absolute(), text.encode("ascii"))

    def split(
        self, reported: Iterable[Reported], root: Path, scope: Scope = EVERYTHING
    ) -> tuple[list[Reported], list[Entry]]:
        """The findings that are not known, and the stale entries: those whose place is no longer there.

        Among equal places, those on an unchanged line are taken for the known ones first. The findings of a file that
        moved are known if they are exactly those of one file that is gone.
        """
        known = _ByKind(self.entries)
        rest = known.without_known([(item, Entry.of(item, root)) for item in reported])
        moved = _moved(filter(scope.chooses, self.entries), rest, root)
        new = [item for item, entry in rest if entry.path not in moved.values()]
        stale = [entry for entry in known.left() if scope.covers(entry) and entry.path not in moved]
        return new, stale


def stale_lines(stale: Sequence[Entry], file: Path) -> Iterator[str]:
    """What to say of stale entries: each of them, and how to drop them."""
    for entry in stale:
        yield f"{entry.path}: {entry.rule} `{entry.place or entry.line}` is in the baseline and no longer found"
    if stale:
        yield f"{file}: run with --write-baseline to drop what is no longer found"


class _ByKind:
    """Entries that wait for their findings."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._waiting: dict[tuple[str, str, str], list[Entry]] = defaultdict(list)
        for entry in entries:
            self._waiting[entry.kind].append(entry)

    def without_known(self, found: list[tuple[Reported, Entry]]) -> list[tuple[Reported, Entry]]:
        """The findings for which no entry waits; each entry serves one."""
        unknown = [pair for pair in found if not self._take(pair[1], same_line=True)]
        return [pair for pair in unknown if not self._take(pair[1], same_line=False)]

    def left(self) -> list[Entry]:
        """The entries that nothing was found for."""
        return sorted(entry for entries in self._waiting.values() for entry in entries)

    def _take(self, found: Entry, *, same_line: bool) -> bool:
        waiting = self._waiting[found.kind]
        for number, entry in enumerate(waiting):
            if not same_line or entry.same_line == found.same_line:
                del waiting[number]
                return True
        return False


def _moved(entries: Iterable[Entry], unknown: Iterable[tuple[Reported, Entry]], root: Path) -> dict[str, str]:
    """Files that are gone, each with the only file that has exactly its findings now."""
    entries = list(entries)
    known_paths = {entry.path for entry in entries}
    gone = _by_content(entry for entry in entries if not (root / entry.path).is_file())
    fresh = _by_content(entry for _, entry in unknown if entry.path not in known_paths)
    return {
        old[0]: fresh[content][0] for content, old in gone.items() if len(old) == 1 and len(fresh.get(content, ())) == 1
    }


def _by_content(entries: Iterable[Entry]) -> dict[tuple[tuple[str, str, str], ...], list[str]]:
    """The paths of entries, by what their entries say apart from the path."""
    files: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for entry in entries:
        files[entry.path].append((entry.rule, entry.kind[2], entry.same_line))
    paths: dict[tuple[tuple[str, str, str], ...], list[str]] = defaultdict(list)
    for path, content in files.items():
        paths[tuple(sorted(content))].append(path)
    return paths


def _entries(data: Any, file: Path) -> Iterator[Entry]:
    if not isinstance(data, dict) or _VERSION_KEY not in data:
        raise BaselineError(f"{file}: is no baseline of uncuda; name another file, or move it away")
    if data[_VERSION_KEY] != VERSION:
        raise BaselineError(
            f"{file}: is a baseline of version {data[_VERSION_KEY]!r}, and this uncuda reads version {VERSION};"
            " install the uncuda that wrote it, or write it anew with --write-baseline"
        )
    findings = data.get("findings")
    for number, item in enumerate(findings if isinstance(findings, list) else [findings], start=1):
        if item is None and isinstance(findings, list):
            continue
        values = [item.get(key) for key in ("path", "rule", "place", "line")] if isinstance(item, dict) else [None]
        if not all(isinstance(value, str) for value in values):
            raise BaselineError(f"{file}: finding {number} is not whole; write it anew with --write-baseline")
        yield Entry(*values)


def _short(text: bytes) -> str:
    words = " ".join(text.decode("utf-8", "replace").split())
    if len(words) <= _LONGEST:
        return words
    return f"{words[:_LONGEST]} … {sha256(_laid_out_alike(words).encode()).hexdigest()[:16]}"


def _laid_out_alike(text: str) -> str:
    """A text without what a formatter changes: blanks, and commas before a closing bracket."""
    digest = _DIGEST.search(text)
    if digest is not None:
        return digest[1]
    return _BEFORE_CLOSING.sub("", "".join(text.split()))


def _line_around(utf8: bytes, offset: int) -> bytes:
    before = [match.end() for match in _LINE_END.finditer(utf8, 0, offset)]
    end = _LINE_END.search(utf8, offset)
    return utf8[before[-1] if before else 0 : end.start() if end else len(utf8)]


def _relative(path: Path, root: Path) -> str:
    relative = shown(path, root)
    return "" if relative == "." else relative


def _upwards(path: str) -> set[str]:
    """A path and the folders around it."""
    parts = path.split("/")
    return {"/".join(parts[:end]) for end in range(len(parts) + 1)}
