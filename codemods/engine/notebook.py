"""Converts a notebook: its code cells as one module, and the edits brought back into the JSON text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from codemods.analysis.module import Module
from codemods.analysis.notebook_code import NotebookCode
from codemods.analysis.project import Project
from codemods.engine.convert import CellChange, Conversion, HelperNames, Options, convert_module
from codemods.engine.hidden_code import hidden_findings
from codemods.findings import Finding
from codemods.source.cell_edits import CellEdits
from codemods.source.document import Document, SourceError
from codemods.source.edits import Edit, apply_edits
from codemods.source.notebook import Cell, Notebook, read_notebook


def convert_notebook(
    document: Document, project: Project, helper: HelperNames, options: Options, *, whole_module: bool = False
) -> Conversion:
    """Converts the code cells of a notebook; the offsets of findings and edits are those of the JSON text.

    A cell that cannot be read is left, and is a failure of the result.

    Raises:
        SourceError: the file is no notebook, or cannot be changed safely
    """
    notebook = read_notebook(document)
    code = NotebookCode(notebook)
    try:
        module = Module(code.document, code.parts, code.unread)
        converted = convert_module(
            module, code.document, project, helper, options, besides=hidden_findings(code), whole_module=whole_module
        )
    except SourceError as error:
        raise code.placed(error) from None
    return _Return(notebook, code).conversion(converted)


class _Return:
    """The way back from the joined code of the cells to the JSON text."""

    def __init__(self, notebook: Notebook, code: NotebookCode) -> None:
        self._notebook = notebook
        self._code = code
        self._cells: dict[int, CellEdits] = {}

    def conversion(self, converted: Conversion) -> Conversion:
        """The conversion of the notebook that a conversion of its code comes to."""
        document = self._notebook.document
        applied = set(map(id, converted.applied))
        pairs = [(self._finding(finding), id(finding) in applied) for finding in converted.findings]
        by_cell = self._edits_by_cell(converted.edits)
        edits = [self._cell(cell).of_json(edit) for cell, edits in by_cell for edit in edits]
        result = Conversion(
            document=document,
            findings=tuple(finding for finding, _ in pairs),
            applied=tuple(finding for finding, is_applied in pairs if is_applied),
            edits=tuple(edits),
            after=document.with_edits(edits),
            needs_helper=converted.needs_helper,
            helper=converted.helper,
            cells=tuple(_change(cell, edits) for cell, edits in by_cell),
            failures=tuple(self._code.failures),
        )
        if result.changed:
            _verify(self._notebook, result)
        return result

    def _finding(self, finding: Finding) -> Finding:
        place = self._code.place(finding.start)
        line, column = place.line_and_column
        length = finding.end - finding.start
        start, end = self._cell(place.cell).span(place.offset, place.offset + length)
        return replace(
            finding,
            start=start,
            end=end,
            line=line,
            column=column,
            cell=place.cell.number,
            edits=tuple(map(self._to_json, finding.edits)),
        )

    def _to_json(self, edit: Edit) -> Edit:
        ((cell, edits),) = self._edits_by_cell([edit])
        return self._cell(cell).of_json(edits[0])

    def _edits_by_cell(self, edits: Iterable[Edit]) -> list[tuple[Cell, list[Edit]]]:
        """Edits of the joined code as edits of the cells, in the order of the cells."""
        found: dict[int, tuple[Cell, list[Edit]]] = {}
        for edit in edits:
            if self._code.is_hidden(edit.start, edit.end):
                raise ValueError(f"an edit at byte {edit.start} of the code would change what is not Python")
            place = self._code.place(edit.start)
            shift = edit.start - place.offset
            local = Edit(place.offset, edit.end - shift, edit.replacement)
            found.setdefault(place.cell.number, (place.cell, []))[1].append(local)
        return [(cell, self._cell(cell).of_source(local)) for _, (cell, local) in sorted(found.items())]

    def _cell(self, cell: Cell) -> CellEdits:
        if cell.number not in self._cells:
            self._cells[cell.number] = CellEdits(self._notebook, cell)
        return self._cells[cell.number]


def _change(cell: Cell, edits: Sequence[Edit]) -> CellChange:
    return CellChange(cell.number, cell.start, cell.utf8, apply_edits(cell.utf8, edits))


def _verify(notebook: Notebook, result: Conversion) -> None:
    """Reads the new text back: the changed cells have to be what they should, and all others what they were."""
    path = notebook.document.path
    wanted = {cell.number: cell.utf8 for cell in notebook.cells} | {cell.number: cell.after for cell in result.cells}
    again = read_notebook(Document.from_bytes(path, result.after))
    if {cell.number: cell.utf8 for cell in again.cells} != wanted:
        raise SourceError(path, "left as it is: the cells of the converted text would be wrong")
    failures = NotebookCode(again).failures
    if len(failures) > len(result.failures):
        raise SourceError(path, f"left as it is: the converted text would be wrong ({failures[0].reason})")
