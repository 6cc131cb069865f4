"""Shell text as commands and words with their places: what is quoted, expanded, nested, continued or a here-document.

It follows the grammar of bash as far as words and their places need it, and gives up on nothing: a text that is no
shell gives words that no rule speaks of.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from functools import cached_property

_ARRAY = re.compile(r"\w+\+?=\Z")
_CONTINUED = re.compile(r"\\\r?\n")
_REDIRECTION = re.compile(r"<<<|<<-?|[<>]\(|&?[<>]+[&|]?")
_DEEPEST = 40
"""Nested substitutions beyond this depth are not looked into."""


@dataclass(frozen=True)
class Word:
    """A word of a command, without its quotes."""

    text: str
    start: int
    """In characters of the text that was read, as is ``end``."""
    end: int
    expands: bool = False
    """Whether the shell puts something in: a variable, a command's output."""
    marks: tuple[tuple[int, int], ...] = ()
    """Where pieces of ``text`` stand in what was read: an index into it, and that place."""

    def place(self, index: int) -> int:
        """Where a character of ``text`` stands in what was read."""
        mark = self.marks[bisect_right(self.marks, (index, sys.maxsize)) - 1] if self.marks else (0, self.start)
        return mark[1] + index - mark[0]


@dataclass(frozen=True)
class HereDocument:
    """The lines that ``<<`` hands to a command."""

    text: str
    start: int

    def place(self, index: int) -> int:
        """Where a character of ``text`` stands in what was read."""
        return self.start + index


@dataclass
class Command:
    """A simple command, or the elements of an array."""

    words: list[Word] = field(default_factory=list)
    here: list[HereDocument] = field(default_factory=list)
    is_array: bool = False


def commands(text: str) -> list[Command]:
    """The commands of a text, those within others included, each with its words in their order."""
    reader = _Reader(text)
    reader.read("", 0)
    return reader.commands


@dataclass
class _Builder:
    """A word in the making."""

    text: str = ""
    expands: bool = False
    marks: list[tuple[int, int]] = field(default_factory=list)

    def add(self, piece: str, at: int) -> None:
        """Appends a piece that stands at a place."""
        if not self.marks or self.marks[-1][1] + len(self.text) - self.marks[-1][0] != at:
            self.marks.append((len(self.text), at))
        self.text += piece


