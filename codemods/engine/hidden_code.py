"""What the rules say of the code in a notebook that is no Python of its own: shell commands and texts of magics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from codemods.analysis.notebook_code import HiddenCode, NotebookCode
from codemods.analysis.scan import load_triggers
from codemods.catalogue import load_catalogue
from codemods.companions.remarks import findings_of
from codemods.companions.shell import shell_remarks
from codemods.findings import Finding

_WORD = re.compile(rb"\S+")


def hidden_findings(code: NotebookCode) -> list[Finding]:
    """The findings in what the cells hide; their offsets are those of the joined code."""
    found: list[Finding] = []
    for hidden in code.hidden:
        if hidden.kind == "shell":
            found += _shell_findings(hidden)
        elif hidden.kind == "other":
            found += _executed_text(hidden)
    return found


def _shell_findings(command: HiddenCode) -> Iterator[Finding]:
    """What is said of shell text: a ``!`` line, a command such as ``%pip``, or a ``%%bash`` cell."""
    text = command.text.decode("utf-8", "replace")
    for finding in findings_of(text, shell_remarks(text)):
        yield replace(finding, start=command.start + finding.start, end=command.start + finding.end)


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
