"""A report as JSON, for scripts and dashboards."""

from __future__ import annotations

import json
from dataclasses import asdict

import codemods
from codemods.rehearse.report import Report


def render(report: Report) -> str:
    """The whole report as one document; times are seconds, sizes bytes, shares parts of one."""
    document = {
        "uncuda": codemods.__version__,
        "exit_code": report.exit_code,
        **asdict(report),
        "operators": [
            {**asdict(use), "state": use.state.value, "share": round(report.share(use), 6)} for use in report.operators
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)
