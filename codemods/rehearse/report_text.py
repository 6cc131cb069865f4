"""A report as plain lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.rehearse.report import Report
from codemods.rehearse.report_tables import Table, summary_lines, tables


def report_lines(report: Report) -> Iterator[str]:
    """Everything but the operators that have a kernel, which are counted."""
    yield from summary_lines(report)
    for table in tables(report):
        yield ""
        yield from table_lines(table)
    yield ""
    yield report.provenance
    for limit in report.limits:
        yield f"note: {limit}"


def table_lines(table: Table) -> Iterator[str]:
    """Heading and rows, the columns below each other; the last column is as long as it is."""
    if not table.rows:
        yield f"{table.heading}: {table.empty[0].lower()}{table.empty[1:]}"
        return
    yield table.heading
    labels = table.labels()
    rows = [tuple(label for label, _ in labels), *table.rows]
    widths = [max(len(row[index]) for row in rows) for index in range(len(labels))]
    for row in rows:
        cells = (
            cell.rjust(width) if figures else cell.ljust(width)
            for cell, width, (_, figures) in zip(row, widths, labels, strict=True)
        )
        yield "  " + "  ".join(cells).rstrip()
