"""Random notebooks: what is no source of a code cell stays byte by byte, and a second run changes nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from conversion import outside_edits
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from notebooks import notebook_of, validate
from test_properties import IMPORTS, blocks

from codemods.analysis.ipython import read_cell
from codemods.analysis.notebook_code import NotebookCode
from codemods.analysis.project import Project
from codemods.engine.convert import Conversion, HelperNames, Options
from codemods.engine.notebook import convert_notebook
from codemods.source.cell_edits import CellEdits
from codemods.source.document import Document
from codemods.source.edits import Edit, apply_edits
from codemods.source.notebook import read_notebook

MAGICS = [
    "!nvidia-smi -L", "!pip install \\\n  torch", "%matplotlib inline", "x = !ls", "a, b = %store cuda", "torch.cuda?",
    "?x", "%time x = x.cuda()", "%timeit -n 3 x.cuda()", "%timeit for i in x: i.cuda()", "%env CUDA_VISIBLE_DEVICES=0",
    "!echo \"it's é\"", "for i in x:\n    !ls\n    %time i.cuda()",
]  # fmt: skip
CELL_MAGICS = ["", "", "", "%%time\n", "\n# now\n%%capture out\n", "%%timeit\n", "%%bash\n", "%%writefile a.py\n"]
BAD = ["x = (", "print x.cuda()", "'''cuda"]
few = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def cells(draw: st.DrawFn) -> str:
    """The source of a code cell."""
    if draw(st.integers(0, 12)) == 0:
        return draw(st.sampled_from(["", "\n", "'cuda'", *BAD]))
    magics = st.sampled_from(MAGICS)
    parts = draw(st.lists(st.sampled_from(IMPORTS) | magics | blocks(depth=1), min_size=1, max_size=4))
    source = draw(st.sampled_from(CELL_MAGICS)) + "\n".join(parts) + draw(st.sampled_from(["", "", "\n"]))
    return source.replace("\n", "\r\n") if draw(st.integers(0, 5)) == 0 else source


@st.composite
def notebooks(draw: st.DrawFn) -> bytes:
    """A notebook in a random layout."""
    output: dict[str, Any] = {"name": "stdout", "output_type": "stream", "text": "x.cuda() é"}
    text = {"cell_type": "markdown", "metadata": {}, "source": ["`x.cuda()`"], "id": "text"}
    notebook = notebook_of("import torch", *draw(st.lists(cells() | st.just(text), max_size=5)))
    notebook["cells"] = [dict(cell) for cell in notebook["cells"]]
    for number, cell in enumerate(notebook["cells"]):
        cell["id"] = f"c{number}"
        if cell["cell_type"] == "code":
            cell["outputs"] = [output]
        source = "".join(cell["source"])
        halves = [source[: len(source) // 3], source[len(source) // 3 :]]
        cell["source"] = draw(st.sampled_from([cell["source"], source, halves]))
    layout: dict[str, Any] = draw(st.sampled_from([{"indent": 1}, {"indent": 2}, {}, {"separators": (",", ":")}]))
    raw = json.dumps(notebook, ensure_ascii=draw(st.booleans()), **layout).encode()
    raw = raw.replace(b"\n", b"\r\n") if draw(st.booleans()) else raw + b"\n"
    return draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"])) + raw


def converted(raw: bytes, *, whole_module: bool = False) -> Conversion:
    path = Path("a.ipynb")
    return convert_notebook(
        Document.from_bytes(path, raw), Project.of([(path, raw)]), HelperNames(), Options(), whole_module=whole_module
    )


def without_code(raw: bytes) -> object:
    notebook = json.loads(raw)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["source"] = ""
    return notebook


def hidden(raw: bytes) -> list[bytes]:
    """Everything that is IPython's."""
    code = NotebookCode(read_notebook(Document.from_bytes(Path("a.ipynb"), raw)))
    return [piece.text for piece in code.hidden if piece.kind != "prose"]


@given(notebooks())
@few
def test_only_the_code_changes(raw: bytes) -> None:
    done = converted(raw)
    assert without_code(done.after) == without_code(raw)
    assert hidden(done.after) == hidden(raw)
    before, behind = outside_edits(done)
    assert before == behind
    assert (b"\r\n" in raw) or (b"\r\n" not in done.after)
    validate(done.after)


