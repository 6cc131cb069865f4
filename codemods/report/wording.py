"""Pieces of text that several reports share."""

from __future__ import annotations

_ESCAPED_BYTES = range(0xDC80, 0xDD00)
"""What Python makes of bytes of a file name that are no text."""


def count(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def visible(text: str) -> str:
    r"""The text with every character that shows as nothing, or moves others, as an escape such as ``\u202e``.

    What is left is a line of printable characters, which every encoding of Unicode can hold.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _escape(one) for one in text)


def _escape(character: str) -> str:
    code = ord(character)
    if code in _ESCAPED_BYTES:
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")
