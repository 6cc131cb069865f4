"""A report on a terminal. Imported only where something is drawn."""

from __future__ import annotations

from rich.table import Table as RichTable
from rich.text import Text

from codemods.rehearse.report import Report
from codemods.rehearse.report_tables import Table, summary_lines, tables
from codemods.report.terminal import console

_STYLES = {0: "green", 1: "yellow", 2: "red"}


def print_report(report: Report) -> None:
    """The report on standard error, in colour."""
    out = console(stderr=True)
    out.soft_wrap = False  # cells wrap at the width of the terminal
    first, *rest = summary_lines(report)
    out.print(Text(first, style="bold"))
    for line in rest:
        out.print(Text(line, style=_STYLES[report.exit_code]))
    for table in tables(report):
        out.print()
        out.print(Text(table.heading, style="bold") + Text("" if table.rows else f": {table.empty}"))
        if table.rows:
            out.print(_drawn(table))
    out.print()
    for line in (report.provenance, *report.limits):
        out.print(Text(line, style="dim"))


def _drawn(table: Table) -> RichTable:
    drawn = RichTable(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for label, figures in table.labels():
        drawn.add_column(label, justify="right" if figures else "left", overflow="fold", no_wrap=figures)
    for row in table.rows:
        drawn.add_row(*map(Text, row))
    return drawn
