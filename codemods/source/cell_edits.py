"""Edits of a cell's source as edits of the JSON text that it stands in.

Only the replaced characters change there: the escapes, the layout of the list of lines and everything else stay.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from codemods.source.edits import Edit, in_order
from codemods.source.notebook import Cell, Notebook

_CHARACTERS = re.compile(
    rb"(?P<plain>[^\\]+)|\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u[\da-fA-F]{4}|\\.", re.DOTALL
)
_NEWLINE = re.compile(r"\r\n|\n")
_LAST_NEWLINE = re.compile(rb"(?:\r\n|\n)\Z")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


class CellEdits:
    """Translates edits of one cell; their offsets are bytes of its source in UTF-8."""

    def __init__(self, notebook: Notebook, cell: Cell) -> None:
        self._json = notebook.document.utf8
        self._cell = cell
        self._starts = [0, *accumulate(len(piece.text.encode()) for piece in cell.pieces)][:-1]
        self._ascii = self._json.isascii()
        self._separators = _separators(notebook, cell)
        self._newline = _newline(cell.text)

    def of_source(self, edits: Sequence[Edit]) -> list[Edit]:
        """Edits that can be made together: brought within the source, with the line ends that the cell has.

        The removal of the last line takes the line end before it along: a cell ends without one.

        Args:
            edits: they may reach one byte beyond the source, the line end that is thought behind it
        """
        source = self._cell.utf8
        result: list[Edit] = []
        for edit in in_order(edits):
            if edit.end > len(source) + 1:
                raise ValueError(f"an edit of bytes {edit.start} to {edit.end} goes beyond its cell")
            start, end = min(edit.start, len(source)), min(edit.end, len(source))
            text = _NEWLINE.sub(lambda _: self._newline, edit.replacement)
            previous = result[-1] if result else Edit(0, 0, "")
            if previous.end == start and not previous.replacement and not text and result:
                start = result.pop().start  # two removals side by side are one
                previous = result[-1] if result else Edit(0, 0, "")
            if start < end < edit.end and not text and (newline := _LAST_NEWLINE.search(source, 0, start)):
                start = max(newline.start(), previous.end)
            result.append(Edit(start, end, text))
        return result

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where a stretch of the source, of one byte or more, stands in the JSON text."""
        return self._place(start, before_break=False), self._place(end, before_break=True)

    def of_json(self, edit: Edit) -> Edit:
        """The edit of the JSON text that makes an edit of the source."""
        at_the_end = edit.end == len(self._cell.utf8)
        end = self._place(edit.end, before_break=at_the_end)
        if edit.start == edit.end:
            start = end
        else:
            start = self._place(edit.start, before_break=at_the_end and not edit.replacement)
        return Edit(start, end, self._written(edit, at_the_end=at_the_end))

    def _place(self, offset: int, *, before_break: bool) -> int:
        """Where a byte of the source stands in the JSON text.

        Between two strings of a list that is at the start of the second one, or at the end of the first one.
        """
        index = max((bisect_right(self._starts, offset - before_break) - 1), 0)
        piece = self._cell.pieces[index]
        rest = offset - self._starts[index]
        at = piece.start + 1
        for match in _CHARACTERS.finditer(self._json, at, piece.end - 1):
            width = len(match.group()) if match["plain"] is not None else _width(match.group())
            if rest < width:
                if match["plain"] is None and rest:
                    raise ValueError(f"byte {offset} of the cell is inside a character")
                return match.start() + rest
            rest -= width
        return piece.end - 1

    def _written(self, edit: Edit, *, at_the_end: bool) -> str:
        """A replacement as it stands in the string, cut into strings of the list at its line ends."""
        if not self._cell.is_list:
            return self._escaped(edit.replacement)
        lines: list[str] = _LINE.findall(edit.replacement)
        separator = f'"{self._separator_at(edit.start)}"'
        if lines and not at_the_end and lines[-1].endswith(self._newline):
            lines.append("")
        if lines and at_the_end and edit.start == edit.end and self._cell.text.endswith(self._newline):
            lines.insert(0, "")
        return separator.join(map(self._escaped, lines))

    def _escaped(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=self._ascii)[1:-1]

    def _separator_at(self, offset: int) -> str:
        index = min(max(bisect_right(self._starts, offset) - 1, 0), len(self._separators) - 1)
        return self._separators[index]


def _width(escape: bytes) -> int:
    return len(json.loads(b'"' + escape + b'"').encode())


def _newline(text: str) -> str:
    windows = text.count("\r\n")
    return "\r\n" if windows * 2 > text.count("\n") else "\n"


def _separators(notebook: Notebook, cell: Cell) -> list[str]:
    """What stands between the strings of a list; for a list of one, what other lists of the notebook have there."""
    own = list(_between(notebook, cell))
    if own:
        return own
    lead = notebook.document.utf8[cell.start + 1 : cell.pieces[0].start] if cell.is_list and cell.pieces else b""
    if lead:
        return ["," + lead.decode()]
    others = (between for other in notebook.cells for between in _between(notebook, other))
    return [next(others, ", ")]


def _between(notebook: Notebook, cell: Cell) -> Iterator[str]:
    for piece, following in zip(cell.pieces, cell.pieces[1:], strict=False):
        yield notebook.document.utf8[piece.end : following.start].decode()
