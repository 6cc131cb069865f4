"""A report as one page that needs nothing else: no script, no font, no request."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.rehearse.report import Report
from codemods.rehearse.report_tables import Table, end_line, summary_lines, tables
from codemods.report.markup import Html, element
from codemods.report.page import Column, figures, page, table
from codemods.report.wording import count

_VERDICTS = {0: ("good", "Nothing to say"), 1: ("warn", "Findings"), 2: ("bad", "Did not get through")}
_STYLE = """\
details > summary { margin-top: 2.25rem; font-weight: 600; }
"""
_CODE = {"place", "what", "operator", "called from"}
_SHORT = {"operator", "state", "kind", "host waits", "rule"}


def render(report: Report) -> str:
    """The page; every text in it is escaped."""
    title = f"Rehearsal of {report.script}"
    return page(title, element("h1", title), *_head(report), *_tables(report), *_foot(report), style=_STYLE)


def _head(report: Report) -> Iterator[Html]:
    kind, verdict = _VERDICTS[report.exit_code]
    first, _, *more = summary_lines(report)
    yield element("p", first, class_="soft")
    lines = ((Html("<br>"), line) for line in more)
    yield element("div", element("strong", verdict), end_line(report), lines, class_=f"verdict {kind}")
    yield figures(_figures(report))


def _figures(report: Report) -> Iterator[tuple[str, str]]:
    yield "CUDA still named", count(len(report.named), "place")
    yield "without a kernel", count(len(report.without_kernel), "operator")
    yield "time of those", f"{report.share(*report.without_kernel):.1%}"
    yield "waits of the host", f"{sum(transfer.calls for transfer in report.transfers if transfer.waits):,}"


def _tables(report: Report) -> Iterator[Html]:
    *shown, everything = tables(report, every_operator=True)
    for one in shown:
        yield element("h2", one.heading)
        yield _table(one)
    summary = element("summary", f"{everything.heading} ({len(everything.rows):,})")
    yield element("details", summary, _table(everything))


def _table(one: Table) -> Html:
    if not one.rows:
        return element("p", one.empty)
    return table([Column(label, _classes(label, is_figure)) for label, is_figure in one.labels()], one.rows)


def _classes(label: str, is_figure: bool) -> str:
    kinds = (("figure", is_figure), ("code", label in _CODE), ("short", label in _SHORT))
    return " ".join(name for name, is_so in kinds if is_so)


def _foot(report: Report) -> Iterator[Html]:
    yield element("h2", "What this tells, and what it does not")
    for line in (report.provenance, *report.limits):
        yield element("p", line, class_="soft")
