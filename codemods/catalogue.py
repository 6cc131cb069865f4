"""The rule catalogue: one TOML file a rule, with the examples that are its tests and its documentation at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from codemods.findings import Tier
from codemods.toml import read_rules, rules_folder


@dataclass(frozen=True)
class Example:
    """Source before and after; ``after`` equals ``before`` where nothing may change."""

    before: str
    after: str
    finding: bool
    """Whether the rule speaks of this source at all."""
    options: frozenset[str] = frozenset()
    """The options that it is converted with, as in ``uncuda convert --tests``."""


@dataclass(frozen=True)
class Rule:
    """One rule: what it looks for, what it does about it, and why."""

    code: str
    name: str
    title: str
    tier: Tier
    message: str
    """What a finding says: what is wrong and what to write instead."""
    why: str
    references: tuple[str, ...]
    examples: tuple[Example, ...]
    option: str = ""
    """The option without which it is off."""


@cache
def load_catalogue() -> Mapping[str, Rule]:
    """All rules by code, in the order of their codes."""
    folder = rules_folder() / "catalogue"
    loaded = (_rule(read_rules(f"catalogue/{path.name}"), path) for path in sorted(folder.glob("*.toml")))
    return {rule.code: rule for rule in loaded}


def _rule(data: dict[str, Any], path: Path) -> Rule:
    try:
        return Rule(
            code=data["code"],
            name=data["name"],
            title=data["title"],
            tier=Tier[data["tier"].upper()],
            message=data["message"],
            why=data["why"].strip(),
            references=tuple(data.get("references", ())),
            examples=tuple(_example(example, data.get("option", "")) for example in data["examples"]),
            option=data.get("option", ""),
        )
    except KeyError as missing:
        raise ValueError(f"rules/catalogue/{path.name}: key {missing} is missing or wrong") from None


def _example(data: dict[str, Any], option: str) -> Example:
    before = data["before"]
    return Example(
        before=before,
        after=data.get("after", before),
        finding=data.get("finding", True),
        options=frozenset(data.get("options", [option] if option else [])),
    )
