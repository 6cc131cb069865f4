"""The report for a project lead as JSON, for dashboards; ``docs/report.md`` describes its keys."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import codemods
from codemods.catalogue import load_kinds
from codemods.report.alternatives import offers
from codemods.report.migration import Figures, Migration, Obstacle, Place, RuleUse
from codemods.report.migration_steps import steps

FORMAT = 1
"""Rises when a key goes away or changes its meaning; new keys may come at any time."""


def render(migration: Migration) -> str:
    """The whole report as one document, in ASCII: it holds every file name as it is."""
    document = {
        "format": FORMAT,
        "uncuda": codemods.__version__,
        "name": migration.name,
        "limits": migration.limits,
        "files_read": migration.files_read,
        "files_changed": migration.files_changed,
        "written": migration.written,
        "figures": _figures(migration.figures),
        "next": [{"text": step.text, "command": step.command} for step in steps(migration)],
        "efforts": dict(load_kinds().efforts),
        "kinds": [
            {
                "code": kind.series.code,
                "title": kind.series.title,
                "figures": _figures(kind.figures),
                "rules": [_rule(use) for use in kind.rules],
            }
            for kind in migration.kinds
        ],
        "cuda_only": [_obstacle(obstacle) for obstacle in migration.obstacles],
        "cuda_sources": [asdict(source) for source in migration.cuda_sources],
        "folders": [{"path": folder.path, "figures": _figures(folder.figures)} for folder in migration.folders],
        "files": [
            {"path": file.path, "changed": file.changed, "figures": _figures(file.figures)}
            for folder in migration.folders
            for file in folder.files
        ],
        "helpers": migration.helpers,
        "problems": [asdict(problem) for problem in migration.problems],
        "skipped": [{"reason": reason, "paths": number} for reason, number in migration.skipped],
    }
    return json.dumps(document, indent=2) + "\n"


def _figures(figures: Figures) -> dict[str, int]:
    return {
        "safe": figures.safe,
        "review": figures.review,
        "by_hand": figures.by_hand,
        "cuda_only": figures.cuda_only,
        "notes": figures.notes,
    }


def _rule(use: RuleUse) -> dict[str, Any]:
    return {
        "code": use.rule.code,
        "title": use.rule.title,
        "effort": use.rule.effort,
        "figures": _figures(use.figures),
        "by_hand": _places(use.by_hand),
        "review": _places(use.review),
    }


def _obstacle(obstacle: Obstacle) -> dict[str, Any]:
    instead = offers(obstacle.package) if obstacle.package else ()
    return {
        "title": obstacle.title,
        "package": obstacle.package.name if obstacle.package else None,
        "reason": obstacle.reason,
        "effort": obstacle.effort,
        "instead": [{"for": whom, "use": use} for whom, use in instead],
        "places": _places(obstacle.places),
    }


def _places(places: Iterable[Place]) -> list[dict[str, Any]]:
    return [
        {
            "path": place.path,
            "cell": place.cell,
            "line": place.line,
            "column": place.column,
            "message": place.message,
            "code": place.code,
            "held_back": place.held_back,
        }
        for place in places
    ]
