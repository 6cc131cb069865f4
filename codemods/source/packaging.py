"""Which packages a project installs, read off its packaging files without running them."""

from __future__ import annotations

import re
from collections.abc import Iterable

PACKAGING_FILES = ("setup.py", "setup.cfg", "pyproject.toml")

_NEVER_INSTALLED = frozenset(
    # fmt: off
    [
        "benchmark",
        "benchmarks",
        "bin",
        "config",
        "configs",
        "data",
        "demo",
        "demos",
        "doc",
        "docs",
        "example",
        "examples",
        "experiment",
        "experiments",
        "notebooks",
        "projects",
        "samples",
        "script",
        "scripts",
        "test",
        "tests",
        "tool",
        "tools",
        "tutorial",
        "tutorials",
    ]
    # fmt: on
)
_LISTED = re.compile(r"\b(?:packages|py[_-]modules)[\"']?\s*[=:]\s*\[([^\]]*)\]")
_DISCOVERED = re.compile(r"\bfind_(?:namespace_)?packages\b|\bfind:|^\[(?:project|tool\.poetry)\]", re.MULTILINE)
_EXCLUDED = re.compile(r"\bexclude\s*=\s*[\[(]([^\])]*)[\])]")
_FOLDER = re.compile(
    r"\bwhere[\"']?\s*[=:]\s*\[?\s*[\"']?([\w/]+)|package[_-]dir\s*=\s*\{?\s*(?:[\"']{2})?\s*[:=]\s*[\"']?([\w/]+)"
)
_QUOTED = re.compile(r"[\"']([\w/]+)")


def source_folders(text: str) -> set[str]:
    """The folders, relative to the project, that may hold packages; ``text`` is that of the packaging files."""
    return {"", "src"} | {first or second for first, second in _FOLDER.findall(text)}


def installed_names(text: str, packages: Iterable[str]) -> set[str]:
    """Those of a project's top-level packages that it installs; ``text`` is that of the packaging files."""
    listed = _LISTED.findall(text)
    names = {name for names in listed for name in _QUOTED.findall(names)}
    if _DISCOVERED.search(text) and (not listed or "find" in text):
        excluded = {name for names in _EXCLUDED.findall(text) for name in _QUOTED.findall(names)}
        names |= set(packages) - _NEVER_INSTALLED - excluded
    return names & set(packages)
