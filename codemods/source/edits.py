"""Edits: replacements of byte ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Edit:
    """Replaces the bytes ``start`` to ``end`` (excluded) of a file's UTF-8 text."""

    start: int
    end: int
    replacement: str


def in_order(edits: Sequence[Edit]) -> list[Edit]:
    """Edits by position; those at the same place keep the order in which they were given."""
    return sorted(edits, key=lambda edit: (edit.start, edit.end))


def apply_edits(utf8: bytes, edits: Sequence[Edit]) -> bytes:
    """The text with every edit made; bytes outside the edits are untouched.

    Raises:
        ValueError: edits overlap, lie outside the text or cut a character in two,
            or a replacement has no UTF-8 form (a lone surrogate)
    """
    pieces: list[bytes] = []
    done = 0
    for edit in in_order(edits):
        if edit.start < done:
            raise ValueError(f"edits overlap at byte {edit.start}")
        if not edit.start <= edit.end <= len(utf8):
            raise ValueError(f"an edit of bytes {edit.start} to {edit.end} does not fit {len(utf8)} bytes of text")
        if _inside_character(utf8, edit.start) or _inside_character(utf8, edit.end):
            raise ValueError(f"an edit of bytes {edit.start} to {edit.end} cuts a character in two")
        pieces += (utf8[done : edit.start], edit.replacement.encode())
        done = edit.end
    pieces.append(utf8[done:])
    return b"".join(pieces)


def _inside_character(utf8: bytes, offset: int) -> bool:
    return offset < len(utf8) and utf8[offset] & 0xC0 == 0x80
