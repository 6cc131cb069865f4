"""Unified diffs as git writes and takes them, made on bytes so that every line end and encoding survives."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from codemods.source.edits import Edit, apply_edits, in_order

CONTEXT = 3
"""Unchanged lines shown around a change."""

_NO_NEWLINE = b"\n\\ No newline at end of file\n"
_ESCAPES = {ord(char): f"\\{name}" for char, name in zip('\a\b\t\n\v\f\r"\\', 'abtnvfr"\\', strict=True)}


@dataclass(frozen=True)
class Hunk:
    """A run of changes with the lines around them."""

    before_start: int
    """Index of its first line in the old file, from 0."""
    after_start: int
    """Index of its first line in the new file, from 0."""
    lines: tuple[bytes, ...]
    """Each behind a blank (kept), ``-`` (old) or ``+`` (new), with its line end; a last line may have none."""
    heading: str = ""
    """What the ``@@`` line says beside the numbers; git does not read it."""

    @property
    def before_count(self) -> int:
        """Number of old lines."""
        return sum(1 for line in self.lines if line[:1] != b"+")

    @property
    def after_count(self) -> int:
        """Number of new lines."""
        return sum(1 for line in self.lines if line[:1] != b"-")

    @property
    def header(self) -> bytes:
        """The ``@@`` line."""
        old, new = _span(self.before_start, self.before_count), _span(self.after_start, self.after_count)
        heading = f" {self.heading}" if self.heading else ""
        return f"@@ -{old} +{new} @@{heading}\n".encode()

    def render(self) -> bytes:
        """The hunk as it stands in a diff."""
        body = (line if line.endswith(b"\n") else line + _NO_NEWLINE for line in self.lines)
        return self.header + b"".join(body)


def file_patch(
    name: str,
    before: bytes | None,
    after: bytes,
    edits: Sequence[Edit] | None = None,
    mode: int = 0o644,
    heading: Callable[[Hunk], str] | None = None,
) -> bytes:
    """The part of a git diff that speaks of one file, empty if nothing changes; ``git apply`` takes it.

    Args:
        name: the file's path in the repository, with ``/``
        before: its content, None for a new file
        after: its content to be
        edits: what leads from one to the other, if known: only a hint that saves time
        mode: permission bits of a new file
        heading: what a hunk's ``@@`` line says beside the numbers
    """
    if before == after:
        return b""
    body = b"".join(
        (replace(hunk, heading=heading(hunk)) if heading else hunk).render()
        for hunk in hunks(before or b"", after, edits)
    )
    return file_head(name, is_new=before is None, is_empty=not after, mode=mode) + body


def file_head(name: str, *, is_new: bool = False, is_empty: bool = False, mode: int = 0o644) -> bytes:
    """The lines of a git diff above the first hunk of a file."""
    old, new = _quoted(f"a/{name}"), _quoted(f"b/{name}")
    head = b"diff --git %s %s\n" % (old, new)
    if is_new:
        head += b"new file mode %s\n" % (b"100755" if mode & stat.S_IXUSR else b"100644")
        if is_empty:
            return head
    # A tab behind a name with blanks is git's own way of saying where the name ends.
    tab = b"\t" if " " in name else b""
    return head + b"--- %s%s\n+++ %s%s\n" % (b"/dev/null" if is_new else old, b"" if is_new else tab, new, tab)


def hunks(before: bytes, after: bytes, edits: Sequence[Edit] | None = None, context: int = CONTEXT) -> list[Hunk]:
    """The changes between two contents, near ones joined; lines end at ``\\n`` alone."""
    old = _lines(before)
    groups: list[list[_Change]] = []
    for change in _changes(before, after, edits):
        if groups and change.start - groups[-1][-1].end <= 2 * context:
            groups[-1].append(change)
        else:
            groups.append([change])
    return list(_hunks(old, groups, context))


@dataclass(frozen=True)
class _Change:
    """Old lines ``start`` to ``end`` (excluded) become ``new``."""

    start: int
    end: int
    new: list[bytes]


def _hunks(old: list[bytes], groups: list[list[_Change]], context: int) -> Iterator[Hunk]:
    shift = 0
    for group in groups:
        first = max(group[0].start - context, 0)
        last = min(group[-1].end + context, len(old))
        lines: list[bytes] = []
        done = first
        for change in group:
            lines += (b" " + line for line in old[done : change.start])
            lines += (b"-" + line for line in old[change.start : change.end])
            lines += (b"+" + line for line in change.new)
            done = change.end
        lines += (b" " + line for line in old[done:last])
        yield Hunk(first, first + shift, tuple(lines))
        shift += sum(len(change.new) - (change.end - change.start) for change in group)


def _changes(before: bytes, after: bytes, edits: Sequence[Edit] | None) -> Iterator[_Change]:
    if edits is None or not _lead_to(before, after, edits):
        yield from _compare(0, _lines(before), _lines(after))
        return
    line = counted = 0
    for start, end, inner in _regions(before, edits):
        shifted = [Edit(edit.start - start, edit.end - start, edit.replacement) for edit in inner]
        region = before[start:end]
        line += before.count(b"\n", counted, start)
        counted = start
        yield from _compare(line, _lines(region), _lines(apply_edits(region, shifted)))


def _lead_to(before: bytes, after: bytes, edits: Sequence[Edit]) -> bool:
    """Whether the edits explain the change. They do not where their offsets are not the file's own (mark, encoding)."""
    try:
        return apply_edits(before, edits) == after
    except ValueError:
        return False


def _regions(before: bytes, edits: Sequence[Edit]) -> Iterator[tuple[int, int, list[Edit]]]:
    """The whole lines that edits touch, neighbours joined: start, end, the edits within."""
    start = end = 0
    inner: list[Edit] = []
    for edit in in_order(edits):
        line_start = before.rfind(b"\n", 0, edit.start) + 1
        line_end = before.find(b"\n", edit.end) + 1 or len(before)
        if inner and line_start > end:
            yield start, end, inner
            inner = []
        if not inner:
            start = line_start
        end = line_end
        inner.append(edit)
    if inner:
        yield start, end, inner


def _compare(offset: int, old: list[bytes], new: list[bytes]) -> Iterator[_Change]:
    """The changes between two runs of lines, of which the old one starts at line ``offset``."""
    shared = min(len(old), len(new))
    head = next((i for i in range(shared) if old[i] != new[i]), shared)
    tail = next((i for i in range(shared - head) if old[-1 - i] != new[-1 - i]), shared - head)
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    for tag, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield _Change(offset + head + start, offset + head + end, new[new_start:new_end])


def _lines(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _span(start: int, count: int) -> str:
    """A range as hunk headers write it: from 1, an empty one at the line before it."""
    if count == 0:
        return f"{start},0"
    return f"{start + 1}" if count == 1 else f"{start + 1},{count}"


def _quoted(name: str) -> bytes:
    """A path as git writes it: in quotes with C's escapes if it has quotes, backslashes, control or non-ASCII bytes."""
    raw = os.fsencode(name)
    escaped = "".join(_ESCAPES.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}") for byte in raw)
    return raw if escaped.encode() == raw else f'"{escaped}"'.encode()
