"""Findings as SARIF 2.1.0, which code scanning services take."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import codemods
from codemods.catalogue import Rule, load_catalogue
from codemods.check.places import Point
from codemods.check.report import Entry, Problem, Report
from codemods.check.severity import Severity
from codemods.report.paths import shown

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "REPOSITORY"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def render(report: Report) -> str:
    """The report as one SARIF log; paths are relative to the root of the repository."""
    catalogue = load_catalogue()
    codes = sorted({entry.finding.rule for entry in report.entries})
    run = {
        "tool": {
            "driver": {
                "name": "uncuda",
                "version": codemods.__version__,
                "semanticVersion": codemods.__version__,
                "rules": [_rule(catalogue[code]) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "the root of the repository"}}},
        "invocations": [_invocation(report)],
        "results": [
            _result(entry, report, codes.index(entry.finding.rule), fingerprint)
            for entry, fingerprint in zip(report.entries, _fingerprints(report), strict=True)
        ],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(rule: Rule) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.message},
        "help": {"text": rule.why, "markdown": rule.why},
        "properties": {"tier": rule.tier.label},
    }
    if rule.references:
        described["helpUri"] = rule.references[0]
    return described


def _result(entry: Entry, report: Report, rule: int, fingerprint: str) -> dict[str, Any]:
    finding = entry.finding
    artifact = _artifact(entry.path, report)
    region = _region(report.start(entry), report.end(entry))
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": rule,
        "level": _LEVELS[entry.severity],
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": {"artifactLocation": artifact, "region": region}}],
        "partialFingerprints": {"primaryLocationLineHash": fingerprint},
        "properties": {"tier": finding.tier.label},
    }
    replacements = [
        {
            "deletedRegion": _region(report.places(entry).at(edit.start), report.places(entry).at(edit.end)),
            "insertedContent": {"text": edit.replacement},
        }
        for edit in report.edits(entry)
    ]
    if replacements:
        change = {"artifactLocation": artifact, "replacements": replacements}
        result["fixes"] = [{"description": {"text": finding.message}, "artifactChanges": [change]}]
    return result


def _region(start: Point, end: Point) -> dict[str, int]:
    return {"startLine": start.line, "startColumn": start.column, "endLine": end.line, "endColumn": end.column}


def _artifact(path: Path, report: Report) -> dict[str, str]:
    return {"uri": quote(os.fsencode(shown(path, report.root))), "uriBaseId": _ROOT}


def _fingerprints(report: Report) -> list[str]:
    """For each finding what stays the same when lines above it come and go: its rule, its line and the how-manieth."""
    seen: Counter[tuple[Path, str]] = Counter()
    fingerprints: list[str] = []
    for entry in report.entries:
        line = " ".join(report.places(entry).line(entry.finding.line).split())
        digest = hashlib.sha256(f"{entry.finding.rule}\0{line}".encode()).hexdigest()[:16]
        seen[entry.path, digest] += 1
        fingerprints.append(f"{digest}:{seen[entry.path, digest]}")
    return fingerprints


def _invocation(report: Report) -> dict[str, Any]:
    invocation: dict[str, Any] = {"executionSuccessful": not report.problems}
    if report.problems:
        invocation["toolExecutionNotifications"] = [_notification(problem, report) for problem in report.problems]
    return invocation


def _notification(problem: Problem, report: Report) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": _artifact(problem.path, report)}
    if problem.line is not None:
        location["region"] = {"startLine": problem.line}
    return {
        "level": "error",
        "message": {"text": problem.reason},
        "locations": [{"physicalLocation": location}],
    }
