"""What the rules say of the code in a notebook that is no Python of its own: shell commands and texts of magics."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codemods.analysis.notebook_code import HiddenCode, NotebookCode
from codemods.analysis.scan import load_triggers
from codemods.catalogue import load_catalogue
from codemods.findings import Finding

_NVIDIA_TOOL = re.compile(rb"(?<![\w-])(?:nvidia-smi|nvcc|nsys|ncu)\b")
_WORD = re.compile(rb"\S+")


def hidden_findings(code: NotebookCode) -> list[Finding]:
    """The findings in what the cells hide; their offsets are those of the joined code."""
    found: list[Finding] = []
    for hidden in code.hidden:
        if hidden.kind == "shell":
            found += shell_findings(hidden)
        elif hidden.kind == "other":
            found += _executed_text(hidden)
    return found


def shell_findings(command: HiddenCode) -> Iterator[Finding]:
    """What is said of shell text: a ``!`` line, a command such as ``%pip``, or a ``%%bash`` cell.

    This is where the rules for the shell join: ``command.text`` starts at ``command.start``.
    """
    for match in _NVIDIA_TOOL.finditer(command.text):
        yield _finding("UC703", command, match.start(), match.end())


def _executed_text(hidden: HiddenCode) -> Iterator[Finding]:
    """A text that a magic runs, or writes into a file."""
    triggers = load_triggers()
    if triggers.mentioned_in(hidden.text):
        offset = min(triggers.offsets(hidden.text), default=0)
        word = _WORD.match(hidden.text, offset)
        yield _finding("UC809", hidden, offset, word.end() if word else offset + 1, f"the text of `{hidden.magic}`")


def _finding(rule: str, hidden: HiddenCode, start: int, end: int, detail: str = "") -> Finding:
    """A finding at a stretch of the hidden text. Line and column are set where the cell is known."""
    known = load_catalogue()[rule]
    message = f"{known.message}: {detail}" if detail else known.message
    return Finding(rule, known.tier, message, hidden.start + start, hidden.start + end, line=1, column=1)
