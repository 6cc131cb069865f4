"""Settings for a device that come from outside the Python code: configuration files, and options of other libraries.

A value that names CUDA there cannot be changed in the code. It is translated where the code takes it for a device, and
this module tells which names of settings that concerns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from codemods.source.facts import Fact, Facts, is_flag, is_text

_SETTING = re.compile(
    rb"""^[ \t{,-]*["']?(?:[\w-]+[./])*(\w*device)["']?[ \t]*[:=][ \t]*["']?cuda(?::\d+)?["']?[ \t,}]*(?:\#.*)?\r?$""",
    re.MULTILINE | re.IGNORECASE,
)
_FLAG = re.compile(rb"""DEFINE_(?:string|enum)\(\s*["'](\w*device)["']\s*,\s*["']cuda""", re.IGNORECASE)
_FIELD = re.compile(rb"""device[ \t]*:[ \t]*[\w.\[\]"', |]+=[ \t]*["']cuda(?::\d+)?["']""")
_LINE_START = re.compile(rb"[ \t]+(\w*)\Z")
_FILLS_FIELDS = (b"hydra", b"omegaconf", b"HfArgumentParser", b"tyro", b"simple_parsing", b"draccus", b"jsonargparse",
                 b"pyrallis", b"chz")  # fmt: skip
"""Libraries that fill the fields of a class from a command line or a file."""


@dataclass(frozen=True)
class Declared:
    """What a Python file says of settings."""

    flags: frozenset[str] = frozenset()
    """Names of command-line options for a device whose default names CUDA."""
    fields: frozenset[str] = frozenset()
    """Likewise of fields of classes."""
    fills_fields: bool = False
    """Whether it mentions a library that fills fields from outside."""


def cuda_settings(python: Iterable[bytes], settings: Iterable[bytes], facts: Facts) -> set[str]:
    """The names of settings, in lower case, that can name CUDA at run time whatever the code says.

    Args:
        python: the contents of the repository's Python files
        settings: those of its YAML, JSON and TOML files
        facts: what finds, or knows, what a content says
    """
    names = {name for raw in settings if b"cuda" in raw for name in facts.of(SETTING_NAMES, raw)}
    declared = [facts.of(DECLARED, raw) for raw in python]
    names.update(name for item in declared for name in item.flags)
    if any(item.fills_fields for item in declared):
        names.update(name for item in declared for name in item.fields)
    return names


def _setting_names(raw: bytes) -> frozenset[str]:
    return frozenset(match[1].decode().lower() for match in _SETTING.finditer(raw))


def _declared(raw: bytes) -> Declared:
    return Declared(
        flags=frozenset(match[1].decode().lower() for match in _FLAG.finditer(raw))
        if b"DEFINE_" in raw
        else frozenset(),
        fields=frozenset(_fields(raw)) if b"cuda" in raw else frozenset(),
        fills_fields=any(library in raw for library in _FILLS_FIELDS),
    )


def _fields(raw: bytes) -> Iterator[str]:
    """The fields of classes for a device whose default names CUDA."""
    for match in _FIELD.finditer(raw):
        line = raw[raw.rfind(b"\n", 0, match.start()) + 1 : match.start()]
        start = _LINE_START.match(line)
        if start is not None:
            yield (start[1] + b"device").decode().lower()


def _unpack(value: Any) -> Declared:
    flags, fields, fills_fields = value
    return Declared(frozenset(map(is_text, flags)), frozenset(map(is_text, fields)), is_flag(fills_fields))


SETTING_NAMES = Fact("setting names", _setting_names, sorted, lambda value: frozenset(map(is_text, value)))
DECLARED = Fact(
    "declared settings", _declared, lambda item: [sorted(item.flags), sorted(item.fields), item.fills_fields], _unpack
)
