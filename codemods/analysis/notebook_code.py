"""The code cells of a notebook as one Python text, so that an import in one cell gives names in the next a meaning."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from codemods.analysis.ipython import CellCode, Hidden, Kind, covered, read_cell
from codemods.analysis.module import Part, parse
from codemods.analysis.positions import Lines
from codemods.analysis.scan import load_triggers
from codemods.source.document import Document, SourceError
from codemods.source.notebook import Cell, Notebook

_BLOCK = b"if 1:\n"


@dataclass(frozen=True)
class Place:
    """A place in a cell."""

    cell: Cell
    offset: int
    """In the cell's source in UTF-8."""

    @property
    def line_and_column(self) -> tuple[int, int]:
        """Both from 1, the column in characters."""
        lines = Lines(self.cell.utf8)
        line, column = lines.position(self.offset)
        start = lines.starts[line - 1]
        return line, len(self.cell.utf8[start : start + column].decode("utf-8", "replace")) + 1


@dataclass(frozen=True)
class HiddenCode:
    """What a magic or a shell is given; offsets are those of the joined code, where a comment stands for it."""

    kind: Kind
    magic: str
    """E.g. ``%%writefile`` or ``!``."""
    text: bytes
    start: int
    """Where ``text`` starts."""
    span: tuple[int, int]
    """All that is hidden, the magic included."""


class NotebookCode:
    """The joined code of a notebook. Behind each cell stands a line end that is not the cell's."""

    def __init__(self, notebook: Notebook) -> None:
        self._cells = notebook.cells
        self.failures: list[SourceError] = []
        """One for each cell that mentions CUDA and cannot be read; a comment stands for it."""
        self.hidden: list[HiddenCode] = []
        self.unread = ""
        """All text that is hidden: it may use names of the notebook."""
        joined = bytearray()
        parts: list[Part] = []
        for cell in notebook.cells:
            code = self._readable(cell, notebook)
            self.unread += "".join(f"{cell.utf8[h.start : h.end].decode()} " for h in code.hidden)
            joined += _BLOCK if code.is_indented else b""
            parts.append(_part(code, len(joined)))
            self.hidden += _hidden_code(code, cell, len(joined))
            joined += code.python + b"\n"
        self.parts = tuple(parts)
        self.document = Document(notebook.document.path, bytes(joined), joined.decode(), "utf-8", bom=False)

    def place(self, offset: int) -> Place:
        """The place in a cell that an offset stands for; one behind a cell is its end."""
        index = max(bisect_right(self.parts, offset, key=lambda part: part.start) - 1, 0)
        part = self.parts[index]
        return Place(self._cells[index], min(offset, part.end) - part.start)

    def is_hidden(self, start: int, end: int) -> bool:
        """Whether a stretch reaches into what is hidden, or is a place within it."""
        return any(hidden.span[0] < end and start < hidden.span[1] for hidden in self.hidden)

    def placed(self, error: SourceError) -> SourceError:
        """An error of the joined code with its place in a cell."""
        if error.line is None:
            return error
        starts = Lines(self.document.utf8).starts
        place = self.place(starts[min(error.line, len(starts)) - 1])
        return SourceError(error.path, error.reason, place.line_and_column[0], place.cell.number)

    def _readable(self, cell: Cell, notebook: Notebook) -> CellCode:
        """The code of a cell; a comment for one that cannot be read."""
        code = read_cell(cell.utf8)
        if code.parses and cell.is_whole:
            return code
        if load_triggers().mentioned_in(cell.utf8):
            self.failures.append(_failure(code, cell, notebook))
        everything = Hidden(0, len(cell.utf8), "prose", (0, 0))
        return CellCode(covered(cell.utf8), (everything,))


def _part(code: CellCode, start: int) -> Part:
    return Part(start, start + len(code.python), takes_imports=not (code.is_local or code.is_indented))


def _hidden_code(code: CellCode, cell: Cell, base: int) -> list[HiddenCode]:
    return [
        HiddenCode(
            hidden.kind,
            hidden.magic,
            cell.utf8[hidden.code[0] : hidden.code[1]],
            base + hidden.code[0],
            (base + hidden.start, base + hidden.end),
        )
        for hidden in code.hidden
    ]


def _failure(code: CellCode, cell: Cell, notebook: Notebook) -> SourceError:
    path = notebook.document.path
    reason, line = "holds half a character (a lone surrogate), which Python cannot read", 1
    if cell.is_whole:
        try:
            parse(path, code.python.decode())
        except SourceError as error:
            reason, line = error.reason, error.line or 1
    return SourceError(path, reason, line, cell.number)
