"""A source file as text, and back to the very bytes it came from."""

from __future__ import annotations

import codecs
import re
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from codemods.errors import UserError
from codemods.source.edits import Edit, apply_edits

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|$)")
_LINE_END = re.compile(rb"\r\n|\r|\n")
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
_ASCII = bytes([*b"\t\n\f\r", *range(0x20, 0x7F)])


class SourceError(UserError):
    """A file that cannot be read, understood or written; ``reason`` is one line for the user.

    In a notebook ``line`` is that of the cell with the number ``cell``.
    """

    def __init__(self, path: Path, reason: str, line: int | None = None, cell: int | None = None) -> None:
        super().__init__(path, reason, line, cell)
        self.path = path
        self.reason = reason
        self.line = line
        self.cell = cell

    @property
    def place(self) -> str:
        """What stands behind the path: ``:3``, ``:cell 2:3``, or nothing."""
        parts = ("" if self.cell is None else f":cell {self.cell}", "" if self.line is None else f":{self.line}")
        return "".join(parts)

    def __str__(self) -> str:
        return f"{self.path}{self.place}: {self.reason}"


@dataclass(frozen=True)
class Document:
    """A decoded source file that remembers its bytes."""

    path: Path
    raw: bytes
    text: str
    """The decoded content without the byte-order mark."""
    encoding: str
    """Python's name of the encoding, e.g. ``utf-8``."""
    bom: bool
    """Whether the file starts with UTF-8's byte-order mark."""

    @classmethod
    def read(cls, path: Path) -> Document:
        """The file at a path.

        Raises:
            SourceError: it cannot be read or decoded
        """
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise SourceError(path, f"cannot be read: {(error.strerror or str(error)).lower()}") from None
        return cls.from_bytes(path, raw)

    @classmethod
    def from_bytes(cls, path: Path, raw: bytes) -> Document:
        """The file with this content.

        Raises:
            SourceError: the bytes are not text in the declared encoding (PEP 263; UTF-8 where nothing is declared)
        """
        if raw.startswith(_WIDE_MARKS):
            raise SourceError(path, "is UTF-16 or UTF-32, which Python cannot import; save it as UTF-8", 1)
        if b"\0" in raw:
            raise SourceError(path, "contains NUL bytes: a binary file or UTF-16", _line_at(raw, raw.index(b"\0")))
        bom = raw.startswith(codecs.BOM_UTF8)
        body = raw[len(codecs.BOM_UTF8) :] if bom else raw
        encoding = _declared_encoding(path, body)
        if bom and encoding != "utf-8":
            raise SourceError(path, f"starts with the mark of UTF-8 but declares the encoding {encoding!r}", 1)
        return cls(path, raw, _decode(path, body, encoding), encoding, bom)

    @cached_property
    def utf8(self) -> bytes:
        """The text as UTF-8: byte offsets of spans and edits refer to it."""
        if self.encoding == "utf-8":
            return self.raw[len(codecs.BOM_UTF8) :] if self.bom else self.raw
        return self.text.encode()

    @cached_property
    def newline(self) -> str:
        r"""The line end that most lines have (``\n``, ``\r\n`` or ``\r``); ``\n`` if there is none."""
        windows = self.utf8.count(b"\r\n")
        counts = {
            "\n": self.utf8.count(b"\n") - windows,
            "\r\n": windows,
            "\r": self.utf8.count(b"\r") - windows,
        }
        return max(counts, key=counts.__getitem__)

    def with_edits(self, edits: Sequence[Edit]) -> bytes:
        """The bytes of the file after the edits: its encoding and mark are kept, and every byte outside the edits.

        Raises:
            SourceError: edits overlap or do not fit the text, or the file's encoding lacks a replacement's characters
        """
        if not edits:
            return self.raw
        try:
            edited = apply_edits(self.utf8, edits)
        except ValueError as error:
            raise SourceError(self.path, f"cannot be edited: {error}") from None
        if self.encoding != "utf-8":
            return self._encode(edited.decode())
        return codecs.BOM_UTF8 + edited if self.bom else edited

    def _encode(self, text: str) -> bytes:
        try:
            raw = text.encode(self.encoding)
        except UnicodeEncodeError as error:
            missing = text[error.start]
            raise SourceError(self.path, f"cannot be edited: {self.encoding} has no character {missing!r}") from None
        if raw.decode(self.encoding) != text:
            raise SourceError(self.path, f"cannot be edited: {self.encoding} does not give the new text back")
        return raw


def _declared_encoding(path: Path, body: bytes) -> str:
    # Only the cookie matters here: other bytes are masked, so that a comment in the declared encoding cannot hide it.
    # Lines are cut as Python's tokenizer cuts them, which `tokenize` itself does not for lone carriage returns.
    lines = (line.group().decode("ascii", "replace").encode("ascii", "replace") for line in _LINE.finditer(body))
    try:
        encoding, _ = tokenize.detect_encoding(lambda: next(lines, b""))
    except SyntaxError as error:
        raise SourceError(path, f"declares an encoding that Python does not know ({error.msg})") from None
    if not _keeps_ascii(encoding):
        raise SourceError(path, f"declares the encoding {encoding!r}, in which Python cannot be written")
    return encoding


def _keeps_ascii(encoding: str) -> bool:
    try:
        text = _ASCII.decode(encoding)
        return text == _ASCII.decode("ascii") and text.encode(encoding) == _ASCII
    except (LookupError, UnicodeError):  # LookupError: not a text encoding (`hex`)
        return False


def _decode(path: Path, body: bytes, encoding: str) -> str:
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        line = _line_at(body, error.start)
        name = "UTF-8" if encoding == "utf-8" else encoding
        raise SourceError(path, f"not valid {name} (byte 0x{body[error.start]:02x} at line {line})", line) from None
    if encoding != "utf-8" and not _gives_back(text, body, encoding):
        raise SourceError(path, f"{encoding} does not give the same bytes back, so that no edit would be safe")
    return text


def _gives_back(text: str, body: bytes, encoding: str) -> bool:
    try:
        return text.encode(encoding) == body
    except UnicodeEncodeError:
        return False


def _line_at(raw: bytes, offset: int) -> int:
    return 1 + sum(1 for _ in _LINE_END.finditer(raw, 0, offset))
