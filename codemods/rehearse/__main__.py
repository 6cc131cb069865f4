"""``python -m codemods.rehearse SCRIPT``, the same as ``uncuda rehearse SCRIPT``."""

from codemods.cli.rehearse import command

command(prog_name="python -m codemods.rehearse")
