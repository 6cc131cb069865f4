"""The file with the report for a project lead: its format is told by its extension."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from codemods.errors import UserError
from codemods.report.migration import Migration
from codemods.source.atomic import write_atomically

FORMATS = {".html": "migration_html", ".md": "migration_markdown", ".json": "migration_json"}
"""The module for each extension."""


def check(file: Path) -> None:
    """Finds out before the work whether a report can be written.

    Raises:
        UserError: no format has the extension, or there is no such folder
    """
    if file.suffix.lower() not in FORMATS:
        raise UserError(f"{file}: a report is written as {', '.join(FORMATS)}; give the file such an extension")
    if not file.absolute().parent.is_dir():
        raise UserError(f"{file} cannot be written: there is no folder {file.parent}")


def write(file: Path, migration: Migration) -> None:
    """Writes a report.

    Raises:
        SourceError: the system refuses to write the file
    """
    render = import_module(f"codemods.report.{FORMATS[file.suffix.lower()]}").render
    write_atomically(file.absolute(), render(migration).encode())
