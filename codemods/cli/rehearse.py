"""``uncuda rehearse``"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from codemods.errors import UserError
from codemods.rehearse.launch import Request, run
from codemods.rehearse.report import Report
from codemods.rehearse.report_build import build

_FILE = click.Path(path_type=Path)


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("script", metavar="SCRIPT")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is a module, run as by python -m.")
@click.option("--device", default="npu", show_default=True, metavar="NAME", help="The accelerator to play.")
@click.option("--adapter-version", metavar="V", help="Of the vendor's adapter.  [default: the newest known]")
@click.option("--nproc", type=click.IntRange(min=1), metavar="N", help="Start N ranks, as torchrun does.")
@click.option("--count", type=click.IntRange(min=1), default=2, metavar="N", help="Virtual devices.  [default: 2]")
@click.option("--max-steps", type=click.IntRange(min=1), metavar="N", help="Stop after N steps of an optimizer.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="S", help="Stop after S seconds.")
@click.option("--strict", is_flag=True, help="An operator without a kernel is an error.")
@click.option("--json", "json_file", type=_FILE, metavar="FILE", help="Write the report as JSON.")
@click.option(
    "--html", "html_file", type=click.Path(path_type=Path), metavar="FILE", help="Write the report as a page."
)
def command(json_file: Path | None, html_file: Path | None, **options: Any) -> None:
    """Runs a converted script on a virtual accelerator, on a machine that needs none.

    Options come before SCRIPT; what follows it is the script's own. The script runs with all that it does, on the CPU;
    its output stays its own, and the report goes to standard error. Exit code: 0 it got through and there is nothing
    to say, 1 it got through with findings (CUDA still named, operators without a kernel), 2 it did not get through.
    """
    try:
        _check_folders(json_file, html_file)
        report = build(run(Request(**options)), Path.cwd())
        _show(report)
        _write(report, json_file, html_file)
    except UserError as error:
        click.echo(f"uncuda: {error}", err=True)
        sys.exit(2)
    sys.exit(report.exit_code)


def _check_folders(*files: Path | None) -> None:
    """Finds out before the run, which may be long, where a report could not be written after it."""
    for file in filter(None, files):
        if not file.absolute().parent.is_dir():
            raise UserError(f"{file} cannot be written: there is no folder {file.parent}")


def _write(report: Report, json_file: Path | None, html_file: Path | None) -> None:
    from codemods.rehearse import report_html, report_json
    from codemods.source.atomic import write_atomically

    if json_file is not None:
        write_atomically(json_file.absolute(), report_json.render(report).encode())
    if html_file is not None:
        write_atomically(html_file.absolute(), report_html.render(report).encode())


def _show(report: Report) -> None:
    click.echo(err=True)
    if sys.stderr.isatty():
        from codemods.rehearse.report_terminal import print_report

        print_report(report)
        return
    from codemods.rehearse.report_text import report_lines

    for line in report_lines(report):
        click.echo(line, err=True)
