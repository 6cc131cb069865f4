"""Findings as plain lines: ``path:line:column CODE message``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from codemods.check.report import Entry, Report
from codemods.check.severity import Severity
from codemods.report.paths import shown
from codemods.report.wording import count, visible


def lines(report: Report, base: Path) -> Iterator[str]:
    """One line a finding."""
    for entry in report.entries:
        yield f"{place(entry, base)} {entry.finding.rule} {said(entry, report)}"


def place(entry: Entry, base: Path) -> str:
    """``path:line:column``, and the cell of a notebook before them."""
    finding = entry.finding
    cell = "" if finding.cell is None else f"cell {finding.cell}:"
    return f"{visible(shown(entry.path, base))}:{cell}{finding.line}:{finding.column}"


def said(entry: Entry, report: Report) -> str:
    """The message of a finding, behind marks for what ``--fix`` does and what is no error."""
    mark = "[*] " if report.is_fixable(entry) else ""
    severity = "" if entry.severity is Severity.ERROR else f"{entry.severity.label}: "
    return f"{mark}{severity}{visible(entry.finding.message)}"


def statistics(report: Report) -> list[tuple[str, int, int, str]]:
    """By rule: code, findings, those that ``--fix`` converts, title."""
    from codemods.catalogue import load_catalogue  # reads some sixty files

    found = Counter(entry.finding.rule for entry in report.entries)
    fixable = Counter(entry.finding.rule for entry in report.entries if report.is_fixable(entry))
    return [(code, found[code], fixable[code], load_catalogue()[code].title) for code in sorted(found)]


def statistics_lines(report: Report) -> Iterator[str]:
    """The figures by rule as lines."""
    for code, found, fixable, title in statistics(report):
        yield f"{found:5}  {code}  {'[*]' if fixable else '   '}  {title}"


def summary_lines(report: Report) -> Iterator[str]:
    """How much was found and what can be done about it; nothing where nothing was found."""
    entries = report.entries
    if not entries:
        return
    files = count(len({entry.path for entry in entries}), "file")
    fixable = sum(report.is_fixable(entry) for entry in entries)
    unsafe = sum(entry.fix is not None for entry in entries) - fixable
    parts = [f"{count(len(entries), 'finding')} in {files}"]
    if fixable:
        parts.append(f"{fixable} marked [*] can be fixed with --fix")
    if unsafe:
        parts.append(f"{unsafe}{' more' if fixable else ''} with --fix --unsafe-fixes")
    yield "; ".join(parts)


def problem_lines(report: Report, base: Path) -> Iterator[str]:
    """What could not be done: one line a path."""
    for problem in report.problems:
        line = "" if problem.line is None else f":{problem.line}"
        yield f"{visible(shown(problem.path, base))}{line}: {visible(problem.reason)}"
