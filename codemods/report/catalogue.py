"""Renders ``docs/rules.md`` from the rule catalogue.

python -m codemods.report.catalogue            rewrites the page
python -m codemods.report.catalogue --check    exits 1 if the page is not up to date
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from codemods.catalogue import Rule, load_catalogue
from codemods.report.rule import markdown

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"

_INTRODUCTION = """\
# The rules

Written by `python -m codemods.report.catalogue` from `rules/catalogue`; change it there.
`uncuda explain CODE` shows a rule on the command line.
"""
_HEADINGS = re.compile(r"^# ", re.MULTILINE)
_FENCE = "```"


def render(rules: Iterable[Rule]) -> str:
    """The page: a table of all rules, then each of them."""
    rules = list(rules)
    return "\n".join([_INTRODUCTION, _table(rules), *map(_section, rules)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Rewrites or checks the page; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m codemods.report.catalogue", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only tell whether the page is up to date")
    check = parser.parse_args(arguments).check
    wanted = render(load_catalogue().values())
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == wanted:
        return 0
    if check:
        print("docs/rules.md differs from rules/catalogue; run python -m codemods.report.catalogue")
        return 1
    PAGE.write_text(wanted, encoding="utf-8", newline="\n")
    print("docs/rules.md rewritten")
    return 0


def _table(rules: Iterable[Rule]) -> str:
    rows = (f"| [{rule.code}](#{_anchor(rule)}) | {rule.name} | {rule.tier.label} | {rule.title} |\n" for rule in rules)
    return "| code | name | tier | what it finds |\n|---|---|---|---|\n" + "".join(rows)


def _anchor(rule: Rule) -> str:
    return f"{rule.code}-{rule.name}".lower()


def _section(rule: Rule) -> str:
    """The rule one level of headings deeper; lines of code that begin with ``#`` are no headings."""
    pieces = markdown(rule).split(_FENCE)
    pieces[::2] = [_HEADINGS.sub("## ", piece) for piece in pieces[::2]]
    return _FENCE.join(pieces)


if __name__ == "__main__":
    sys.exit(main())
