"""A Jupyter notebook: its code cells, and where each line of them stands in the JSON text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from codemods.source.document import Document, SourceError
from codemods.source.json_reader import JsonReader


@dataclass(frozen=True)
class Piece:
    """One string of the JSON text that holds source: most often one line."""

    start: int
    """Offset of its opening quote."""
    end: int
    """Offset just behind its closing quote."""
    text: str


@dataclass(frozen=True)
class Cell:
    """A code cell."""

    number: int
    """From 1, all cells counted, as Jupyter lists them."""
    pieces: tuple[Piece, ...]
    start: int
    """Offset of its source in the JSON text."""
    is_list: bool
    """Whether the source is a list of strings; else it is one string."""

    @cached_property
    def text(self) -> str:
        """The source."""
        return "".join(piece.text for piece in self.pieces)

    @cached_property
    def utf8(self) -> bytes:
        """The source as UTF-8; half a character (a lone surrogate) becomes a question mark."""
        return self.text.encode("utf-8", "replace")

    @property
    def is_whole(self) -> bool:
        """Whether no character of the source is cut in two, so that it has a form in UTF-8."""
        return self.utf8.decode() == self.text


@dataclass(frozen=True)
class Notebook:
    """A notebook of format 4."""

    document: Document
    cells: tuple[Cell, ...]
    """The code cells."""
    language: str
    """What its kernel runs, in lower case; Python where nothing is said."""

    @property
    def is_python(self) -> bool:
        """Whether its code is Python."""
        return self.language.startswith(("python", "ipython"))

    @cached_property
    def code(self) -> bytes:
        """The source of all code cells."""
        return b"\n".join(cell.utf8 for cell in self.cells)


def read_notebook(document: Document) -> Notebook:
    """The notebook in a file.

    Raises:
        SourceError: it is no JSON, no notebook, or one of a format older than 4
    """
    reader = JsonReader(document.utf8)
    try:
        notebook = _notebook(document, reader)
        reader.finish()
    except json.JSONDecodeError as error:
        raise SourceError(document.path, f"is no valid JSON: {error.msg}", error.lineno) from None
    except RecursionError:
        raise SourceError(document.path, "is nested too deeply to be read") from None
    return notebook


def _notebook(document: Document, reader: JsonReader) -> Notebook:
    if reader.next != "{":
        reader.skip()
        raise _no_notebook(document)
    cells: tuple[Cell, ...] | None = None
    metadata: object = {}
    is_old = False
    for key in reader.members():
        if key == "cells" and reader.next == "[":
            cells = tuple(_code_cells(document, reader))
        elif key == "metadata":
            metadata = reader.value()
        else:
            is_old = is_old or key == "worksheets"
            reader.skip()
    if cells is None and is_old:
        raise SourceError(document.path, "is a notebook of format 3; convert it first: jupyter nbconvert --to notebook")
    if cells is None:
        raise _no_notebook(document)
    return Notebook(document, cells, _language(metadata))


def _code_cells(document: Document, reader: JsonReader) -> Iterator[Cell]:
    for number, _ in enumerate(reader.items(), start=1):
        if reader.next != "{":
            raise _no_notebook(document)
        kind, cell = _cell(document, reader, number)
        if kind == "code":
            if cell is None:
                raise SourceError(document.path, f"is no notebook: the source of cell {number} is no text")
            yield cell


def _cell(document: Document, reader: JsonReader, number: int) -> tuple[object, Cell | None]:
    """The type of a cell, and the cell if its source is text."""
    kind: object = None
    cell: Cell | None = Cell(number, (), reader.offset, is_list=False)
    for key in reader.members():
        if key == "cell_type":
            kind = reader.value()
        elif key == "source":
            cell = _source(document, reader, number)
        else:
            reader.skip()
    return kind, cell


def _source(document: Document, reader: JsonReader, number: int) -> Cell | None:
    if reader.next == '"':
        piece = _piece(document, reader)
        return Cell(number, (piece,), piece.start, is_list=False)
    if reader.next != "[":
        reader.skip()
        return None
    start = reader.offset
    pieces: list[Piece] = []
    are_texts = True
    for _ in reader.items():
        if reader.next == '"':
            pieces.append(_piece(document, reader))
        else:
            are_texts = False
            reader.skip()
    return Cell(number, tuple(pieces), start, is_list=True) if are_texts else None


def _piece(document: Document, reader: JsonReader) -> Piece:
    start, end = reader.span()
    return Piece(start, end, json.loads(document.utf8[start:end].decode()))


def _language(metadata: object) -> str:
    """What the kernel says of itself, else what the kernel was installed for."""
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        language = _entry(_entry(metadata, key), name)
        if isinstance(language, str) and language:
            return language.lower()
    return "python"


def _entry(value: object, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None


def _no_notebook(document: Document) -> SourceError:
    return SourceError(document.path, "is no notebook: it has no list of cells")
