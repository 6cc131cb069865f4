"""Style and script of the report for a project lead. The page is whole without the script."""

from __future__ import annotations

from codemods.report.markup import Html

STYLE = """\
:root { --safe: #2a8f57; --review: #86c9a2; --by-hand: #e3a52f; --cuda-only: #c2473a; }
@media (prefers-color-scheme: dark) {
  :root { --safe: #35a56a; --review: #1f5f3e; --by-hand: #d69a2d; --cuda-only: #e0604f; }
}
html { scroll-padding-top: 3.5rem; }
h1 { font-size: 2rem; }
h2 { margin-top: 3rem; font-size: 1.35rem; }
h3 { margin: 2rem 0 .25rem; font-size: 1rem; }
.lead { margin: .75rem 0; font-size: 1.15rem; }
header > p:first-child { margin: 0; }
.bar { display: flex; height: .7rem; overflow: hidden; border-radius: 3px; }
.bar i { min-width: 2px; }
.whole { height: 1.1rem; margin: 1.25rem 0 .75rem; border-radius: 4px; }
.safe { background: var(--safe); } .review { background: var(--review); }
.by-hand { background: var(--by-hand); } .cuda-only { background: var(--cuda-only); }
.key { display: inline-block; width: .7rem; height: .7rem; margin-right: .4rem; border-radius: 2px; }
nav { position: sticky; top: 0; z-index: 1; display: flex; flex-wrap: wrap; gap: .25rem 1rem; align-items: center;
  margin: 1.5rem -1.25rem 0; padding: .6rem 1.25rem; border-bottom: 1px solid var(--line); background: var(--paper);
  font-size: .9rem; }
nav .links { display: flex; flex: 1; flex-wrap: wrap; gap: .25rem 1rem; }
nav a { text-decoration: none; } nav a:hover { text-decoration: underline; }
nav label { color: var(--soft); }
nav input { width: 14rem; padding: .25rem .5rem; border: 1px solid var(--line); border-radius: 4px; color: inherit;
  background: var(--band); font: inherit; }
details { margin: .5rem 0; border: 1px solid var(--line); border-radius: 6px; }
details > div { padding: 0 1rem .75rem; }
details td { border-bottom-color: var(--band); } details tr:last-child td { border-bottom: 0; }
summary { padding: .5rem 1rem; overflow-wrap: anywhere; }
summary:hover { background: var(--band); }
summary b { font-weight: 600; }
summary .soft { font-size: .9rem; }
summary .drawn { float: right; display: flex; gap: 1rem; align-items: center; width: 26rem; }
summary .bar { flex: none; width: 7rem; margin-left: auto; }
summary .drawn .soft { flex: none; width: 18rem; }
code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; }
td.code code { font-size: 1em; }
td.place { width: 30%; } td.place:nth-last-child(2) { width: 45%; } td.place:has(+ .figure) { width: 60%; }
.bars td { vertical-align: middle; }
.bars .name { width: 30%; } .bars .drawn { width: 34%; }
.steps { margin: .5rem 0; padding: 0; list-style: none; counter-reset: step; }
.steps li { position: relative; padding: .6rem 0 .6rem 2.75rem; border-bottom: 1px solid var(--line);
  counter-increment: step; }
.steps li::before { content: counter(step); position: absolute; left: 0; top: .6rem; width: 1.75rem; height: 1.75rem;
  border: 1px solid var(--soft); border-radius: 50%; color: var(--soft); font-size: .85rem; line-height: 1.65rem;
  text-align: center; }
.command { display: block; width: fit-content; max-width: 100%; margin-top: .3rem; padding: .15rem .6rem;
  border-radius: 4px; background: var(--band); font: .85rem ui-monospace, monospace; overflow-wrap: anywhere; }
footer { margin-top: 3rem; }
@media (max-width: 40rem) {
  nav { position: static; } nav input { width: 100%; } nav label { width: 100%; }
  html { scroll-padding-top: 0; }
  td:first-child, td.code, td.code ~ td:not(.figure), .bars td.drawn {
    display: block; width: auto !important; min-width: 0; padding-left: 0; }
  td:first-child::before, td.code::before, td.code ~ td:not(.figure)::before, .bars td.drawn::before { content: none; }
  td.figure:not(:empty) { display: inline-block; padding-left: 0; margin-right: 1.25rem; }
  td.figure::before { float: none; width: auto; margin: 0 .4rem 0 0; }
  summary .soft { display: block; }
  summary .drawn { display: block; float: none; width: auto; }
  summary .bar { width: 100%; margin: .35rem 0; }
  summary .drawn .soft { width: auto; }
}
@media print { nav { display: none; } }
"""

FILTER = Html(
    '<label id="filter" hidden>Filter '
    '<input type="search" placeholder="file, rule, text" autocomplete="off" spellcheck="false"></label>'
)
"""The box that the script shows."""

SCRIPT = """
(function () {
  var label = document.getElementById("filter"), box = label.querySelector("input");
  var folds = Array.from(document.querySelectorAll("details")), timer;
  label.hidden = false;
  folds.forEach(function (fold) { fold.dataset.open = fold.open ? "1" : ""; });

  function filter() {
    var wanted = box.value.trim().toLowerCase();
    folds.forEach(function (fold) {
      var whole = fold.querySelector("summary").textContent.toLowerCase().includes(wanted), any = whole;
      fold.querySelectorAll("tbody tr").forEach(function (row) {
        row.hidden = !whole && !row.textContent.toLowerCase().includes(wanted);
        any = any || !row.hidden;
      });
      fold.hidden = !any;
      fold.open = wanted ? any && !whole : fold.dataset.open === "1";
    });
  }
  box.addEventListener("input", function () { clearTimeout(timer); timer = setTimeout(filter, 150); });
})();
"""
"""Shows the box, and hides the folded rows without the text in it."""
