"""Facts: what is known of a file by its content alone, and so has to be found only once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Known = TypeVar("Known")


@dataclass(frozen=True)
class Fact(Generic[Known]):
    """One kind of fact."""

    name: str
    find: Callable[[bytes], Known]
    """Finds it in the content of a file."""
    pack: Callable[[Known], Any]
    """As it can be written in JSON."""
    unpack: Callable[[Any], Known]
    """Back from JSON, whoever wrote it: raises TypeError, ValueError or LookupError for what ``pack`` does not make."""


class Facts:
    """Finds facts; subclasses remember them."""

    def of(self, fact: Fact[Known], raw: bytes) -> Known:
        """The fact about a content."""
        return fact.find(raw)


def is_flag(value: object) -> bool:
    """A packed truth value; TypeError if it is none."""
    if not isinstance(value, bool):
        raise TypeError(value)
    return value


def is_text(value: object) -> str:
    """A packed text; TypeError if it is none."""
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def is_number(value: object) -> int:
    """A packed number from 0; TypeError or ValueError if it is none."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(value)
    if value < 0:
        raise ValueError(value)
    return value
