"""The command ``uncuda``: finds the verb, and loads nothing of the others."""

from __future__ import annotations

import sys
from importlib import import_module

import click

import codemods

_VERBS = ("check", "convert", "explain", "rehearse", "rules")


class _Verbs(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _VERBS:
            return None
        command: click.Command = import_module(f"codemods.cli.{cmd_name}").command
        return command


@click.command(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(codemods.__version__, prog_name="uncuda")
def cli() -> None:
    """Makes PyTorch code device-agnostic: one source, the device chosen at run time by AI_DEVICE."""


def main() -> None:
    """Entry point of the command line."""
    try:
        cli()
    except BrokenPipeError:
        sys.stderr.close()  # the reader of a pipe has seen enough
        sys.exit(1)
