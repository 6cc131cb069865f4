"""``uncuda explain CODE``"""

from __future__ import annotations

import sys
from difflib import get_close_matches

import click

from codemods.catalogue import Rule, load_catalogue
from codemods.report.rule import markdown


@click.command()
@click.argument("code")
def command(code: str) -> None:
    """Explains a rule: what it looks for, what it does about it and why, with examples."""
    rule = _find(code)
    if rule is None:
        known = load_catalogue()
        close = get_close_matches(code.upper(), list(known), n=1)
        hint = f"; did you mean {close[0]}?" if close else "; `uncuda rules` lists them"
        click.echo(f"uncuda: there is no rule {code}{hint}", err=True)
        sys.exit(2)
    _show(markdown(rule))


def _find(code: str) -> Rule | None:
    """A rule by its code or its name."""
    rules = load_catalogue()
    return rules.get(code.upper()) or next((rule for rule in rules.values() if rule.name == code.lower()), None)


def _show(text: str) -> None:
    if not sys.stdout.isatty():
        click.echo(text, nl=False)
        return
    from rich.markdown import Markdown

    from codemods.report.terminal import console

    console().print(Markdown(text))
