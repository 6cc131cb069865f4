"""Findings as JSON, for editors and scripts; ``docs/check.md`` describes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import codemods
from codemods.check.places import Places, Point
from codemods.check.report import Entry, Report
from codemods.report.paths import shown
from codemods.source.edits import Edit


def render(report: Report, base: Path) -> str:
    """The report as one JSON document."""
    document = {
        "uncuda": codemods.__version__,
        "findings": [_finding(entry, report, base) for entry in report.entries],
        "failures": [
            {"path": shown(problem.path, base), "line": problem.line, "reason": problem.reason}
            for problem in report.problems
        ],
    }
    return json.dumps(document, indent=2)  # ASCII, so that it survives every terminal and odd file names


def _finding(entry: Entry, report: Report, base: Path) -> dict[str, Any]:
    finding, places = entry.finding, report.places(entry)
    return {
        "path": shown(entry.path, base),
        "rule": finding.rule,
        "tier": finding.tier.label,
        "severity": entry.severity.label,
        "message": finding.message,
        "start": _point(report.start(entry)),
        "end": _point(report.end(entry)),
        "fixable": report.is_fixable(entry),
        "fix": None if entry.fix is None else entry.fix.label,
        "edits": [_edit(edit, places) for edit in report.edits(entry)],
        "helpers": [shown(path, base) for path in report.helpers(entry)],
    }


def _edit(edit: Edit, places: Places) -> dict[str, Any]:
    return {
        "start": _point(places.at(edit.start)),
        "end": _point(places.at(edit.end)),
        "replacement": edit.replacement,
    }


def _point(point: Point) -> dict[str, int]:
    return {"line": point.line, "column": point.column, "offset": point.offset}
