"""Findings as annotations of GitHub Actions: ``::error file=...,line=...::message``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from codemods.check.format_text import place
from codemods.check.report import Entry, Problem, Report
from codemods.check.severity import Severity
from codemods.report.paths import shown
from codemods.report.wording import count, visible

SHOWN_OF_A_STEP = 10
"""So many annotations of each kind does GitHub show of one step."""

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(report: Report, base: Path) -> str:
    """The annotations, a line each, and a line of the log where GitHub will not show all of them."""
    limit = _limit_line(report)
    return "\n".join([*_lines(report, base), *([] if limit is None else [limit])])


def _lines(report: Report, base: Path) -> Iterator[str]:
    """One annotation a finding, the errors first, since GitHub shows only some."""
    for problem in report.problems:
        yield _problem(problem, base)
    for entry in sorted(report.entries, key=lambda entry: -entry.severity):
        yield _finding(entry, report, base)


def _limit_line(report: Report) -> str | None:
    """What GitHub will not show."""
    kinds = Counter(_COMMANDS[entry.severity] for entry in report.entries)
    kinds["error"] += len(report.problems)
    hidden = sum(max(0, number - SHOWN_OF_A_STEP) for number in kinds.values())
    if not hidden:
        return None
    return f"GitHub annotates {SHOWN_OF_A_STEP} places of each kind; {count(hidden, 'more is', 'more are')} in this log"


def _finding(entry: Entry, report: Report, base: Path) -> str:
    start, end = report.start(entry), report.end(entry)
    properties = {
        "title": f"uncuda ({entry.finding.rule})",
        "file": shown(entry.path, base),
        "line": str(start.line),
        "endLine": str(end.line),
    }
    if start.line == end.line:  # GitHub takes columns for nothing else
        properties |= {"col": str(start.column), "endColumn": str(end.column)}
    # The log shows the message alone: it names the place as well.
    message = f"{place(entry, base)} {entry.finding.rule} {entry.finding.message}"
    return _command(_COMMANDS[entry.severity], properties, message)


def _problem(problem: Problem, base: Path) -> str:
    properties = {"title": "uncuda", "file": shown(problem.path, base), "line": str(problem.line or 1)}
    return _command("error", properties, f"{visible(shown(problem.path, base))}: {problem.reason}")


def _command(name: str, properties: dict[str, str], message: str) -> str:
    written = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {written}::{_data(message)}"


def _data(text: str) -> str:
    return _utf8(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _utf8(text: str) -> str:
    """The text without what has no UTF-8 form: bytes of file names that are no text."""
    return text.encode("utf-8", "backslashreplace").decode()