@dataclass
class _Pending:
    """A here-document that begins with the next line."""

    command: Command
    end: str


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.commands: list[Command] = []
        self._stop = ""
        self._pending: list[_Pending] = []

    def read(self, stop: str, depth: int) -> None:
        """Reads commands up to the character ``stop`` that closes the substitution they stand in, or to the end."""
        command, open_brackets = Command(), 0
        outer, self._stop = self._stop, stop
        while self.at < len(self.text):
            character = self.text[self.at]
            if character in " \t\r":
                self.at += 1
            elif continued := _CONTINUED.match(self.text, self.at):
                self.at = continued.end()
            elif character == "#":
                self._skip_line()
            elif character == stop and not open_brackets:
                break
            elif self.text.startswith("((", self.at) and not command.words:
                self._skip_past("))")
            elif character in "\n;&|()":
                open_brackets = max(0, open_brackets + (character == "(") - (character == ")"))
                command = self._finished(command)
                self.at += 1
                if character == "\n":
                    self._read_here_documents()
            elif character in "<>":
                self._redirection(command, depth)
            else:
                command.words.append(self._word(depth))
        self._finished(command)
        self._stop = outer
        self.at += 1

    def _finished(self, command: Command) -> Command:
        if command.words or any(pending.command is command for pending in self._pending):
            self.commands.append(command)
            return Command()
        return command

    # -- words ---------------------------------------------------------------------------------------------------------

    def _word(self, depth: int) -> Word:
        start, word = self.at, _Builder()
        while self.at < len(self.text):
            character = self.text[self.at]
            if character in " \t\r\n;&|<>)" or character == self._stop:
                break
            if character == "(":
                if depth >= _DEEPEST or not _ARRAY.match(word.text):
                    break
                self._array(depth)
            elif character == "'":
                self._single_quoted(word)
            elif character == '"':
                self._double_quoted(word, depth)
            elif character == "\\":
                self._escaped(word)
            elif character in "$`":
                self._expansion(word, depth)
            else:
                word.add(character, self.at)
                self.at += 1
        self.at = min(self.at + (self.at == start), len(self.text))  # a bracket may begin no array
        return Word(word.text, start, self.at, word.expands, tuple(word.marks))

    def _escaped(self, word: _Builder) -> None:
        if continued := _CONTINUED.match(self.text, self.at):
            self.at = continued.end()
        else:
            word.add(self.text[self.at + 1 : self.at + 2], self.at + 1)
            self.at += 2

    def _single_quoted(self, word: _Builder) -> None:
        end = self.text.find("'", self.at + 1)
        end = len(self.text) if end < 0 else end
        word.add(self.text[self.at + 1 : end], self.at + 1)
        self.at = end + 1

    def _double_quoted(self, word: _Builder, depth: int) -> None:
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != '"':
            character = self.text[self.at]
            if character == "\\" and self.text[self.at + 1 : self.at + 2] in '$`"\\\r\n':
                self._escaped(word)
            elif character in "$`":
                self._expansion(word, depth)
            else:
                word.add(character, self.at)
                self.at += 1
        self.at += 1

    def _expansion(self, word: _Builder, depth: int) -> None:
        """Reads ``$NAME``, ``${...}``, ``$(...)`` or a backquote; its source becomes part of the word."""
        start = self.at
        word.expands = True
        if self.text.startswith("$((", start):
            self._skip_past("))")
        elif self.text.startswith("$(", start):
            self._substitution(2, ")", depth)
        elif self.text[start] == "`":
            self._substitution(1, "`", depth)
        elif self.text.startswith("${", start):
            self._skip_braces()
        elif self.text.startswith("$'", start):
            self.at += 1
            self._single_quoted(word)
            return
        else:
            self.at += 1
        self.at = min(self.at, len(self.text))
        word.add(self.text[start : self.at], start)

    def _substitution(self, opening: int, stop: str, depth: int) -> None:
        self.at += opening
        if depth < _DEEPEST:
            self.read(stop, depth + 1)
        else:
            self.at = len(self.text)

    def _array(self, depth: int) -> None:
        self.at += 1
        elements = Command(is_array=True)
        while self.at < len(self.text) and self.text[self.at] != ")":
            character = self.text[self.at]
            if continued := _CONTINUED.match(self.text, self.at):
                self.at = continued.end()
            elif character in " \t\r\n;&|<>":
                self.at += 1
            elif character == "#":
                self._skip_line()
            else:
                elements.words.append(self._word(depth + 1))
        self.at += 1
        self.commands.append(elements)

    # -- redirections --------------------------------------------------------------------------------------------------

    def _redirection(self, command: Command, depth: int) -> None:
        operator = _REDIRECTION.match(self.text, self.at)
        assert operator is not None
        self.at = operator.end()
        if operator[0] in ("<(", ">("):
            self._substitution(0, ")", depth)
            return
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1
        if self.at < len(self.text) and self.text[self.at] not in "\r\n;&|<>()":
            target = self._word(depth)
            if operator[0] in ("<<", "<<-"):
                self._pending.append(_Pending(command, target.text))

    def _read_here_documents(self) -> None:
        for pending in self._pending:
            ends = self._lines.get(pending.end, ())
            following = bisect_left(ends, self.at)
            if following < len(ends):  # else it is no here-document, but a `<<` of some template
                pending.command.here.append(HereDocument(self.text[self.at : ends[following]], self.at))
                self.at = ends[following]
                self._skip_line()
        self._pending.clear()

    @cached_property
    def _lines(self) -> dict[str, list[int]]:
        """Where each line begins, by its text without indentation: a script in YAML is indented as a whole."""
        begins: dict[str, list[int]] = {}
        at = 0
        for line in self.text.split("\n"):
            begins.setdefault(line.strip(), []).append(at)
            at += len(line) + 1
        return begins

    # -- skipping ------------------------------------------------------------------------------------------------------

    def _skip_line(self) -> None:
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    def _skip_past(self, end: str) -> None:
        found = self.text.find(end, self.at)
        self.at = len(self.text) if found < 0 else found + len(end)

    def _skip_braces(self) -> None:
        level = 0
        self.at += 1
        while self.at < len(self.text):
            level += {"{": 1, "}": -1}.get(self.text[self.at], 0)
            self.at += 1
            if not level:
                return
