"""CUDA sources: how much there is to port."""

from __future__ import annotations

import re
from typing import NamedTuple

_NO_CODE = re.compile(
    rb"""
    //(?:\\\r?\n|[^\n])*          # a comment; a backslash carries it on
    | /\*.*?(?:\*/|\Z)
    | "(?:\\.|[^"\\\n])*"
    | '(?:\\.|[^'\\\n])'          # a character; an apostrophe may also part the digits of a number
    """,
    re.DOTALL | re.VERBOSE,
)
_KERNEL = re.compile(rb"\b__global__\b[^;{]{0,4000}\{")  # bounded, since a file may be made to hold out


class Size(NamedTuple):
    """The size of a CUDA source."""

    lines: int
    kernels: int
    """Definitions of ``__global__`` functions; what macros make of them is not seen."""


def measure(raw: bytes) -> Size:
    """The size of a CUDA source with this content."""
    lines = raw.count(b"\n") + (not raw.endswith(b"\n") and raw != b"")
    return Size(lines, len(_KERNEL.findall(_NO_CODE.sub(b" ", raw))))
