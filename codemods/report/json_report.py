"""An outcome as JSON: findings with ranges and edits, for editors and scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import codemods
from codemods.engine.convert import Conversion
from codemods.engine.outcome import Outcome
from codemods.report.paths import shown


def render(outcome: Outcome, base: Path) -> str:
    """The outcome as one JSON document; offsets are bytes of the UTF-8 text without byte-order mark."""
    document = {
        "uncuda": codemods.__version__,
        "files": [_file(conversion, base) for conversion in outcome.conversions],
        "helpers": [shown(path, base) for path in outcome.helpers],
        "cuda_sources": [shown(path, base) for path in outcome.cuda_sources],
        "notebooks": [{"path": shown(path, base), "language": language} for path, language in outcome.notebooks],
        "skipped": [
            {"path": shown(skipped.path, base), "reason": skipped.reason, "failed": skipped.failed}
            for skipped in outcome.skipped
        ],
        "failures": [
            {"path": shown(failure.path, base), "cell": failure.cell, "line": failure.line, "reason": failure.reason}
            for failure in outcome.failures
        ],
    }
    return json.dumps(document, indent=2)  # ASCII, so that it survives every terminal and odd file names


def _file(conversion: Conversion, base: Path) -> dict[str, Any]:
    applied = set(map(id, conversion.applied))
    return {
        "path": shown(conversion.document.path, base),
        "changed": conversion.changed,
        "findings": [
            {
                "rule": finding.rule,
                "tier": finding.tier.label,
                "message": finding.message,
                "cell": finding.cell,
                "line": finding.line,
                "column": finding.column,
                "start": finding.start,
                "end": finding.end,
                "applied": id(finding) in applied,
                "group": finding.group,
                "edits": [
                    {"start": edit.start, "end": edit.end, "replacement": edit.replacement} for edit in finding.edits
                ],
            }
            for finding in conversion.findings
        ],
    }
