"""``uncuda rules``"""

from __future__ import annotations

import sys

import click

from codemods.catalogue import Rule, load_catalogue


@click.command()
def command() -> None:
    """Lists the rules: code, tier, name and title."""
    rules = list(load_catalogue().values())
    if sys.stdout.isatty():
        _print_table(rules)
        return
    for rule in rules:
        click.echo(f"{rule.code}  {rule.tier.label:6}  {rule.name:24}  {rule.title}")


def _print_table(rules: list[Rule]) -> None:
    from rich.table import Table

    from codemods.report.terminal import console

    table = Table("code", "tier", "name", "title", box=None, header_style="bold")
    for rule in rules:
        table.add_row(rule.code, rule.tier.label, rule.name, rule.title)
    console().print(table)
