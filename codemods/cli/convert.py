"""``uncuda convert``"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from codemods.cli.request import fail, print_patch, request_of, with_progress
from codemods.config import Config
from codemods.engine.outcome import Outcome, Request
from codemods.engine.run import run
from codemods.errors import UserError
from codemods.findings import Tier


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("--write", is_flag=True, help="Apply the changes to the files.")
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE", help="Write the patch to a file.")
@click.option(
    "--report", type=click.Path(path_type=Path), metavar="FILE", help="Write a report to a file: .html, .md or .json."
)
@click.option("--select", multiple=True, metavar="CODES", help="Only these rules (codes or prefixes, comma separated).")
@click.option("--ignore", multiple=True, metavar="CODES", help="All but these rules.")
@click.option("--tier", type=click.Choice(["safe", "review"]), help="How certain an edit must be.  [default: review]")
@click.option("--tests", is_flag=True, help="Convert conditions and devices of tests, too.")
@click.option("--graph", is_flag=True, help="Convert torch.compile and what goes with it, too.")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes.  [default: by the amount of work]")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Leave these paths out, even when they are named.")
@click.option("--helper", metavar="MODULE", help="Use this module of the repository instead of writing ai_device.py.")
@click.option("--helper-name", metavar="NAME", help="Call the helper something else than ai_device.")
@click.option("--no-cache", is_flag=True, help="Neither use nor keep what earlier runs found.")
@click.option(
    "--cache-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where it is kept.  [default: $UNCUDA_CACHE_DIR or .uncuda_cache in the repository]",
)
@click.option("--stats", is_flag=True, help="Show figures by rule.")
@click.option("--notes", is_flag=True, help="List what is harmless on other devices, too.")
def command(
    paths: tuple[Path, ...],
    format_: str,
    write: bool,
    output: Path | None,
    report: Path | None,
    stats: bool,
    notes: bool,
    **options: Any,
) -> None:
    """Converts CUDA-only code: prints the change as a patch, and what is left to a person.

    The patch goes to standard output, everything else to standard error. Exit code: 0 nothing to say, 1 findings or
    changes, 2 something could not be done.
    """
    try:
        if report is not None:
            _check_report(report, output)
        request = _request(paths, options)
        outcome = with_progress("converting", lambda progress: run(request, progress))
    except UserError as error:
        fail(error)
    written = _show(outcome, format_, output, write)
    _show_findings(outcome, stats, notes)
    if report is not None:
        _write_report(report, outcome, request, written)
    sys.exit(outcome.exit_code)


def _request(paths: tuple[Path, ...], options: dict[str, Any]) -> Request:
    config = Config.load(paths[0])
    return request_of(paths, config, options, Tier[(options["tier"] or config.tier).upper()])


def _show(outcome: Outcome, format_: str, output: Path | None, write: bool) -> list[Path] | None:
    """Shows or writes the changes; the files that were written, ``None`` where none was to be."""
    if outcome.conversions or outcome.helpers:
        return _show_changes(outcome, format_, output, write)
    if format_ == "json":
        _print_json(outcome)
    return [] if write else None


def _show_changes(outcome: Outcome, format_: str, output: Path | None, write: bool) -> list[Path] | None:
    from codemods.report import patch, paths

    if output is not None:
        _write_patch(output, patch.patch(outcome))
    if format_ == "json":
        _print_json(outcome)
    elif not write and output is None:
        _print_changes(outcome)
    if not write:
        return None
    written = patch.write(outcome)
    for path in written:
        click.echo(f"wrote {paths.shown(path, Path.cwd())}", err=True)
    return written


def _write_patch(output: Path, patch: bytes) -> None:
    from codemods.source.atomic import write_atomically
    from codemods.source.document import SourceError

    try:
        write_atomically(output.absolute(), patch)
    except SourceError as error:
        fail(error)


def _check_report(report: Path, output: Path | None) -> None:
    from codemods.report.migration_file import check

    check(report)
    if output is not None and output.absolute() == report.absolute():
        raise UserError(f"{report} cannot be both the patch and the report")


def _write_report(report: Path, outcome: Outcome, request: Request, written: list[Path] | None) -> None:
    from codemods.report.migration_build import build
    from codemods.report.migration_file import write

    try:
        write(report, build(outcome, request, written))
    except UserError as error:
        fail(error)
    click.echo(f"wrote {report}", err=True)


def _print_json(outcome: Outcome) -> None:
    from codemods.report.json_report import render

    click.echo(render(outcome, Path.cwd()))


def _print_changes(outcome: Outcome) -> None:
    from codemods.report.patch import patch, readable_patch

    print_patch(readable_patch(outcome) if sys.stdout.isatty() else patch(outcome))


def _show_findings(outcome: Outcome, stats: bool, notes: bool) -> None:
    if sys.stderr.isatty():
        from codemods.report.terminal import print_report

        print_report(outcome, Path.cwd(), stats=stats, notes=notes)
        return
    from codemods.report import text

    for line in text.report_lines(outcome, Path.cwd(), stats=stats, notes=notes):
        click.echo(line, err=True)
