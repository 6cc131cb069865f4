"""A conversion without failures as JSON and back; the document and the helper, which are at hand, are no part of it.

Nothing of a record is believed: its types are looked at, and its edits have to fit the document.
"""

from __future__ import annotations

from typing import Any

from codemods.engine.convert import CellChange, Conversion, HelperNames
from codemods.findings import Finding, Tier
from codemods.source.document import Document
from codemods.source.edits import Edit
from codemods.source.facts import is_flag, is_number, is_text


def pack(conversion: Conversion) -> list[Any]:
    """The record of a conversion."""
    number = {id(finding): at for at, finding in enumerate(conversion.findings)}
    return [
        [_pack_finding(finding) for finding in conversion.findings],
        [number[id(finding)] for finding in conversion.applied],
        _pack_edits(conversion.edits),
        conversion.needs_helper,
        conversion.helper.name,
        [[c.number, c.start, _text(c.before), _text(c.after)] for c in conversion.cells],
    ]


def unpack(value: Any, document: Document, helper: HelperNames) -> Conversion:
    """The conversion of a document by its record; the helper is the one that it was given.

    Raises:
        TypeError, ValueError, LookupError: it is no record
        SourceError: its edits do not fit the document
    """
    packed, applied, edits, needs_helper, name, cells = value
    findings = tuple(_finding(item, len(document.utf8)) for item in packed)
    edits = _edits(edits)
    return Conversion(
        document=document,
        findings=findings,
        applied=tuple(findings[is_number(at)] for at in applied),
        edits=edits,
        after=document.with_edits(edits),
        needs_helper=is_flag(needs_helper),
        helper=helper.renamed(is_text(name)),
        cells=tuple(_cell(item) for item in cells),
    )


def _pack_finding(finding: Finding) -> list[Any]:
    return [
        finding.rule,
        int(finding.tier),
        finding.message,
        finding.start,
        finding.end,
        finding.line,
        finding.column,
        _pack_edits(finding.edits),
        finding.group,
        finding.uses_helper,
        finding.cell,
    ]


def _finding(value: Any, length: int) -> Finding:
    rule, tier, message, start, end, line, column, edits, group, uses_helper, cell = value
    if not is_number(start) <= is_number(end) <= length:
        raise ValueError(f"a finding of bytes {start} to {end} does not fit")
    return Finding(
        rule=is_text(rule),
        tier=Tier(is_number(tier)),
        message=is_text(message),
        start=start,
        end=end,
        line=is_number(line),
        column=is_number(column),
        edits=_edits(edits),
        group=None if group is None else is_text(group),
        uses_helper=is_flag(uses_helper),
        cell=None if cell is None else is_number(cell),
    )


def _cell(value: Any) -> CellChange:
    number, start, before, after = value
    return CellChange(is_number(number), is_number(start), _bytes(before), _bytes(after))


def _text(source: bytes) -> str:
    return source.decode("utf-8", "surrogatepass")


def _bytes(text: Any) -> bytes:
    return is_text(text).encode("utf-8", "surrogatepass")


def _pack_edits(edits: tuple[Edit, ...]) -> list[Any]:
    return [[edit.start, edit.end, edit.replacement] for edit in edits]


def _edits(value: Any) -> tuple[Edit, ...]:
    return tuple(Edit(is_number(start), is_number(end), is_text(replacement)) for start, end, replacement in value)
