"""Waivers: comments by which an author takes places out of what is reported and converted.

``# uncuda: ignore[UC101] reason`` behind code speaks of its line, and at the end of a statement of all its lines. On a
line of its own it speaks of the statement below, with the block of that. ``# uncuda: skip-file`` above the first
statement takes the whole file out.
"""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from codemods.analysis.module import Module
from codemods.analysis.positions import Lines
from codemods.source.document import Document, SourceError

_MARK = b"uncuda:"
_DIRECTIVE = re.compile(r"(?:^|(?<=\s))#+[ \t]*uncuda:[ \t]*(?P<rest>.*?)(?=\s+#\s|$)")
_IGNORE = re.compile(r"ignore(?:[ \t]*\[(?P<codes>[^\]]*)\]|(?=\s|$))")
_SKIP_FILE = re.compile(r"skip-file(?=\s|$)")
_BEFORE_STATEMENTS = (
    tokenize.ENCODING,
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.STRING,
    tokenize.INDENT,
    tokenize.DEDENT,
)
_NO_CODE = (tokenize.ENCODING, tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
_NOWHERE = range(0)


@dataclass(frozen=True)
class Waiver:
    """One comment that takes places out."""

    start: int
    """Byte offset in the UTF-8 text."""
    end: int
    codes: tuple[str, ...] = ()
    """Codes of rules in upper case, or their beginnings; none for all rules."""
    fault: str = ""
    """Why it takes nothing out, whatever the file holds; empty if it may."""
    lines: range = _NOWHERE
    """What starts on these lines is taken out."""
    around: range = _NOWHERE
    """What ends on one of the lines and starts on one of these is taken out, too."""

    def covers(self, first: int, last: int) -> bool:
        """Whether it speaks of a place from one line to another."""
        return first in self.lines or (last in self.lines and first in self.around)


def skips_file(document: Document) -> bool:
    """Whether the author takes the whole file out. The rest of it need not even parse."""
    if _MARK not in document.utf8:
        return False
    try:
        for token in _tokens(document.utf8):
            if token.type not in _BEFORE_STATEMENTS:
                return False
            if token.type == tokenize.COMMENT and _is_alone(token) and _says_skip_file(token.string):
                return True
    except (tokenize.TokenError, SyntaxError):
        pass
    return False


def waivers_in(module: Module) -> list[Waiver]:
    """The waivers of a module, in the order of the text.

    Raises:
        SourceError: Python's tokenizer does not understand the text
    """
    if _MARK not in module.utf8:
        return []
    try:
        return list(_Reader(module).read())
    except (tokenize.TokenError, SyntaxError) as error:
        reason = f"its comments cannot be read, and one may be a waiver: {error.args[0]}"
        raise SourceError(module.path, reason) from None


class _Reader:
    """Follows the tokens of one module, line by logical line."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._statement: int | None = None  # the line on which the present logical line starts
        self._here: list[tuple[tokenize.TokenInfo, Waiver]] = []  # of the present line, or above the next code
        self._last_code = 0

    def read(self) -> Iterator[Waiver]:
        """Every waiver, with what it covers."""
        for token in _tokens(self._module.utf8):
            if token.type == tokenize.COMMENT:
                yield from self._comment(token)
            elif token.type == tokenize.NEWLINE:
                yield from self._end_of_statement(token.start[0])
            elif token.type not in _NO_CODE:
                yield from self._code(token)
        yield from (waiver for _, waiver in self._here)

    def _comment(self, token: tokenize.TokenInfo) -> Iterator[Waiver]:
        for waiver in _parsed(token, self._module.lines):
            if waiver.fault:
                yield waiver
            else:
                self._here.append((token, waiver))

    def _code(self, token: tokenize.TokenInfo) -> Iterator[Waiver]:
        """The waivers above the line of a token speak of it; those behind an earlier line of it do not any more."""
        line, column = token.start
        if self._statement is None:
            self._statement = line
            above, self._here = self._here, []
            for comment, waiver in above:
                matches = comment.start[1] == column
                yield replace(waiver, lines=self._block(line)) if matches else waiver
        elif line != self._last_code:
            before, self._here = self._here, []
            for comment, waiver in before:
                place = line if _is_alone(comment) else comment.start[0]
                yield replace(waiver, lines=range(place, place + 1), around=range(self._statement, place + 1))
        self._last_code = token.end[0]

    def _end_of_statement(self, line: int) -> Iterator[Waiver]:
        start = line if self._statement is None else self._statement
        yield from (replace(waiver, lines=range(start, line + 1)) for _, waiver in self._here)
        self._here = []
        self._statement = None

    def _block(self, line: int) -> range:
        """The lines of the statement that starts on a line."""
        return self._blocks.get(line, _NOWHERE)

    @cached_property
    def _blocks(self) -> dict[int, range]:
        """By the lines on which statements start (with their decorators, and without)."""
        blocks: dict[int, range] = {}
        for node in ast.walk(self._module.tree):
            if isinstance(node, ast.stmt) and node.end_lineno is not None:
                first = self._module.lines.position(self._module.statements.start(node))[0]
                for line in (first, node.lineno):
                    last = max(node.end_lineno, blocks[line].stop - 1 if line in blocks else 0)
                    blocks[line] = range(line, last + 1)
        return blocks


def _parsed(token: tokenize.TokenInfo, lines: Lines) -> Iterator[Waiver]:
    """The waivers in a comment, without what they cover."""
    base = lines.starts[token.start[0] - 1] + len(token.line[: token.start[1]].encode())
    for found in _DIRECTIVE.finditer(token.string):
        start, end = (base + len(token.string[:index].encode()) for index in found.span())
        codes, fault = _meaning(found["rest"])
        yield Waiver(start, end, codes, fault)


def _meaning(rest: str) -> tuple[tuple[str, ...], str]:
    """The codes of a waiver, and what is wrong with it."""
    if _SKIP_FILE.match(rest):
        return (), "skip-file has to stand on a line of its own above the first statement"
    ignore = _IGNORE.match(rest)
    if ignore is None:
        return (), "it is neither `ignore`, `ignore[CODES]` nor `skip-file`"
    if ignore["codes"] is None:
        return (), ""
    codes = tuple(code.upper() for code in re.split(r"[,\s]+", ignore["codes"]) if code)
    return codes, "" if codes else "it names no code between the brackets"


def _says_skip_file(comment: str) -> bool:
    return any(_SKIP_FILE.match(found["rest"]) for found in _DIRECTIVE.finditer(comment))


def _is_alone(token: tokenize.TokenInfo) -> bool:
    """Whether a comment has a line of its own."""
    return not token.line[: token.start[1]].strip()


def _tokens(utf8: bytes) -> Iterator[tokenize.TokenInfo]:
    """The tokens of a text; its lines end where ``ast`` ends them, at lone carriage returns too."""
    starts = Lines(utf8).starts
    pieces = (utf8[start:end] for start, end in zip(starts, [*starts[1:], len(utf8)], strict=True))
    lines = (piece.decode().rstrip("\r\n") + "\n" for piece in pieces if piece)
    return tokenize.generate_tokens(lambda: next(lines, ""))
