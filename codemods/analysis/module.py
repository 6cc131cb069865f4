"""One parsed module: its text, tree, names and statements."""

from __future__ import annotations

import ast
import warnings
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from codemods.analysis.device_layers import DeviceLayers
from codemods.analysis.integer_devices import device_variables, index_variables
from codemods.analysis.names import Names
from codemods.analysis.positions import Lines
from codemods.analysis.statements import Statements
from codemods.source.document import Document, SourceError


@dataclass(frozen=True)
class Part:
    """A stretch of a text that stands for itself: a code cell of a notebook. A Python file is one part."""

    start: int
    end: int
    takes_imports: bool = True
    """Whether a name that is imported in it is known behind it."""


class Module:
    """A Python file as the codemods see it, or the code cells of a notebook.

    Args:
        document: the text
        parts: what it consists of, in order; nothing for the text as a whole
        unread: what belongs to it, and may use its names, and is no Python that can be read

    Raises:
        SourceError: the text does not parse as Python 3
    """

    def __init__(self, document: Document, parts: Sequence[Part] = (), unread: str = "") -> None:
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
        self.parts = tuple(parts) or (Part(0, len(self.utf8)),)
        self.unread = unread

    @property
    def is_notebook(self) -> bool:
        """Whether its parts are the cells of a notebook."""
        return self.path.suffix == ".ipynb"

    def part_at(self, offset: int) -> Part:
        """The part that holds an offset, or the last one before it."""
        index = bisect_right(self.parts, offset, key=lambda part: part.start) - 1
        return self.parts[max(index, 0)]

    @cached_property
    def layers(self) -> DeviceLayers:
        """The device layers of frameworks that the module has at hand."""
        return DeviceLayers(self.names)

    @cached_property
    def index_variables(self) -> set[str]:
        """Variables that hold the index of a device."""
        return index_variables(self)

    @cached_property
    def device_variables(self) -> set[str]:
        """Variables that hold the index of a device and are used for nothing but devices."""
        return device_variables(self)

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
