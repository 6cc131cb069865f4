"""The change of a notebook by its cells."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace

from codemods.engine.convert import Conversion
from codemods.patch.unified import Hunk, file_head, hunks


def cells_patch(name: str, conversion: Conversion) -> bytes:
    """The changed lines of each cell as they are seen in it; the numbers of the ``@@`` lines are those of the cell."""
    pieces = [file_head(name)]
    for cell in conversion.cells:
        for hunk in hunks(_ended(cell.before), _ended(cell.after)):
            pieces.append(replace(hunk, heading=f"cell {cell.number}").render())
    return b"".join(pieces)


def cell_headings(conversion: Conversion) -> Callable[[Hunk], str]:
    """What the hunks of the JSON text are headed by: the cells that change in them."""
    raw, shift = conversion.document.raw, len(conversion.document.raw) - len(conversion.document.utf8)
    starts = [cell.start for cell in conversion.cells]
    places = [
        (raw.count(b"\n", 0, edit.start + shift), conversion.cells[bisect_right(starts, edit.start) - 1].number)
        for edit in conversion.edits
    ]

    def heading(hunk: Hunk) -> str:
        lines = range(hunk.before_start, hunk.before_start + hunk.before_count)
        numbers = sorted({cell for line, cell in places if line in lines})
        return ", ".join(f"cell {number}" for number in numbers)

    return heading


def _ended(source: bytes) -> bytes:
    """A cell's source with a last line end: most have none, and it is nothing to speak of."""
    return source if not source or source.endswith(b"\n") else source + b"\n"
