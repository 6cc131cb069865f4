"""Settings for a device that come from outside the Python code: configuration files, and options of other libraries.

A value that names CUDA there cannot be changed in the code. It is translated where the code takes it for a device, and
this module tells which names of settings that concerns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

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


def cuda_settings(python: Sequence[bytes], settings: Iterable[bytes]) -> Iterator[str]:
    """The names of settings, in lower case, that can name CUDA at run time whatever the code says.

    Args:
        python: the contents of the repository's Python files
        settings: those of its YAML, JSON and TOML files
    """
    for raw in settings:
        if b"cuda" in raw:
            yield from (match[1].decode().lower() for match in _SETTING.finditer(raw))
    for raw in python:
        if b"DEFINE_" in raw:
            yield from (match[1].decode().lower() for match in _FLAG.finditer(raw))
    fields = {name for raw in python if b"cuda" in raw for name in _fields(raw)}
    if fields and any(library in raw for raw in python for library in _FILLS_FIELDS):
        yield from fields


def _fields(raw: bytes) -> Iterator[str]:
    """The fields of classes for a device whose default names CUDA."""
    for match in _FIELD.finditer(raw):
        line = raw[raw.rfind(b"\n", 0, match.start()) + 1 : match.start()]
        start = _LINE_START.match(line)
        if start is not None:
            yield (start[1] + b"device").decode().lower()
