"""A finding together with its file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from codemods.findings import Finding
from codemods.source.document import Document


@dataclass(frozen=True)
class Reported:
    """One finding of a check, with the file it stands in."""

    path: Path
    document: Document
    finding: Finding
