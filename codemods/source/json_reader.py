"""Walks a JSON text with the position of every value known, so that a part of it can be replaced and the rest stay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_BLANKS = re.compile(r"[ \t\r\n]*")


class JsonReader:
    """A cursor in a JSON text. What is walked into costs a little, what is read whole is read by ``json`` itself.

    Every method raises ``json.JSONDecodeError`` where the text is no JSON, and RecursionError where it is too deep.
    """

    def __init__(self, utf8: bytes) -> None:
        self._utf8 = utf8
        self._text = utf8.decode("latin-1")  # one character a byte, so that positions are those of the bytes
        self._decode = json.JSONDecoder().raw_decode
        self.offset = 0
        """Where the next value starts."""
        self._skip_blanks()

    @property
    def next(self) -> str:
        """The first character of what comes next: ``{``, ``[`` or ``"`` tell its type; empty at the end."""
        return self._text[self.offset : self.offset + 1]

    def span(self) -> tuple[int, int]:
        """Passes over the next value and gives its byte offsets."""
        start = self.offset
        _, end = self._decode(self._text, start)
        self._go_to(end)
        return start, end

    def value(self) -> Any:
        """Reads the next value."""
        start, end = self.span()
        return json.loads(self._utf8[start:end].decode())

    def skip(self) -> None:
        """Passes over the next value."""
        self.span()

    def members(self) -> Iterator[str]:
        """The keys of the object that comes next, the cursor at the value of each: the caller has to pass over it."""
        self._expect("{")
        if self._passes("}"):
            return
        while True:
            if self.next != '"':
                raise self._error("Expecting property name enclosed in double quotes")
            key: str = self.value()
            self._expect(":")
            yield key
            if self._passes("}"):
                return
            self._expect(",")

    def items(self) -> Iterator[None]:
        """Stops at each item of the list that comes next: the caller has to pass over it."""
        self._expect("[")
        if self._passes("]"):
            return
        while True:
            yield
            if self._passes("]"):
                return
            self._expect(",")

    def finish(self) -> None:
        """Checks that nothing follows."""
        if self.next:
            raise self._error("Extra data")

    def _expect(self, char: str) -> None:
        if not self._passes(char):
            raise self._error(f"Expecting '{char}'" + (" delimiter" if char in ",:" else ""))

    def _passes(self, char: str) -> bool:
        if self.next != char:
            return False
        self._go_to(self.offset + 1)
        return True

    def _go_to(self, offset: int) -> None:
        self.offset = offset
        self._skip_blanks()

    def _skip_blanks(self) -> None:
        match = _BLANKS.match(self._text, self.offset)
        assert match is not None
        self.offset = match.end()

    def _error(self, message: str) -> json.JSONDecodeError:
        return json.JSONDecodeError(message, self._text, self.offset)
