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
    file: str = "train.py"
    """The name of the file, which tells its kind."""

    @property
    def is_python(self) -> bool:
        """Whether it is Python, and not one of the files beside it."""
        return self.file.endswith(".py")

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
    effort: str = ""
    """What a place takes that is left to a person: a key of ``Kinds.efforts``; empty for what is never left."""
    cuda_only: bool = False
    """Whether its places are CUDA's own: they have to be replaced or ported, no edit moves them."""
    option: str = ""
    """The option without which it is off."""


@dataclass(frozen=True)
class Series:
    """A family of rules, whose codes begin alike."""

    code: str
    """The beginning of the codes, e.g. ``UC1``."""
    title: str
    about: str


@dataclass(frozen=True)
class Kinds:
    """What a report groups rules by."""

    series: Mapping[str, Series]
    """By their codes, in their order."""
    efforts: Mapping[str, str]
    """What a place of each effort takes, the least first."""

    def series_of(self, code: str) -> Series:
        """The series that a rule belongs to."""
        return next(series for start, series in self.series.items() if code.startswith(start))


@cache
def load_catalogue() -> Mapping[str, Rule]:
    """All rules by code, in the order of their codes."""
    folder = rules_folder() / "catalogue"
    loaded = (_rule(read_rules(f"catalogue/{path.name}"), path) for path in sorted(folder.glob("*.toml")))
    return {rule.code: rule for rule in loaded}


@cache
def rule_codes() -> list[str]:
    """The codes of all rules, in order: the names of their files begin with them, so that none has to be read."""
    return sorted(path.stem.partition("_")[0].upper() for path in (rules_folder() / "catalogue").glob("*.toml"))


@cache
def load_kinds() -> Kinds:
    """The series of rules and the efforts of ``rules/kinds.toml``."""
    data = read_rules("kinds.toml")
    series = {code: Series(code, entry["title"], entry["about"]) for code, entry in data["series"].items()}
    return Kinds(series, {name: entry["meaning"] for name, entry in data["efforts"].items()})


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
            effort=data.get("effort", ""),
            cuda_only=data.get("cuda_only", False),
            option=data.get("option", ""),
        )
    except KeyError as missing:
        raise ValueError(f"rules/catalogue/{path.name}: key {missing} is missing or wrong") from None


def _example(data: dict[str, Any], option: str) -> Example:
    before = data["before"]
    named = {"file": data["file"]} if "file" in data else {}
    return Example(
        before=before,
        after=data.get("after", before),
        finding=data.get("finding", True),
        options=frozenset(data.get("options", [option] if option else [])),
        **named,
    )
