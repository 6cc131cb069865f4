"""What the rules say of one file beside the Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from codemods.companions.config_values import config_remarks
from codemods.companions.dockerfile import dockerfile_remarks
from codemods.companions.remarks import NOTHING_KNOWN, Knowledge, Remark, findings_of
from codemods.companions.requirements import ini_remarks, requirements_remarks
from codemods.companions.shell import shell_remarks
from codemods.companions.vocabulary import load_vocabulary
from codemods.cuda_api import load_packages
from codemods.devices import load_devices
from codemods.findings import Finding, Tier
from codemods.source.document import Document

_READERS: dict[str, Callable[[str, Knowledge], Iterator[Remark]]] = {
    "shell": lambda text, known: shell_remarks(text, known=known),
    "dockerfile": dockerfile_remarks,
    "requirements": requirements_remarks,
    "ini": ini_remarks,
    "yaml": lambda text, known: config_remarks(text, "yaml", known),
    "json": lambda text, known: config_remarks(text, "json", known),
    "toml": lambda text, known: config_remarks(text, "toml", known),
}


_WORDS = (b"cuda", b"nvidia", b"nccl", b"gpu", b"cudnn", b"nvcr.io")
_CUDA_BUILD = b"cu1"
_INSTALLS = (b"install", b"dependencies", b"requires", b"pip")


def may_concern(raw: bytes, kind: str) -> bool:
    """Whether a file may hold anything that the rules speak of: a search over bytes, which settles most files."""
    lower = raw.lower()
    if any(word in lower for word in _WORDS):
        return True
    if kind != "requirements" and not any(word in lower for word in _INSTALLS) and kind not in ("shell", "dockerfile"):
        return False
    return _CUDA_BUILD in lower or any(word in lower for word in _installed_words())


@cache
def _installed_words() -> tuple[bytes, ...]:
    vocabulary = load_vocabulary()
    packages = {name for package in load_packages().values() for name in package.distributions}
    words = {name.lower() for name in (*packages, *vocabulary.aliases, *vocabulary.tools)}
    return tuple(spelled.encode() for word in words for spelled in {word, word.replace("-", "_")})


def companion_findings(document: Document, kind: str, known: Knowledge = NOTHING_KNOWN) -> tuple[Finding, ...]:
    """The findings in a file of a kind that ``kind_of`` tells, in the order of the text.

    In a file that by its path is for another device (``docker-rocm/Dockerfile``) they are notes.
    """
    found = findings_of(document.text, _READERS[kind](document.text, known))
    if not _is_for_another_device(document.path):
        return found
    return tuple(replace(finding, tier=Tier.NOTE) for finding in found)


def _is_for_another_device(path: Path) -> bool:
    parts = {part.lower() for part in path.parts[-2:] for part in re.split(r"[^A-Za-z0-9]+", part)}
    return not parts.isdisjoint(_other_devices())


@cache
def _other_devices() -> frozenset[str]:
    others = [device for device in load_devices() if device.name != "nvidia"]
    return frozenset({"rocm", *(device.name for device in others), *(device.type for device in others)} - {"cuda"})
