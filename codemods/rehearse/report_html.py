"""A report as one page that needs nothing else: no script, no font, no request."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from codemods.rehearse.report import Report
from codemods.rehearse.report_tables import Table, count, end_line, summary_lines, tables

_VERDICTS = {0: ("good", "Nothing to say"), 1: ("warn", "Findings"), 2: ("bad", "Did not get through")}
_STYLE = """\
:root { color-scheme: light dark; --ink: #1d2129; --soft: #5f6875; --line: #dde1e7; --paper: #fff; --band: #f5f6f8;
  --good: #1a7f4b; --warn: #9a6200; --bad: #b42318; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ec; --soft: #9aa3b0; --line: #343a44; --paper: #15181d;
  --band: #1d2127; --good: #4cc38a; --warn: #e0a83a; --bad: #ff8478; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 70rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.5rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin: 2.25rem 0 .5rem; font-size: 1.1rem; }
p { margin: .4rem 0; overflow-wrap: anywhere; }
.soft { color: var(--soft); }
.verdict { margin: 1.25rem 0; padding: .75rem 1rem; border-left: 4px solid; background: var(--band);
  overflow-wrap: anywhere; }
.verdict strong { display: block; }
.good { border-color: var(--good); } .good strong { color: var(--good); }
.warn { border-color: var(--warn); } .warn strong { color: var(--warn); }
.bad { border-color: var(--bad); } .bad strong { color: var(--bad); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .75rem; margin: 0; }
.figures div { padding: .6rem .9rem; border: 1px solid var(--line); border-radius: 6px; }
.figures dt { color: var(--soft); font-size: .85rem; }
.figures dd { margin: 0; font-size: 1.3rem; font-variant-numeric: tabular-nums; }
table { width: 100%; border-collapse: collapse; font-size: .9rem; }
th { color: var(--soft); font-weight: 500; white-space: nowrap; }
th, td { padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
td { overflow-wrap: anywhere; }
.figure { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.code { min-width: 7rem; font-family: ui-monospace, monospace; font-size: .85rem; }
.short { white-space: nowrap; }
summary { cursor: pointer; margin-top: 2.25rem; font-weight: 600; }
@media (max-width: 40rem) {
  body { padding-top: 1.25rem; }
  thead { display: none; }
  tr { display: block; padding: .6rem 0; border-bottom: 1px solid var(--line); }
  td, .figure { display: grid; grid-template-columns: 6.5rem minmax(0, 1fr); gap: .75rem; padding: .1rem 0; border: 0;
    text-align: left; white-space: normal; }
  .short { white-space: normal; }
  td:empty { display: none; }
  td::before { content: attr(data-label); color: var(--soft); font: .85rem system-ui, sans-serif; }
}
"""
_CODE = {"place", "what", "operator", "called from"}
_SHORT = {"operator", "state", "kind", "host waits", "rule"}


def render(report: Report) -> str:
    """The page; every text in it is escaped."""
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Rehearsal of {escape(report.script)}</title>",
            f"<style>\n{_STYLE}</style>",
            "<body>",
            *_head(report),
            *_tables(report),
            *_foot(report),
            "</body>",
            "</html>",
            "",
        ]
    )


def _head(report: Report) -> Iterator[str]:
    kind, verdict = _VERDICTS[report.exit_code]
    yield f"<h1>Rehearsal of {escape(report.script)}</h1>"
    yield f'<p class="soft">{escape(summary_lines(report)[0])}</p>'
    yield f'<div class="verdict {kind}"><strong>{verdict}</strong>{escape(end_line(report))}'
    for line in summary_lines(report)[2:]:
        yield f"<br>{escape(line)}"
    yield "</div>"
    yield '<dl class="figures">'
    for label, figure in _figures(report):
        yield f"<div><dt>{label}</dt><dd>{figure}</dd></div>"
    yield "</dl>"


def _figures(report: Report) -> Iterator[tuple[str, str]]:
    yield "CUDA still named", count(len(report.named), "place")
    yield "without a kernel", count(len(report.without_kernel), "operator")
    yield "time of those", f"{report.share(*report.without_kernel):.1%}"
    yield "waits of the host", f"{sum(transfer.calls for transfer in report.transfers if transfer.waits):,}"


def _tables(report: Report) -> Iterator[str]:
    *shown, everything = tables(report, every_operator=True)
    for table in shown:
        yield f"<h2>{table.heading}</h2>"
        yield from _table(table)
    yield f"<details><summary>{everything.heading} ({len(everything.rows):,})</summary>"
    yield from _table(everything)
    yield "</details>"


def _table(table: Table) -> Iterator[str]:
    if not table.rows:
        yield f"<p>{table.empty}</p>"
        return
    labels = table.labels()
    yield "<table><thead><tr>"
    yield "".join(f"<th{_classes(label, figures)}>{label}</th>" for label, figures in labels)
    yield "</tr></thead><tbody>"
    for row in table.rows:
        cells = zip(row, labels, strict=True)
        yield "<tr>" + "".join(_cell(cell, label, figures) for cell, (label, figures) in cells) + "</tr>"
    yield "</tbody></table>"


def _cell(cell: str, label: str, figures: bool) -> str:
    return f'<td data-label="{label}"{_classes(label, figures)}>{escape(cell)}</td>'


def _classes(label: str, figures: bool) -> str:
    kinds = (("figure", figures), ("code", label in _CODE), ("short", label in _SHORT))
    names = " ".join(name for name, is_so in kinds if is_so)
    return f' class="{names}"' if names else ""


def _foot(report: Report) -> Iterator[str]:
    yield "<h2>What this tells, and what it does not</h2>"
    for line in (report.provenance, *report.limits):
        yield f'<p class="soft">{escape(line)}</p>'
