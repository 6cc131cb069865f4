"""Findings on a terminal: in colour, with the line of the source, the place underlined, and what to write instead."""

from __future__ import annotations

from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from codemods.check.format_text import place, said, statistics, summary_lines
from codemods.check.report import Entry, Report
from codemods.check.severity import Severity
from codemods.report.terminal import console
from codemods.report.wording import visible
from codemods.source.edits import Edit, apply_edits

_STYLES = {Severity.INFO: "dim", Severity.WARNING: "yellow", Severity.ERROR: "red"}


def print_findings(report: Report, base: Path) -> None:
    """Every finding with its source, then the figures by rule and the summary, on standard output."""
    out = console()
    for entry in report.entries:
        _print_finding(out, entry, report, base)
    if report.entries:
        out.print(_table(report))
    for line in summary_lines(report):
        out.print(Text(line, style="bold"))


def _print_finding(out: Console, entry: Entry, report: Report, base: Path) -> None:
    style = _STYLES[entry.severity]
    out.print(Text.assemble((f"{place(entry, base)} ", "bold"), (entry.finding.rule, style), f" {said(entry, report)}"))
    before, marked, behind = _source(entry, report)
    number = str(entry.finding.line)
    margin = " " * len(number)
    out.print(Text.assemble((f" {number} | ", "dim"), before, (marked, "bold"), behind))
    underline = "^" * max(1, cell_len(marked))
    out.print(Text.assemble((f" {margin} | ", "dim"), " " * cell_len(before), (underline, style)))
    instead = _instead(entry, report)
    if instead is not None:
        out.print(Text.assemble((f" {margin} + ", "dim"), (instead, "green")))


def _source(entry: Entry, report: Report) -> tuple[str, str, str]:
    """The first line of a finding, in three: before it, the finding, behind it; printable, without the indentation."""
    start, end = report.start(entry), report.end(entry)
    line = report.places(entry).line(start.line)
    stop = end.column - 1 if end.line == start.line else len(line)
    parts = line[: start.column - 1].lstrip(), line[start.column - 1 : stop], line[stop:]
    before, marked, behind = (visible(part.replace("\t", "    ")) for part in parts)
    return before, marked, behind


def _instead(entry: Entry, report: Report) -> str | None:
    """The line as the edits of a finding make it; None where they are none, or more than one line.

    What an import becomes depends on the place of the helper, which a check of one file does not find out.
    """
    start = report.start(entry)
    line = report.places(entry).line(start.line).encode()
    base = start.offset - len(line.decode()[: start.column - 1].encode())
    edits = [Edit(edit.start - base, edit.end - base, edit.replacement) for edit in entry.finding.edits]
    within = all(edit.start >= 0 and edit.end <= len(line) and "\n" not in edit.replacement for edit in edits)
    if not edits or not within or line.lstrip().startswith((b"from ", b"import ")):
        return None
    return visible(apply_edits(line, edits).decode().strip().replace("\t", "    "))


def _table(report: Report) -> Table:
    table = Table("rule", box=None, header_style="bold")
    table.add_column("found", justify="right")
    table.add_column(Text("[*]"), justify="right")
    table.add_column("title")
    for code, found, fixable, title in statistics(report):
        table.add_row(code, str(found), str(fixable or ""), Text(title))
    return table
