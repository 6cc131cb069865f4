"""Code cells as Python: what IPython adds to the language is hidden behind text of the same length.

Offsets in the text without IPython's additions are those of the cell, and nothing of the hidden text means anything.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from codemods.analysis.magics import load_magics

_NEWLINE = re.compile(rb"\r\n|\r|\n")
_INDENT = re.compile(rb"[ \t\f]*")
_CELL_MAGIC = re.compile(
    rb"(?:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))*"  # blank lines and comments
    rb"(?P<line>[ \t]*%%(?P<name>!|\w+)[ \t]*(?P<rest>[^\r\n]*))"
)
_COMMAND = re.compile(rb"\s*(?P<name>\w+)[ \t]+(?P<rest>[^\r\n]+)\s*")
_FIRST_PROMPT = re.compile(rb"(?:[^\r\n]*(?:\r\n|\r|\n)\.\.\.(?![^ \r\n])|\s*>>>(?![^ \r\n]))")
_PROMPT = re.compile(rb"^(?:>>>|\.\.\.)(?: |(?=[\r\n]|\Z))", re.MULTILINE)
_LINE_MAGIC = re.compile(rb"%{1,2}(?P<name>!|[\w.]+)[ \t]*")
_ESCAPES = b"!%?,;/"
"""What a line begins with that is no Python: a shell command, a magic, a question, and the ways to call without ()."""
_TOKEN = re.compile(
    rb"""
    (?P<string>[rRbBuUfFtT]{0,2}(?:\"\"\"|'''|"|'))
    | \w+
    | (?P<comment>\#[^\r\n]*)
    | (?P<open>[(\[{]) | (?P<close>[)\]}])
    | (?P<joint>\\(?:\r\n|\r|\n))
    | (?P<newline>\r\n|\r|\n)
    | (?P<assign>(?<![=!<>:+\-*/%&|^@~])=(?!=)[ \t]*(?=![ \t]*[^\s=]|%[a-zA-Z_%]))
    | (?P<question>\?\??[ \t]*(?=[\r\n]|\Z))
    """,
    re.VERBOSE,
)
_STRING_ENDS = {
    quote: re.compile(rb"(?:\\.|[^\\])*?" + quote, re.DOTALL) if len(quote) == 3
    else re.compile(rb"(?:\\(?:\r\n|.)|[^\\\r\n" + quote + rb"])*" + quote, re.DOTALL)
    for quote in (b'"""', b"'''", b'"', b"'")
}  # fmt: skip

Kind = Literal["shell", "other", "prose"]


@dataclass(frozen=True)
class Hidden:
    """A stretch of a cell that is no Python of the notebook's own."""

    start: int
    end: int
    kind: Kind
    """``shell`` for a shell to run, ``prose`` for people or a browser, else ``other``."""
    code: tuple[int, int]
    """The part that is the command, or the text that a magic is given."""
    magic: str = ""
    """The magic, e.g. ``%%writefile``."""


@dataclass(frozen=True)
class CellCode:
    """A code cell as Python."""

    python: bytes
    """As long as the cell in UTF-8, with the same line ends."""
    hidden: tuple[Hidden, ...] = ()
    is_local: bool = False
    """Whether the names that it binds are gone behind it."""
    is_indented: bool = False
    """Whether it parses as a block only. IPython takes the indentation of the first line away."""
    parses: bool = True


def read_cell(utf8: bytes) -> CellCode:
    """The Python of a cell; ``parses`` tells whether it is Python once IPython's additions are hidden."""
    if _parses(utf8):
        return CellCode(utf8)
    cell = _Cell(utf8)
    cell.hide()
    code = CellCode(bytes(cell.python), tuple(cell.hidden), cell.is_local)
    if _parses(code.python):
        return code
    if _parses(b"if 1:\n" + code.python):
        return CellCode(code.python, code.hidden, code.is_local, is_indented=True)
    return CellCode(code.python, code.hidden, code.is_local, parses=False)


def covered(utf8: bytes) -> bytes:
    """A comment of the same length in the same lines."""
    return re.sub(rb"[^\r\n]", b"#", utf8)


class _Cell:
    """A cell that does not parse as it is."""

    def __init__(self, utf8: bytes) -> None:
        self._utf8 = utf8
        self._magics = load_magics()
        self.python = bytearray(utf8)
        self.hidden: list[Hidden] = []
        self.is_local = False

    def hide(self) -> None:
        """Hides everything that is IPython's."""
        magic = _CELL_MAGIC.match(self._utf8)
        command = _COMMAND.fullmatch(self._utf8)
        if magic is not None:
            self._hide_cell_magic(magic)
        elif command is not None and command["name"] in self._magics.commands:
            start, end = command.start("name"), command.end("rest")
            self._hide_as_statement(start, end, "shell", (start, end), command["name"].decode())  # `pip` is `%pip`
        elif _FIRST_PROMPT.match(self._utf8):
            self.python = bytearray(_PROMPT.sub(lambda prompt: b" " * len(prompt.group()), self._utf8))
        else:
            self._hide_lines(0)

    def _hide_cell_magic(self, magic: re.Match[bytes]) -> None:
        name = magic["name"]
        program = magic["rest"].split()[:1]
        if name == b"script" and program:
            name = program[0].rpartition(b"/")[2]  # `%%script bash` is `%%bash`
        if name in self._magics.python_cells:
            self.is_local = name in self._magics.local_cells
            self._hide_as_statement(magic.start("line"), magic.end(), "other", magic.span("rest"), f"%%{name.decode()}")
            self._hide_lines(magic.end())
        else:
            kind: Kind = "prose" if name in self._magics.prose_cells else "other"
            kind = "shell" if name in self._magics.shell_cells else kind
            code = (magic.end(), len(self._utf8))
            self._hide_as_statement(magic.start("line"), len(self._utf8), kind, code, f"%%{name.decode()}")

    def _hide_lines(self, offset: int) -> None:
        while offset < len(self._utf8):
            start = self._behind(_INDENT, offset)
            if self._utf8[start : start + 1] in (bytes([escape]) for escape in _ESCAPES):
                offset = self._hide_escape(start)
            else:
                offset = self._hide_in_line(start)

    def _hide_escape(self, start: int) -> int:
        """Hides a line that begins with an escape; where the next one starts."""
        end = self._end_of_command(start)
        text = self._utf8[start:end]
        magic = _LINE_MAGIC.match(text)
        statement = self._statement_behind(magic, start, end) if magic else None
        if statement is not None:
            assert magic is not None
            self.hidden.append(Hidden(start, statement, "prose", (start, start), f"%{magic['name'].decode()}"))
            self.python[start:statement] = b"0;".ljust(statement - start)
        else:
            self._hide_as_statement(start, end, *self._meaning(start, end))
        return self._behind(_NEWLINE, end)

    def _statement_behind(self, magic: re.Match[bytes], start: int, end: int) -> int | None:
        """Where the notebook's own statement begins behind a magic such as ``%time``, if it is a simple one."""
        options = self._magics.statements.get(magic["name"])
        if options is None or not magic.group().endswith((b" ", b"\t")):
            return None
        at = self._behind(options, start + magic.end())
        return at if _is_simple(self._utf8[at:end]) else None

    def _meaning(self, start: int, end: int) -> tuple[Kind, tuple[int, int], str]:
        """The kind, the code and the name of what begins with an escape."""
        text = self._utf8[start:end]
        if text.startswith(b"!"):
            return "shell", (start + len(text) - len(text.lstrip(b"!")), end), "!"
        magic = _LINE_MAGIC.match(text)
        if magic is None:
            return ("prose" if text.startswith(b"?") else "other"), (start, end), ""
        name = magic["name"]
        if name in self._magics.commands:
            return "shell", (start + magic.start("name"), end), f"%{name.decode()}"
        kind: Kind = "prose" if name in self._magics.prose_lines else "other"
        kind = "shell" if name in self._magics.shell_lines else kind
        return kind, (start + magic.end(), end), f"%{name.decode()}"

    def _hide_in_line(self, start: int) -> int:
        """Hides what is IPython's in a logical line; where the next one starts."""
        for token in self._tokens(start):
            if token.lastgroup == "assign":
                end = self._end_of_command(token.end())
                self._cover(token.end(), end, b"[]", *self._meaning(token.end(), end))
                return self._behind(_NEWLINE, end)
            if token.lastgroup == "question":
                self._hide_as_statement(start, token.end(), "prose", (start, start), "?")
                return self._behind(_NEWLINE, token.end())
            if token.lastgroup == "newline":
                return token.end()
        return len(self._utf8)

    def _tokens(self, offset: int) -> Iterator[re.Match[bytes]]:
        """The tokens that matter from the start of a logical line on; line ends within brackets are none."""
        depth = 0
        while (token := _TOKEN.search(self._utf8, offset)) is not None:
            offset = token.end()
            kind = token.lastgroup
            if kind == "string":
                quote = token.group().lstrip(b"rRbBuUfFtT")
                end = _STRING_ENDS[quote].match(self._utf8, offset)
                offset = end.end() if end else self._end_of_line(offset)
            elif kind in ("open", "close"):
                depth += 1 if kind == "open" else -1
            elif kind in ("assign", "question", "newline") and depth <= 0:
                yield token

    def _hide_as_statement(self, start: int, end: int, kind: Kind, code: tuple[int, int], magic: str) -> None:
        self._cover(start + len(self._indent_at(start)), end, b"0", kind, code, magic)

    def _cover(self, start: int, end: int, head: bytes, kind: Kind, code: tuple[int, int], magic: str) -> None:
        self.hidden.append(Hidden(start, end, kind, code, magic))
        self.python[start:end] = head + covered(self._utf8[start + len(head) : end])

    def _indent_at(self, offset: int) -> bytes:
        return self._utf8[offset : self._behind(_INDENT, offset)]

    def _end_of_command(self, offset: int) -> int:
        """Where the line ends that holds an offset; a backslash joins the next line to it."""
        end = self._end_of_line(offset)
        while self._utf8[offset:end].endswith(b"\\") and end < len(self._utf8):
            end = self._end_of_line(self._behind(_NEWLINE, end))
        return end

    def _end_of_line(self, offset: int) -> int:
        match = _NEWLINE.search(self._utf8, offset)
        return match.start() if match else len(self._utf8)

    def _behind(self, pattern: re.Pattern[bytes], offset: int) -> int:
        match = pattern.match(self._utf8, offset)
        return match.end() if match else offset


def _parses(utf8: bytes) -> bool:
    return _tree(utf8) is not None


def _is_simple(utf8: bytes) -> bool:
    """Whether a text is one or more statements that may share a line."""
    tree = _tree(utf8.strip())
    statements = tree.body if tree is not None else []
    return bool(statements) and not any(hasattr(s, "body") or hasattr(s, "cases") for s in statements)


def _tree(utf8: bytes) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(utf8.decode())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
