"""An outcome on a terminal: coloured patch, tables, progress. Imported only where something is drawn."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from codemods.engine.outcome import Outcome, left
from codemods.findings import Tier
from codemods.report.paths import shown
from codemods.report.text import file_lines, problem_lines, statistics, summary_lines

_TIER_STYLES = {Tier.NOTE: "dim", Tier.SAFE: "green", Tier.REVIEW: "yellow", Tier.MANUAL: "red"}


def console(*, stderr: bool = False) -> Console:
    """A console that honours ``NO_COLOR`` and writes lines as they are."""
    return Console(stderr=stderr, highlight=False, soft_wrap=True, no_color="NO_COLOR" in os.environ)


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error that vanishes when the work is done."""
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def print_patch(patch: bytes) -> None:
    """The patch in colour."""
    out = console()
    for line in patch.decode("utf-8", "replace").split("\n"):
        out.print(Text(line.rstrip("\r"), style=_patch_style(line)))


def _patch_style(line: str) -> str:
    if line.startswith(("diff --git", "---", "+++", "new file")):
        return "bold"
    if line.startswith("@@"):
        return "cyan"
    return {"+": "green", "-": "red"}.get(line[:1], "")


def print_report(outcome: Outcome, base: Path, *, stats: bool, notes: bool) -> None:
    """What was left and why, figures by rule if asked for, and the summary, on standard error."""
    out = console(stderr=True)
    for path, finding in sorted(left(outcome), key=lambda place: place[1].tier is Tier.NOTE):
        if finding.tier is Tier.NOTE and not notes:
            continue
        place = Text(f"{shown(path, base)}:{finding.place} ", style="bold")
        out.print(place + Text(f"{finding.rule} ", style=_TIER_STYLES[finding.tier]) + Text(finding.message))
    for line in file_lines(outcome, base):
        out.print(Text(line))
    if stats:
        out.print(_statistics_table(outcome))
    for line in summary_lines(outcome):
        out.print(Text(line, style="bold"))
    for line in problem_lines(outcome, base):
        out.print(Text(line, style="red"))


def _statistics_table(outcome: Outcome) -> Table:
    table = Table("rule", "title", box=None, header_style="bold")
    table.add_column("converted", justify="right")
    table.add_column("left", justify="right")
    for code, title, converted, remaining in statistics(outcome):
        table.add_row(code, title, str(converted or ""), str(remaining or ""))
    return table
