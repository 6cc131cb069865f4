"""Cuts a module into the smallest statements, or headers of compound statements, around given offsets.

A slice is parsed on its own: ``prefix`` and ``suffix`` make a module out of it (``if x:`` needs a body, ``except E:`` a
``try``), and never reach the output.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from codemods.analysis.positions import Lines


@dataclass(frozen=True)
class Slice:
    """A statement or header: the bytes from ``start`` to ``end``."""

    start: int
    end: int
    prefix: bytes = b""
    suffix: bytes = b"\n"

    def module(self, utf8: bytes) -> bytes:
        """The text of a module that holds this slice alone."""
        return self.prefix + utf8[self.start : self.end] + self.suffix


class Statements:
    """The statements of one module."""

    def __init__(self, tree: ast.Module, lines: Lines, utf8: bytes) -> None:
        self._tree = tree
        self._lines = lines
        self._utf8 = utf8

    def slices(self, offsets: Sequence[int]) -> list[Slice]:
        """The slices that hold at least one of the (ascending) offsets, in the order of the text."""
        return list(self._in_body(self._tree.body, offsets))

    def path_to(self, offset: int) -> list[ast.stmt]:
        """The statements around an offset, outermost first."""
        path: list[ast.stmt] = []
        body: list[ast.stmt] = self._tree.body
        while body:
            index = bisect_right(body, offset, key=self.start) - 1
            if index < 0 or self._lines.end(body[index]) < offset:
                break
            path.append(body[index])
            body = next((b for b in _bodies(body[index]) if self._spans(b, offset)), [])
        return path

    def following(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements behind one in the same block."""
        around = self.path_to(self._lines.start(statement))
        blocks = _bodies(around[-2]) if len(around) > 1 else [self._tree.body]
        block = next((block for block in blocks if statement in block), [])
        return block[block.index(statement) + 1 :] if block else []

    def start(self, statement: ast.stmt) -> int:
        """Where a statement starts, its decorators included."""
        decorators = getattr(statement, "decorator_list", None)
        if not decorators:
            return self._lines.start(statement)
        return self._last_line_with(b"@", self._lines.start(decorators[0]))

    def end(self, statement: ast.stmt) -> int:
        """Where a statement ends, its body included."""
        return self._lines.end(statement)

    def _spans(self, body: Sequence[ast.stmt], offset: int) -> bool:
        return bool(body) and self.start(body[0]) <= offset <= self._lines.end(body[-1])

    def _in_body(self, body: Sequence[ast.stmt], offsets: Sequence[int]) -> Iterator[Slice]:
        for statement in body:
            start, end = self.start(statement), self._lines.end(statement)
            if not _any_between(offsets, start, end):
                continue
            bodies = _bodies(statement)
            if not bodies:
                if not _is_docstring(statement):
                    yield Slice(start, end)
            else:
                yield from self._in_compound(statement, start, bodies, offsets)

    def _in_compound(
        self, statement: ast.stmt, start: int, bodies: list[list[ast.stmt]], offsets: Sequence[int]
    ) -> Iterator[Slice]:
        if not isinstance(statement, ast.Try) and type(statement).__name__ != "TryStar":
            header = self._header(statement, start, bodies)
            if _any_between(offsets, header.start, header.end):
                yield header
        for name in ("body", "handlers", "cases", "orelse", "finalbody"):
            for part in getattr(statement, name, []):
                if isinstance(part, ast.stmt):
                    yield from self._in_body([part], offsets)
                else:
                    yield from self._in_part(part, offsets)

    def _in_part(self, part: ast.ExceptHandler | ast.match_case, offsets: Sequence[int]) -> Iterator[Slice]:
        if isinstance(part, ast.ExceptHandler):
            start, prefix = self._lines.start(part), b"try:\n pass\n"
        else:
            start, prefix = self._last_line_with(b"case", self._lines.start(part.pattern)), b"match 0:\n "
        end = self.start(part.body[0])
        if _any_between(offsets, start, end):
            yield Slice(start, end, prefix, b"pass\n")
        yield from self._in_body(part.body, offsets)

    def _last_line_with(self, word: bytes, before: int) -> int:
        """Where the last line up to an offset starts that begins with a word; there the word, not its indentation."""
        line = bisect_right(self._lines.starts, before) - 1
        while True:
            start = self._lines.starts[line]
            text = self._utf8[start : before + 1].lstrip(b" \t\f")
            if text.startswith(word):
                return before + 1 - len(text)
            line -= 1

    def _header(self, statement: ast.stmt, start: int, bodies: list[list[ast.stmt]]) -> Slice:
        if isinstance(statement, ast.Match):
            first_case = self._last_line_with(b"case", self._lines.start(statement.cases[0].pattern))
            return Slice(start, first_case, suffix=b"case _: pass\n")
        end = self.start(bodies[0][0])
        if self._utf8.startswith(b"elif", start):
            return Slice(start + 2, end, suffix=b"pass\n")
        line_start = self._lines.starts[bisect_right(self._lines.starts, start) - 1]
        indent = self._utf8[line_start:start]
        indent = indent.rpartition(b"\f")[2]  # a form feed starts the column anew
        if indent and not indent.strip():
            return Slice(start, end, b"if 1:\n" + indent, b"pass\n")
        return Slice(start, end, suffix=b"pass\n")


def _bodies(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of a compound statement, in the order of the text."""
    bodies: list[list[ast.stmt]] = [statement.body] if isinstance(getattr(statement, "body", None), list) else []  # type: ignore[attr-defined]
    for part in (*getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
        bodies.append(part.body)
    for name in ("orelse", "finalbody"):
        block = getattr(statement, name, None)
        if block:
            bodies.append(block)
    return bodies


def _any_between(offsets: Sequence[int], start: int, end: int) -> bool:
    index = bisect_left(offsets, start)
    return index < len(offsets) and offsets[index] < end


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
