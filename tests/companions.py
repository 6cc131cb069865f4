"""Shared by the tests of the files beside the Python: a text in, the findings out."""

from __future__ import annotations

from pathlib import Path

from codemods.companions.remarks import NOTHING_KNOWN, Knowledge
from codemods.engine.companions import convert_companion
from codemods.findings import Finding
from codemods.source.document import Document


def findings_in(file: str, text: str, known: Knowledge = NOTHING_KNOWN) -> tuple[Finding, ...]:
    """What is found in a file of that name."""
    conversion = convert_companion(Document.from_bytes(Path(file), text.encode()), known)
    assert conversion is None or conversion.after == text.encode()
    return conversion.findings if conversion else ()


def said_of(file: str, text: str, known: Knowledge = NOTHING_KNOWN) -> list[str]:
    """``CODE tier: marked text`` for each finding."""
    return [
        f"{finding.rule} {finding.tier.label}: {text.encode()[finding.start : finding.end].decode()}"
        for finding in findings_in(file, text, known)
    ]


def places_in(file: str, text: str) -> list[tuple[int, int]]:
    """Lines and columns of the findings."""
    return [(finding.line, finding.column) for finding in findings_in(file, text)]
