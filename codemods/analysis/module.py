"""One parsed module: its text, tree, names and statements."""

from __future__ import annotations

import ast
import warnings
from functools import cached_property
from pathlib import Path

from codemods.analysis.names import Names
from codemods.analysis.positions import Lines
from codemods.analysis.statements import Statements
from codemods.source.document import Document, SourceError


class Module:
    """A Python file as the codemods see it.

    Raises:
        SourceError: the text does not parse as Python 3
    """

    def __init__(self, document: Document) -> None:
        self.path: Path = document.path
        self.text = document.text
        self.utf8 = document.utf8
        self.newline = document.newline
        self.tree = parse(document.path, document.text)
        self.lines = Lines(self.utf8)
        try:
            self.names = Names(self.tree, self.lines)
        except RecursionError:
            raise SourceError(self.path, "is nested too deeply to be read") from None
        self.statements = Statements(self.tree, self.lines, self.utf8)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1, the column in characters."""
        line, column = self.lines.position(offset)
        start = self.lines.starts[line - 1]
        return line, len(self.utf8[start : start + column].decode()) + 1

    @cached_property
    def is_test(self) -> bool:
        """Whether the file holds tests, by its name or by what it imports."""
        by_name = self.path.name.startswith(("test_", "conftest")) or self.path.name.endswith(("_test.py", "tests.py"))
        frameworks = ("pytest", "unittest", "torch.testing")
        return by_name or any(True for framework in frameworks for _ in self.names.imported_as(framework))


def parse(path: Path, text: str) -> ast.Module:
    """The tree of a text, with an error that a user can act on instead of a ``SyntaxError``."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes and the like are the file's business
            return ast.parse(text)
    except SyntaxError as error:
        raise SourceError(path, f"does not parse: {_advice(error, text)}", error.lineno) from None
    except (RecursionError, MemoryError, ValueError) as error:
        raise SourceError(path, f"cannot be parsed: {error or type(error).__name__}", None) from None


def _advice(error: SyntaxError, text: str) -> str:
    line = _line(text, error.lineno)
    if "async=" in line.replace(" ", ""):
        return "`async` is a keyword since Python 3.7; write `non_blocking`"
    if "print" in (error.msg or "") or line.lstrip().startswith(("print ", "exec ")):
        return f"{error.msg} (Python 2 source?)"
    return error.msg or "invalid syntax"


def _line(text: str, number: int | None) -> str:
    lines = text.split("\n")
    return lines[number - 1] if number and number <= len(lines) else ""
