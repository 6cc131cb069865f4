"""Requirements: files of pip, and the lists of dependencies in ``pyproject.toml``, ``setup.cfg`` and of conda."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from codemods.companions.entries import Entry, ini_entries
from codemods.companions.packages import package_remark
from codemods.companions.remarks import Knowledge, Remark
from codemods.companions.vocabulary import load_vocabulary

_OPTION = re.compile(r"(?:--?[\w-]+)(?:[= \t]+|\Z)")
_COMMENT = re.compile(r"(?:^|[ \t])#[^\n]*")


def requirements_remarks(text: str, known: Knowledge) -> Iterator[Remark]:
    """What the rules say of a requirements file of pip."""
    at = 0
    for line in text.splitlines(keepends=True):
        content = _COMMENT.sub("", line).rstrip("\r\n\\ \t")
        option = _OPTION.match(content.lstrip())
        begin = len(content) - len(content.lstrip()) + (option.end() if option else 0)
        requirement = content[begin:].strip()
        if requirement and not (option and content.lstrip().startswith(("-r", "-c", "--hash", "--req", "--con"))):
            remark = package_remark(requirement, at + begin, at + begin + len(requirement), known)
            if remark is not None:
                yield remark
        at += len(line)


def ini_remarks(text: str, known: Knowledge) -> Iterator[Remark]:
    """What the rules say of the dependencies in a ``setup.cfg``."""
    for entry in ini_entries(text):
        if entry.path[-1] in ("install_requires", "setup_requires") or entry.path[0] == "options.extras_require":
            remark = package_remark(entry.value, entry.start, entry.end, known)
            if remark is not None:
                yield remark


def dependency_remarks(entries: Iterable[Entry], known: Knowledge) -> Iterator[Remark]:
    """What the rules say of dependencies among the entries of a configuration file, and of indices to look in."""
    lists = load_vocabulary().requirement_lists
    named: set[tuple[str, ...]] = set()
    for entry in entries:
        at = next((number for number, key in enumerate(entry.path) if key in lists), None)
        if entry.is_item and at is not None:
            requirement = entry.value
        elif at is not None and len(entry.path) > at + 1 and entry.path[: at + 2] not in named:
            # Poetry, pixi and the like: the key is the name.
            named.add(entry.path[: at + 2])
            requirement = f"{entry.path[at + 1]} {entry.value}"
        elif entry.path[-1:] == ("url",):
            requirement = entry.value
        else:
            continue
        remark = package_remark(requirement, entry.start, entry.end, known)
        if remark is not None:
            yield remark
