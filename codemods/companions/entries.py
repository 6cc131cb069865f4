"""Configuration files as entries with places. No parser of the format is needed for that, nor is a valid file.

A reader gives each scalar with the path of keys that leads to it. What stands in comments and in longer texts is no
entry of its own; a YAML block is one, as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from codemods.companions.shell_words import Word


@dataclass(frozen=True)
class Entry:
    """A scalar of a configuration file."""

    path: tuple[str, ...]
    """The keys that lead to it; an element of a list has the path of the list."""
    value: str
    """Without quotes."""
    start: int
    """In characters, of the value without its quotes."""
    is_item: bool = False
    """Whether it is an element of a list."""
    is_block: bool = False
    """Whether it is a text of several lines, which ``value`` holds as it stands in the file."""

    @property
    def end(self) -> int:
        """Behind the value."""
        return self.start + len(self.value)

    @property
    def word(self) -> Word:
        """The value as a word of a command."""
        return Word(self.value, self.start, self.end, marks=((0, self.start),))


_DEEPEST = 50
"""Of longer paths only the last keys are given, so that a file of nothing but braces is read in time, too."""

# -- JSON --------------------------------------------------------------------------------------------------------------

_JSON = re.compile(r'"((?:[^"\\\n]|\\.)*)"|//[^\n]*|/\*(?:.*?\*/|.*)|[{}\[\],:]|[^\s{}\[\],:"/]+', re.DOTALL)


def json_entries(text: str) -> Iterator[Entry]:
    """The scalars of a JSON document, or of one with comments; doubled keys are two entries."""
    yield from _flow(text, _JSON)


def _flow(text: str, tokens: re.Pattern[str], base: int = 0, above: tuple[str, ...] = ()) -> Iterator[Entry]:
    """The scalars of nested objects and lists: those of JSON, and of YAML's flow style."""
    path: list[str] = list(above)
    opened: list[tuple[str, int]] = []
    scalar: tuple[str, int] | None = None
    for match in tokens.finditer(text):
        token = match[0]
        if token in ("{", "["):
            opened.append((token, len(path)))
        elif token == ":" and scalar is not None and opened and opened[-1][0] == "{":
            path[opened[-1][1] :] = [scalar[0]]
            scalar = None
        elif token in (",", "}", "]"):
            if scalar is not None:
                yield Entry(tuple(path[-_DEEPEST:]), *scalar, is_item=bool(opened) and opened[-1][0] == "[")
                scalar = None
            if token != "," and opened:
                del path[opened.pop()[1] :]
            if token == "," and opened and opened[-1][0] == "{":
                del path[opened[-1][1] :]
        elif not token.startswith(("//", "/*", "#")):
            quoted = match.lastindex
            value, start = (match[quoted], match.start(quoted)) if quoted else (token, match.start())
            scalar = value.strip(), base + start + len(value) - len(value.lstrip())


# -- YAML --------------------------------------------------------------------------------------------------------------

_YAML_QUOTED_KEY = re.compile(r""""((?:[^"\\\n]|\\.)*)"[ \t]*:(?=\s|\Z)|'((?:[^'\n]|'')*)'[ \t]*:(?=\s|\Z)""")
_COLON = re.compile(r":(?=\s|\Z)")
_NO_KEY = tuple("#&*!|>%@`\"'{}[],?")
_DASH = re.compile(r"-(?:[ \t]+|(?=\r?\n|\Z))")
_BLANKS = re.compile(r"[ \t]*")
_YAML_FLOW = re.compile(
    r""""((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)'|\#[^\n]*|[{}\[\],]
    |:(?=[\s,}\]]|(?<=["']:))                                       # between a key and its value
    |(?:[^\s{}\[\],:"'\#]|:(?![\s,}\]])|(?<=\S)[ ](?=[^\s{}\[\],:\#]))+  # a plain scalar with its blanks""",
    re.VERBOSE,
)
_PROPERTY = re.compile(r"[&!][^\s,\[\]{}]*[ \t]*")
_BLOCK = re.compile(r"[|>][+\-\d]*[ \t]*(?:#[^\n]*)?\r?$")
_COMMENT = re.compile(r"(?:(?<=[ \t])|\A)#.*\Z", re.DOTALL)


def yaml_entries(text: str) -> Iterator[Entry]:
    """The scalars of a YAML document or of several, in block style and in flow style."""
    yield from _Yaml(text).entries()


