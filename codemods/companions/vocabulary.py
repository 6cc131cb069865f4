"""``rules/companions.toml``, ready to be asked."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from codemods.toml import read_rules


class Names:
    """A list of patterns as one test."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._match = re.compile("|".join(map(fnmatch.translate, patterns))).match

    def __contains__(self, name: str) -> bool:
        return self._match(name) is not None


@dataclass(frozen=True)
class Vocabulary:
    """What is looked for; each field is the table or list of that name in the file, which says more."""

    kinds: tuple[tuple[Names, str], ...]
    folders: Mapping[str, str]
    largest: int
    programs: Mapping[str, Names]
    schedulers: frozenset[str]
    running_modules: frozenset[str]
    tools: Mapping[str, str]
    variables: Mapping[str, Names]
    device_words: tuple[str, ...]
    shell_settings: frozenset[str]
    command_settings: frozenset[str]
    container_settings: tuple[tuple[Names, Names], ...]
    images: Names
    aliases: Mapping[str, str]
    not_installing: frozenset[str]
    requirement_lists: frozenset[str]
    toolkit_packages: Names
    not_libraries: Names

    def role(self, word: str) -> str:
        """What the first word of a command is, as the keys of ``[programs]`` or ``tool``; empty for any other."""
        name = word.rpartition("/")[2]
        if name in self.tools:
            return "tool"
        return next((role for role, names in self.programs.items() if name in names), "")


@cache
def load_vocabulary() -> Vocabulary:
    """The vocabulary of ``rules/companions.toml``."""
    data: dict[str, Any] = read_rules("companions.toml")
    files, settings, packages = data["files"], data["settings"], data["packages"]
    return Vocabulary(
        kinds=tuple((Names(entry["names"]), entry["kind"]) for entry in files["kinds"]),
        folders=files["folders"],
        largest=files["largest"],
        programs={role: Names(names) for role, names in data["programs"].items()},
        schedulers=frozenset(data["schedulers"]["names"]),
        running_modules=frozenset(data["modules"]["running"]),
        tools=data["tools"],
        variables={kind: Names(names) for kind, names in data["variables"].items()},
        device_words=tuple(settings["device"]),
        shell_settings=frozenset(settings["shell"]),
        command_settings=frozenset(settings["command"]),
        container_settings=tuple((Names([key]), Names([value])) for key, value in settings["container"]),
        images=Names(data["images"]["cuda"]),
        aliases=packages["aliases"],
        not_installing=frozenset(packages["not_installing"]),
        requirement_lists=frozenset(packages["lists"]),
        toolkit_packages=Names(packages["toolkit"]),
        not_libraries=Names(packages["not_libraries"]),
    )
