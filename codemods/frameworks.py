"""Frameworks that choose devices themselves: their device layers, and the arguments of theirs that name CUDA."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from codemods.toml import read_rules


@dataclass(frozen=True)
class Layer:
    """An object of a framework that stands for the accelerator; see ``rules/frameworks.toml``."""

    title: str
    device: str
    type: str
    call: tuple[str, ...] = ()
    made_by: tuple[str, ...] = ()
    indexed_device: str = ""
    backend: str = ""
    functions: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Argument:
    """An argument of a framework's function that selects CUDA."""

    functions: frozenset[str]
    keyword: str
    values: re.Pattern[str]
    advice: str


@cache
def load_layers() -> tuple[Layer, ...]:
    """The device layers of ``rules/frameworks.toml``."""
    return tuple(
        Layer(**{key: _frozen(key, value) for key, value in entry.items()})
        for entry in read_rules("frameworks.toml")["layer"]
    )


def find_argument(function: str | None, keyword: str) -> Argument | None:
    """What is known of an argument, by its function's full name and its keyword."""
    return next((a for a in _arguments() if a.keyword == keyword and function in a.functions), None)


@cache
def _arguments() -> tuple[Argument, ...]:
    return tuple(
        Argument(
            frozenset(entry["functions"]),
            entry["keyword"],
            re.compile("(?s:.*)" if entry["values"] == "any" else entry["values"]),
            entry["advice"],
        )
        for entry in read_rules("frameworks.toml")["argument"]
    )


def _frozen(key: str, value: Any) -> Any:
    if isinstance(value, list):
        return frozenset(value) if key == "functions" else tuple(value)
    return value