class _Yaml:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._above: list[tuple[int, str]] = []

    def entries(self) -> Iterator[Entry]:
        while self._at < len(self._text):
            line = self._line()
            stripped = line.lstrip(" ")
            if not stripped.strip() or stripped.startswith(("#", "%")) or line.startswith(("---", "...")):
                self._above = [] if line.startswith(("---", "...")) else self._above
                self._at += len(line)
                continue
            yield from self._node(self._at + len(line) - len(stripped), len(line) - len(stripped), self._at + len(line))

    def _line(self) -> str:
        end = self._text.find("\n", self._at) + 1 or len(self._text)
        return self._text[self._at : end]

    def _node(self, at: int, column: int, end: int) -> Iterator[Entry]:
        """What stands in a line from a column on: dashes of lists, a key, a value."""
        is_item, around = False, column
        while (dash := _DASH.match(self._text, at, end)) is not None:
            is_item, around = True, column
            self._leave(column, is_item)
            at, column = dash.end(), column + dash.end() - at
        if not is_item:
            self._leave(column, is_item)
        key, behind = self._key(at, end)
        if key is not None:
            self._leave(column, False)
            self._above.append((column, key))
            at, is_item, around = behind, False, column
        yield from self._value(at, around, end, is_item)

    def _key(self, at: int, end: int) -> tuple[str | None, int]:
        """The key that a line begins with, and where its value begins."""
        if quoted := _YAML_QUOTED_KEY.match(self._text, at, end):
            return quoted[1] or quoted[2] or "", quoted.end()
        colon = _COLON.search(self._text, at, end)
        if colon is None or self._text.startswith(_NO_KEY, at) or self._text.find(" #", at, colon.start()) >= 0:
            return None, at
        return self._text[at : colon.start()].rstrip(), colon.end()

    def _leave(self, column: int, is_item: bool) -> None:
        """Forgets the keys that a line at this column does not stand under; a list may stand right below its key."""
        while self._above and (self._above[-1][0] > column or (self._above[-1][0] == column and not is_item)):
            self._above.pop()

    def _value(self, at: int, column: int, end: int, is_item: bool) -> Iterator[Entry]:
        """What a key or a dash at ``column`` holds."""
        blanks = _BLANKS.match(self._text, at, end)
        at = blanks.end() if blanks else at
        while (found := _PROPERTY.match(self._text, at, end)) is not None:
            at = found.end()
        path = tuple(key for _, key in self._above)
        first = self._text[at : at + 1]
        self._at = end
        if _BLOCK.match(self._text[at:end].rstrip("\n")):
            yield self._block(path, column, end, is_item)
        elif first and first in "\"'":
            yield self._quoted(path, at, first, is_item)
        elif first and first in "{[":
            close = self._flow_end(at)
            self._at = self._text.find("\n", close) + 1 or len(self._text)
            yield from _flow(self._text[at:close], _YAML_FLOW, at, path)
        else:
            value = _COMMENT.sub("", self._text[at:end].rstrip())
            if value:
                yield Entry(path, value.rstrip(), at, is_item)

    def _block(self, path: tuple[str, ...], column: int, start: int, is_item: bool) -> Entry:
        while self._at < len(self._text):
            line = self._line()
            if line.strip() and len(line) - len(line.lstrip(" ")) <= column:
                break
            self._at += len(line)
        return Entry(path, self._text[start : self._at], start, is_item, is_block=True)

    def _quoted(self, path: tuple[str, ...], at: int, quote: str, is_item: bool) -> Entry:
        end = at + 1
        while end < len(self._text) and self._text[end] != quote:
            end += 2 if self._text[end] == "\\" and quote == '"' else 1
        self._at = self._text.find("\n", end) + 1 or len(self._text)
        return Entry(path, self._text[at + 1 : end], at + 1, is_item)

    def _flow_end(self, at: int) -> int:
        level = 0
        for match in _YAML_FLOW.finditer(self._text, at):
            level += {"{": 1, "[": 1, "}": -1, "]": -1}.get(match[0], 0)
            if not level:
                return match.end()
        return len(self._text)


# -- TOML and setup.cfg ------------------------------------------------------------------------------------------------

_TOML = re.compile(
    r'''"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'|\#[^\n]*|[{}\[\],=\n]|[^\s{}\[\],=\#"']+''',
    re.DOTALL,
)


def toml_entries(text: str) -> Iterator[Entry]:
    """The scalars of a TOML document, those in lists and inline tables included."""
    table: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    key: list[str] = []
    opened: list[tuple[str, tuple[str, ...]]] = []
    header: list[str] | None = None
    in_value = False
    for match in _TOML.finditer(text):
        token = match[0]
        if token.startswith(("#", '"""', "'''")):
            continue
        value = match[match.lastindex] if match.lastindex else token
        if token == "\n":
            if not opened:
                table = tuple(header) if header is not None else table
                path, key, header, in_value = table, [], None, False
        elif header is not None:
            header += [] if token in "[]" else _dotted(token, value)
        elif token == "=":
            path, key, in_value = (*(opened[-1][1] if opened else table), *key)[-_DEEPEST:], [], True
        elif token == "[" and not in_value and not opened and not key:
            header = []
        elif token in "{[":
            opened.append((token, path))
            in_value = token == "["
        elif token in "}]":
            if opened:
                _, path = opened.pop()
        elif token == ",":
            in_value = bool(opened) and opened[-1][0] == "["
            path = opened[-1][1] if opened else path
        elif in_value:
            start = match.start(match.lastindex) if match.lastindex else match.start()
            yield Entry(path, value, start, is_item=bool(opened) and opened[-1][0] == "[")
        else:
            key += _dotted(token, value)


def _dotted(token: str, value: str) -> list[str]:
    return [value] if token != value else [part for part in value.split(".") if part]


_SECTION = re.compile(r"\[([^\]]*)\]")
_OPTION = re.compile(r"([^\s=:#;][^=:]*?)[ \t]*[=:]")


def ini_entries(text: str) -> Iterator[Entry]:
    """The lines of the values of a ``setup.cfg``."""
    section, option, at = "", "", 0
    for line in text.splitlines(keepends=True):
        start, end = at, at + len(line)
        at = end
        if line.lstrip().startswith(("#", ";")):
            continue
        if found := _SECTION.match(line):
            section, option = found[1], ""
            continue
        if found := _OPTION.match(line):
            option, start = found[1], start + found.end()
        value = text[start:end]
        if value.strip() and option:
            yield Entry((section, option), value.strip(), start + len(value) - len(value.lstrip()), is_item=True)
