"""The helper ``ai_device`` that converted code imports, and how its source gets into a repository."""

from __future__ import annotations

import re
from pathlib import Path

import codemods

_STAMP = re.compile(r"^# uncuda helper (\S+)\r?$", re.MULTILINE)
_STAMP_LINES = 20
"""The stamp stands within so many lines, so that a licence may precede it and a text about it is no helper."""


def helper_source(name: str = "ai_device") -> str:
    """The text of the helper for a repository, stamped with the version; ``name`` is the name of its module there."""
    text = Path(__file__).with_name("ai_device.py").read_text(encoding="utf-8")
    text = _STAMP.sub(f"# uncuda helper {codemods.__version__}", text, count=1)
    return text if name == "ai_device" else text.replace("ai_device", name)


def is_helper(text: str) -> bool:
    """Whether a file is a helper that this tool wrote, of any version."""
    return helper_version(text) is not None


def helper_version(text: str) -> str | None:
    """The version in the stamp of a helper; ``None`` for any other file."""
    stamp = _STAMP.search("\n".join(text.split("\n")[:_STAMP_LINES]))
    return stamp.group(1) if stamp else None
