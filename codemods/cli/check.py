"""``uncuda check``"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codemods.check.pipeline import Checked, Mode, check, without_notes
from codemods.check.severity import Severities
from codemods.cli.request import absolute, fail, print_patch, request_of, with_progress
from codemods.config import Config
from codemods.engine.outcome import Request
from codemods.errors import UserError
from codemods.findings import Tier
from codemods.report.paths import shown

if TYPE_CHECKING:
    from codemods.check.added_lines import AddedLines
    from codemods.check.known import Known

_STDIN = Path("-")
_UNNAMED = Path("stdin.py")
_WITH_EDITS = ("json", "sarif")
_FORMATS = ["text", "json", "sarif", "github", "junit"]


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@click.option("--fix", is_flag=True, help="Apply the safe edits to the files.")
@click.option("--unsafe-fixes", is_flag=True, help="Let --fix and --diff apply the edits to review as well.")
@click.option("--diff", is_flag=True, help="Print what --fix would change, and change nothing.")
@click.option("--select", multiple=True, metavar="CODES", help="Only these rules (codes or prefixes, comma separated).")
@click.option("--extend-select", multiple=True, metavar="CODES", help="These rules besides those of the settings.")
@click.option("--ignore", multiple=True, metavar="CODES", help="All but these rules.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Leave these paths out, even when they are named.")
@click.option("--format", "format_", type=click.Choice(_FORMATS), default="text", show_default=True)
@click.option("--notes", is_flag=True, help="List what is harmless on other devices, too.")
@click.option("--stats", is_flag=True, help="Show figures by rule.")
@click.option("--baseline", type=click.Path(path_type=Path), metavar="FILE", help="Leave out what this file knows.")
@click.option("--write-baseline", is_flag=True, help="Write what is found to the baseline.")
@click.option("--added-only", is_flag=True, help="Only what stands on lines that a change adds.")
@click.option("--base", metavar="REV", help="The revision that --added-only compares with.  [default: what is staged]")
@click.option("--no-cache", is_flag=True, help="Neither use nor keep what earlier runs found.")
@click.option("--cache-dir", type=click.Path(path_type=Path), metavar="DIR", help="Where it is kept.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 where it would be 1.")
@click.option("--stdin-filename", type=click.Path(path_type=Path), metavar="FILE", help="The file that - stands for.")
@click.option("--helper", metavar="MODULE", help="Use this module of the repository instead of writing ai_device.py.")
@click.option("--helper-name", metavar="NAME", help="Call the helper something else than ai_device.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes.  [default: by the amount of work]")
def command(
    paths: tuple[Path, ...],
    fix: bool,
    unsafe_fixes: bool,
    diff: bool,
    format_: str,
    notes: bool,
    stats: bool,
    exit_zero: bool,
    baseline: Path | None,
    write_baseline: bool,
    added_only: bool,
    base: str | None,
    stdin_filename: Path | None,
    **options: Any,
) -> None:
    """Reports code that is tied to CUDA: the gate for a commit and for CI.

    Without a PATH, the working directory; - is standard input. Findings go to standard output, or to standard error
    where --diff or --fix prints a text there. Exit code: 0 no errors, 1 errors left, or something was changed, or is to
    be, 2 something could not be done.
    """
    mode = Mode.DIFF if diff else Mode.FIX if fix else Mode.REPORT
    from_stdin = _is_stdin(paths, stdin_filename)
    fixed_text = from_stdin and mode is Mode.FIX
    prints_text = fixed_text or mode is Mode.DIFF
    if prints_text and format_ != "text":
        raise click.UsageError(f"--format {format_} needs the standard output that a patch or a fixed text would take")
    _check_known(baseline, write_baseline, added_only, base, mode)
    tier = Tier.REVIEW if unsafe_fixes else Tier.SAFE
    try:
        config, request = _request(paths or (Path(),), stdin_filename, tier, options)
        known, request = _known(request, mode, baseline, write_baseline, added_only, base)
        with_edits = format_ in _WITH_EDITS
        filters = known.filters if known is not None else ()
        checked = with_progress(
            "checking", lambda progress: check(request, mode, filters, progress, with_edits=with_edits)
        )
        remarks = [*checked.outcome.remarks, *(known.remarks(request, checked) if known is not None else ())]
    except UserError as error:
        fail(error)
    if mode is Mode.DIFF:
        print_patch(checked.patch)
    elif fixed_text:
        _print_fixed(checked, request)
    for remark in remarks:
        click.echo(remark, err=True)
    has_errors = _tell(checked, Severities(config.severity), tier, format_, notes, stats, err=prints_text)
    if checked.failed:
        sys.exit(2)
    sys.exit(1 if (has_errors or checked.has_changes) and not exit_zero else 0)


def _is_stdin(paths: tuple[Path, ...], stdin_filename: Path | None) -> bool:
    if _STDIN not in paths:
        if stdin_filename is not None:
            raise click.UsageError("--stdin-filename needs the path -")
        return False
    if len(paths) > 1:
        raise click.UsageError("the path - does not go with others")
    return True


def _request(
    paths: tuple[Path, ...], stdin_filename: Path | None, tier: Tier, options: dict[str, Any]
) -> tuple[Config, Request]:
    if paths != (_STDIN,):
        config = Config.load(paths[0])
        return config, request_of(paths, config, options, tier)
    file = absolute(stdin_filename or _UNNAMED)
    config = Config.load(file.parent)
    return config, request_of((file,), config, options, tier, {file: sys.stdin.buffer.read()})


def _check_known(baseline: Path | None, write_baseline: bool, added_only: bool, base: str | None, mode: Mode) -> None:
    if write_baseline and baseline is None:
        raise click.UsageError("--write-baseline needs --baseline FILE")
    if write_baseline and (added_only or mode is not Mode.REPORT):
        raise click.UsageError(
            "--write-baseline does not go with --added-only, --fix or --diff: it lists what there is"
        )
    if base is not None and not added_only:
        raise click.UsageError("--base needs --added-only")


def _known(
    request: Request, mode: Mode, baseline: Path | None, write: bool, added_only: bool, base: str | None
) -> tuple[Known | None, Request]:
    """What is known already, and the request with what is staged where the work tree differs.

    Raises:
        UserError: a baseline that cannot be used, git cannot tell what is added, or a file that is staged in part
    """
    if baseline is None and not added_only:
        return None, request
    from codemods.check.known import Known
    from codemods.source.discovery import repository_root

    root = repository_root(request.paths[0])
    added = _added_lines(root, base, mode) if added_only else None
    if added is not None and added.contents and not request.unsaved:
        request = replace(request, unsaved=added.contents)
    return Known(root, baseline, write, added), request


def _added_lines(root: Path, base: str | None, mode: Mode) -> AddedLines:
    from codemods.check.added_lines import AddedLines

    added = AddedLines.of_change(root, base)
    if mode is Mode.FIX and added.contents:
        names = ", ".join(shown(path, Path.cwd()) for path in added.contents)
        raise UserError(f"{names}: staged in part; stage or stash the rest before --fix")
    return added


def _print_fixed(checked: Checked, request: Request) -> None:
    ((path, raw),) = request.unsaved.items()
    sys.stdout.buffer.write(checked.changed.get(path, raw))
    sys.stdout.buffer.flush()
    for helper in checked.outcome.helpers:
        click.echo(f"uncuda: the text imports {shown(helper, Path.cwd())}, which --fix writes beside a file", err=True)


def _tell(
    checked: Checked, severities: Severities, tier: Tier, format_: str, notes: bool, stats: bool, *, err: bool
) -> bool:
    """Says what was found; whether there were errors."""
    for path in checked.written:
        click.echo(f"wrote {shown(path, Path.cwd())}", err=True)
    reported = checked.reported if notes else without_notes(checked.reported)
    if format_ == "text" and not reported and not checked.failed:
        return False
    from codemods.check.report import build
    from codemods.check.show import show

    report = build(checked, reported, severities, tier)
    show(report, format_, Path.cwd(), stats=stats, err=err)
    return report.has_errors
