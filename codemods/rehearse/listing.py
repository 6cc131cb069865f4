"""Which names each vendor's adapter offers, from ``rules/namespaces``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from codemods.errors import UserError
from codemods.toml import read_rules, rules_folder

KINDS = ("functions", "classes", "attributes", "modules")


@dataclass(frozen=True)
class Listing:
    """The names of one version of an adapter."""

    adapter: str
    """The package to import, e.g. ``torch_npu``."""
    namespace: str
    """The module that is ``torch.<type>``."""
    float64: str
    """``matmul`` or ``converts``, as ``Machine.float64``."""
    version: str = ""
    """Empty where no list is known."""
    modules: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """For each module its public names, each with its kind."""


def is_listed(kind: str) -> bool:
    """Whether there is a file for a device type."""
    return (rules_folder() / "namespaces" / f"{kind}.toml").exists()


def read_listing(kind: str, version: str | None = None) -> Listing:
    """The names that the adapter of a device type offers in a version, or in the newest one that is known.

    Raises:
        UserError: the version is older than all that are known, or is none
    """
    data = read_rules(f"namespaces/{kind}.toml")
    chosen = _choose(data, version)
    modules = {name: _names(content, chosen) for name, content in data.get("modules", {}).items()}
    return Listing(data["adapter"], data["namespace"], data["float64"], chosen, modules)


def _choose(data: Mapping[str, Any], version: str | None) -> str:
    known: list[str] = data["versions"]
    if not known:
        return ""
    if version is None:
        return known[-1]
    wanted = _numbers(version)
    if not wanted:
        raise UserError(f"{version!r} is no version of {data['adapter']}; give one such as {known[-1]}")
    fitting = [one for one in known if _numbers(one)[: len(wanted)] <= wanted]
    if not fitting:
        raise UserError(f"the names of {data['adapter']} {version} are not known; known are {', '.join(known)}")
    return fitting[-1]


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version.partition("+")[0])]


def _names(content: Mapping[str, Any], version: str) -> dict[str, str]:
    also = content.get("also", {}).get(version, {})
    return {name: kind for kind in KINDS for name in (*content.get(kind, ()), *also.get(kind, ()))}
