"""Which packages a project installs, read off its packaging files without running them."""

from __future__ import annotations

import re
from collections.abc import Iterable

PACKAGING_FILES = ("setup.py", "setup.cfg", "pyproject.toml")

_SELDOM_INSTALLED = frozenset(
    "benchmark benchmarks bin config configs data demo demos doc docs example examples experiment experiments "  # noqa: SIM905
    "notebooks projects samples script scripts test tests tool tools tutorial tutorials".split()
)
_LIST = re.compile(r"\b(?:packages|py[_-]modules)[\"']?\s*[=:]\s*\[([^\]]*)\]")
_SEARCH = re.compile(r"\bfind_(?:namespace_)?packages\b|\bfind:|\bpackages\.find\b")
_PROJECT = re.compile(r"^\[(?:project|tool\.poetry)\]", re.MULTILINE)
_NAME = re.compile(r"^name\s*=\s*[\"']([^\"']+)", re.MULTILINE)
_INCLUDE = re.compile(r"\binclude\s*=\s*[\[(]([^\])]*)[\])]")
_EXCLUDE = re.compile(r"\bexclude\s*=\s*[\[(]([^\])]*)[\])]")
_FOLDER = re.compile(
    r"(?:\bwhere[\"']?\s*[=:]\s*\[?\s*[\"']?|\bfind_packages\(\s*[\"']|\bpackage[_-]dir\s*=\s*\{\s*[\"']{2}\s*[:=]\s*[\"'])"
    r"([\w/]+)"
)
_QUOTED = re.compile(r"[\"']([\w.*]+)")


def source_folders(text: str) -> set[str]:
    """The folders, relative to the project, that may hold packages; ``text`` is that of the packaging files."""
    return {"", "src", *_FOLDER.findall(text)}


def installed_packages(text: str, top_level: Iterable[str]) -> set[str]:
    """The dotted names of the packages that a project installs, without those inside another one.

    Args:
        text: that of the packaging files
        top_level: the packages that the source folders of the project hold
    """
    lists = _LIST.findall(text)
    names = _quoted(lists)
    usual = set(top_level) - _SELDOM_INSTALLED
    if _SEARCH.search(text):
        included = _quoted(_INCLUDE.findall(text)) - {"*"}
        names |= {_without_wildcard(name) for name in included} or usual - _quoted(_EXCLUDE.findall(text))
    elif not lists and _PROJECT.search(text):
        # Build tools then take the package that is named like the project, or the only one.
        own = {name for name in usual if name.lower() == _project_name(text)}
        names |= own or (usual if len(usual) == 1 else set())
    return {name for name in names if not any(name.startswith(f"{other}.") for other in names)}


def _quoted(lists: Iterable[str]) -> set[str]:
    return {name for text in lists for name in _QUOTED.findall(text)}


def _without_wildcard(pattern: str) -> str:
    return pattern.partition("*")[0].rstrip(".")


def _project_name(text: str) -> str | None:
    match = _NAME.search(text)
    return match[1].lower().replace("-", "_") if match else None
