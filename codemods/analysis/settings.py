"""Configuration files: settings that name a CUDA device or its collective backend."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SETTING = re.compile(
    rb"""
    ^[ \t{,-]*["']?[\w.-]*(?:device|backend|accelerator)[\w.-]*["']?  # the key
    [ \t]*:[ \t]*
    ["']?(?:cuda(?::\d+)?|nccl)["']?                                   # the value
    [ \t,}]*(?:\#.*)?\r?$
    """,
    re.MULTILINE | re.IGNORECASE | re.VERBOSE,
)


def cuda_settings(raw: bytes) -> Iterator[tuple[int, str]]:
    """The lines of a YAML or JSON file that set a device to CUDA or a backend to NCCL: their numbers and texts."""
    if b"cuda" not in raw and b"nccl" not in raw:
        return
    for match in _SETTING.finditer(raw):
        yield (
            raw.count(b"\n", 0, match.start()) + 1,
            match.group().decode("utf-8", "replace").strip().strip("{,}").strip(),
        )