@given(notebooks())
@few
def test_a_second_run_changes_nothing(raw: bytes) -> None:
    done = converted(raw)
    again = converted(done.after)
    assert again.after == done.after
    assert not again.applied
    assert [(f.cell, f.reason) for f in again.failures] == [(f.cell, f.reason) for f in done.failures]


@given(notebooks())
@few
def test_both_ways_give_the_same(raw: bytes) -> None:
    done = converted(raw)
    whole = converted(raw, whole_module=True)
    assert whole.after == done.after
    assert whole.findings == done.findings


@given(notebooks())
@few
def test_findings_point_to_their_cells(raw: bytes) -> None:
    done = converted(raw)
    all_cells = json.loads(raw)["cells"]
    for finding in done.findings:
        assert finding.cell is not None
        source = "".join(all_cells[finding.cell - 1]["source"])
        lines = re.split(r"\r\n|\n", source)
        rest = lines[finding.line - 1][finding.column - 1 :]
        assert rest
        assert json.dumps(rest[:1])[1:-1].encode() in done.document.utf8[finding.start : finding.start + 12]
    for cell in done.cells:
        assert cell.before.decode() == "".join(all_cells[cell.number - 1]["source"])


@given(cells())
@few
def test_hidden_text_is_as_long_and_in_the_same_lines(source: str) -> None:
    utf8 = source.encode()
    code = read_cell(utf8)
    assert len(code.python) == len(utf8)
    assert re.findall(rb"\r?\n", code.python) == re.findall(rb"\r?\n", utf8)
    shown = bytearray(utf8)
    for piece in code.hidden:
        shown[piece.start : piece.end] = code.python[piece.start : piece.end]
    assert bytes(shown) == code.python


PIECES = st.lists(st.text(st.sampled_from('ab\n\r é😀"\\/\t<'), max_size=6), max_size=5)


@given(PIECES, st.booleans(), st.booleans(), st.sampled_from([None, 1, "\t"]), st.data())
def test_edits_of_a_cell(
    pieces: list[str], is_list: bool, ascii_: bool, indent: int | str | None, data: st.DataObject
) -> None:
    """The edited JSON holds the edited source, and nothing else changes in it."""
    source = pieces if is_list else "".join(pieces)
    notebook = {"cells": [{"cell_type": "code", "source": source, "metadata": {"a": ["b", "c"]}}]}
    raw = json.dumps(notebook, ensure_ascii=ascii_, indent=indent).replace("/", "\\/").encode()
    read = read_notebook(Document.from_bytes(Path("a.ipynb"), raw))
    text = read.cells[0].text
    if not text:
        return
    edits = data.draw(_edits(text))
    cell_edits = CellEdits(read, read.cells[0])
    local = cell_edits.of_source(edits)
    after = apply_edits(raw, [cell_edits.of_json(edit) for edit in local])
    assert "".join(json.loads(after)["cells"][0]["source"]).encode() == apply_edits(text.encode(), local)
    assert without_code(after) == without_code(raw)
    for start, end in ((edit.start, edit.end) for edit in local if edit.start < edit.end):
        found = cell_edits.span(start, end)
        assert read.document.utf8[found[0] : found[1]]


@st.composite
def _edits(draw: st.DrawFn, text: str) -> list[Edit]:
    places = sorted(draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=6)))
    offsets = [len(text[:place].encode()) for place in places]
    pairs = zip(offsets[::2], offsets[1::2], strict=False)
    return [Edit(a, b, draw(st.sampled_from(["", "x", "é\n", "\n", "a\nb", "\nc"]))) for a, b in pairs]


def test_an_edit_beyond_its_cell_is_refused() -> None:
    raw = json.dumps(notebook_of("x = 1", "y = 2")).encode()
    read = read_notebook(Document.from_bytes(Path("a.ipynb"), raw))
    with pytest.raises(ValueError, match="goes beyond its cell"):
        CellEdits(read, read.cells[0]).of_source([Edit(0, 9, "")])
