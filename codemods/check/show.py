"""Prints a report in the format that was asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from codemods.check.format_text import lines, problem_lines, statistics_lines, summary_lines
from codemods.check.report import Report


def show(report: Report, format_: str, base: Path, *, stats: bool, err: bool) -> None:
    """Prints a report.

    Args:
        format_: one of the keys of the formats, or ``text``
        base: the folder that paths are relative to
        stats: print figures by rule as well
        err: print to standard error what is lines of text
    """
    if format_ == "text":
        _show_text(report, base, stats=stats, err=err)
        return
    rendered = _FORMATS[format_](report, base)
    if rendered:
        click.echo(rendered)
    notes = [*(statistics_lines(report) if stats else ()), *problem_lines(report, base)]
    _print(notes, err=True)


def _show_text(report: Report, base: Path, *, stats: bool, err: bool) -> None:
    if not err and sys.stdout.isatty():
        from codemods.check.format_terminal import print_findings

        print_findings(report, base)
    else:
        _print(lines(report, base), err=err)
        _print(statistics_lines(report) if stats else (), err=True)
        _print(summary_lines(report), err=True)
    _print(problem_lines(report, base), err=True)


def _print(texts: Iterable[str], *, err: bool) -> None:
    for text in texts:
        click.echo(text, err=err)


def _json(report: Report, base: Path) -> str:
    from codemods.check.format_json import render

    return render(report, base)


def _sarif(report: Report, base: Path) -> str:
    from codemods.check.format_sarif import render

    return render(report)


def _github(report: Report, base: Path) -> str:
    from codemods.check.format_github import render

    workspace = os.environ.get("GITHUB_WORKSPACE")  # annotations are relative to it
    return render(report, Path(workspace) if workspace else base)


def _junit(report: Report, base: Path) -> str:
    from codemods.check.format_junit import render

    return render(report, base)


_FORMATS: dict[str, Callable[[Report, Path], str]] = {
    "json": _json,
    "sarif": _sarif,
    "github": _github,
    "junit": _junit,
}
