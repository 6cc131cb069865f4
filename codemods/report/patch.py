"""The patch of an outcome, and its application to the files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from codemods.engine.convert import Conversion
from codemods.engine.outcome import Outcome
from codemods.patch.unified import file_patch
from codemods.report.cells import cell_headings, cells_patch
from codemods.report.paths import shown
from codemods.source.atomic import write_atomically
from codemods.source.document import SourceError


def patch(outcome: Outcome) -> bytes:
    """The whole change as one patch that ``git apply`` takes at the root of the tree."""
    return _joined(outcome, _file_patch)


def readable_patch(outcome: Outcome) -> bytes:
    """The whole change for a reader: as the patch, but notebooks by their cells, and these as they are seen."""
    return _joined(outcome, lambda name, done: cells_patch(name, done) if done.cells else _file_patch(name, done))


def _joined(outcome: Outcome, of_conversion: Callable[[str, Conversion], bytes]) -> bytes:
    pieces = {
        conversion.document.path: of_conversion(shown(conversion.document.path, outcome.root), conversion)
        for conversion in outcome.changed
    }
    for path, text in outcome.helpers.items():
        before = path.read_bytes() if path.is_file() else None
        pieces[path] = file_patch(shown(path, outcome.root), before, text.encode())
    return b"".join(pieces[path] for path in sorted(pieces))


def _file_patch(name: str, conversion: Conversion) -> bytes:
    heading = cell_headings(conversion) if conversion.cells else None
    return file_patch(name, conversion.document.raw, conversion.after, conversion.edits, heading=heading)


def write(outcome: Outcome) -> list[Path]:
    """Writes every changed file and helper, each in one step; those that cannot be written join the failures.

    A file that changed since it was read is left alone.
    """
    written: list[Path] = []
    for path, text in outcome.helpers.items():
        _write(path, text.encode(), outcome, written)
    if len(written) < len(outcome.helpers):
        return written  # converted files would import a helper that is not there
    for conversion in outcome.changed:
        path = conversion.document.path
        if _has_changed(path, conversion.document.raw):
            outcome.failures.append(SourceError(path, "changed while it was being converted; run again"))
        else:
            _write(path, conversion.after, outcome, written)
    return written


def _has_changed(path: Path, raw: bytes) -> bool:
    try:
        return path.read_bytes() != raw
    except OSError:
        return True


def _write(path: Path, data: bytes, outcome: Outcome, written: list[Path]) -> None:
    try:
        write_atomically(path, data)
    except SourceError as error:
        outcome.failures.append(error)
    else:
        written.append(path)
