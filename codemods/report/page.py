"""A page that needs nothing else: what the pages of all reports share."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codemods.report.markup import Child, Html, element, fragment

_STYLE = """\
:root { color-scheme: light dark; --ink: #1d2129; --soft: #5f6875; --line: #dde1e7; --paper: #fff; --band: #f5f6f8;
  --good: #1a7f4b; --warn: #9a6200; --bad: #b42318; --link: #1a5fb4; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ec; --soft: #9aa3b0; --line: #343a44; --paper: #15181d;
  --band: #1d2127; --good: #4cc38a; --warn: #e0a83a; --bad: #ff8478; --link: #7db4ff; } }
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 70rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.5rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin: 2.25rem 0 .5rem; font-size: 1.1rem; }
p { margin: .4rem 0; overflow-wrap: anywhere; }
a { color: var(--link); }
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
summary { cursor: pointer; }
@media (max-width: 40rem) {
  body { padding-top: 1.25rem; }
  thead { display: none; }
  tr { display: block; padding: .6rem 0; border-bottom: 1px solid var(--line); }
  td, .figure { display: flow-root; padding: .1rem 0 .1rem 7.25rem; border: 0; text-align: left; white-space: normal; }
  .short { white-space: normal; }
  td:empty { display: none; }
  td::before { content: attr(data-label); float: left; width: 6.5rem; margin-left: -7.25rem; color: var(--soft);
    font: .85rem/1.7 system-ui, sans-serif; }
}
"""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    label: str
    kind: str = ""
    """Classes of its cells: ``figure``, ``code``, ``short``."""


def page(title: str, *body: Child, style: str = "", script: str = "") -> str:
    """The whole page. Nothing but this style and this script is allowed to it, so that no text of it can do harm."""
    return fragment(
        Html("<!doctype html>\n"),
        Html('<html lang="en">\n<head>\n<meta charset="utf-8">\n'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">\n'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">\n'),
        element("title", title),
        Html(f"\n<style>\n{_STYLE}{style}</style>\n</head>\n<body>\n"),
        ((part, Html("\n")) for part in body),
        Html(f"<script>{script}</script>\n" if script else ""),
        Html("</body>\n</html>\n"),
    )


def figures(pairs: Iterable[tuple[Child, Child]]) -> Html:
    """Figures in boxes beside each other, each with its label."""
    boxes = (element("div", element("dt", label), element("dd", figure)) for label, figure in pairs)
    return element("dl", boxes, class_="figures")


def table(columns: Sequence[Column], rows: Iterable[Iterable[Child]], *, class_: str | None = None) -> Html:
    """A table whose rows become blocks with labels where the page is narrow."""
    head = element("tr", (element("th", column.label, class_=column.kind or None) for column in columns))
    lines = ((element("tr", map(_cell, columns, row)), Html("\n")) for row in rows)
    return element("table", element("thead", head), Html("\n"), element("tbody", lines), class_=class_)


def _cell(column: Column, content: Child) -> Html:
    return element("td", content, data_label=column.label, class_=column.kind or None)


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    scripts = f"; script-src 'sha256-{digest}'" if script else ""
    return f"default-src 'none'; style-src 'unsafe-inline'{scripts}; base-uri 'none'; form-action 'none'"
