"""Which operators a device has kernels for, by the adapters' own declarations in ``rules/operators``.

The lists tell less than they seem to: an overload that is listed may refuse some dtypes or shapes, and one that is not
listed may be reached through a sibling or decompose further down. Absent is not unsupported; it says that nobody
declared a kernel where kernels are declared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path
from types import MappingProxyType

from codemods.devices import Device, load_devices
from codemods.errors import UserError
from codemods.toml import rules_folder

LIMITS = (
    "Operator lists are the adapters' own declarations: a listed overload may refuse some dtypes or shapes, "
    "and one that is not listed may be reached through a sibling. Absent is not unsupported."
)
_VERSION = re.compile(r"v?(\d+(?:\.\d+)*)")
_COMPOSITE = ("composite explicit", "composite implicit", "generated")


class State(Enum):
    """What becomes of an operator on a device."""

    KERNEL = "kernel"
    """The adapter declares a kernel, or one for the overload that this one delegates to."""
    DECOMPOSES = "decomposes"
    """It is made of other operators, each with a state of its own."""
    FALLBACK = "fallback"
    """It runs on the CPU, with copies there and back: declared so, or without a kernel where the adapter falls back."""
    MISSING = "missing"
    """No kernel is declared, and the adapter raises an error without one."""
    UNKNOWN = "unknown"
    """Nothing public tells."""


@dataclass(frozen=True)
class Reference:
    """What torch itself says of every overload of aten."""

    torch: str = ""
    composite: frozenset[str] = frozenset()
    """Those with a default kernel made of other operators."""
    needs_kernel: frozenset[str] = frozenset()
    """Those that run only where a backend has a kernel."""
    delegates: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The overload whose kernel serves a structured one."""


@dataclass(frozen=True)
class Operators:
    """The kernels of one device, of one version of its adapter."""

    device: str
    """The vendor, as in ``rules/devices``, or ``cpu``."""
    versions: tuple[str, ...] = ()
    """The versions of the adapter that have exactly this list, newest first; empty where no list is public."""
    sources: tuple[str, ...] = ()
    """Where the list was read: repository, path, commit."""
    notes: tuple[str, ...] = ()
    absent: State = State.UNKNOWN
    """What becomes of an overload that needs a kernel and has none."""
    kernels: frozenset[str] = frozenset()
    """Overloads as the dispatcher names them, e.g. ``aten::add.Tensor``."""
    vendor: frozenset[str] = frozenset()
    """The vendor's own operators, e.g. ``npu::npu_fusion_attention``."""
    fallbacks: frozenset[str] = frozenset()
    """Overloads that the adapter sends to the CPU by design."""
    reference: Reference = field(default_factory=Reference, repr=False)

    def state(self, overload: str) -> State:
        """The state of an overload: ``aten::add.Tensor`` or, as torch prints it, ``aten.add.Tensor``."""
        name = _dispatcher_name(overload)
        if name in self.fallbacks:
            return State.FALLBACK
        if name in self.kernels or name in self.vendor or self.reference.delegates.get(name) in self.kernels:
            return State.KERNEL
        if not self.versions:
            return State.UNKNOWN
        if name in self.reference.composite:
            return State.DECOMPOSES
        return self.absent if name in self.reference.needs_kernel else State.UNKNOWN

    @property
    def provenance(self) -> str:
        """What the states rest on, in one sentence."""
        if not self.versions:
            return f"No public operator list of {self.device} is known: the state of every operator is unknown."
        versions = " and ".join(self.versions)
        return f"Operators of {self.device}, adapter version {versions}, from {'; '.join(self.sources)}."


def load_operators(device: str, version: str | None = None) -> Operators:
    """The kernels of a device by one of its names; a card's name (``s60``) adds what the adapter does on that card.

    The newest list unless a version of the adapter is given: then the newest that is not newer, else the oldest.

    Raises:
        UserError: no vendor, or more than one, has that name; or the version is none
    """
    name, stem = _list_of(device)
    paths = _lists(stem)
    if not paths:
        return Operators(name)
    return _read(_choose(paths, version), name, device.strip().lower())


def device_named(word: str) -> Device:
    """The device with a name of ``rules/devices``, whatever its case.

    Raises:
        UserError: no device, or more than one, has that name
    """
    wanted = word.strip().lower()
    for device in load_devices():
        if wanted == device.name or wanted in device.aliases:
            return device
    raise UserError(f"there is no device {word!r}; known are {', '.join(device.name for device in load_devices())}")


def _list_of(word: str) -> tuple[str, str]:
    """The vendor's name, and the name that its lists begin with: empty where it can have none."""
    if word.strip().lower() == "cpu":
        return "cpu", "cpu"
    device = device_named(word)
    shares_names_with_another = device.cuda_compatible and device.name != "nvidia"
    return device.name, "" if shares_names_with_another else device.type


@cache
def _lists(stem: str) -> tuple[tuple[Path, tuple[str, ...]], ...]:
    """The lists of a device type with the versions that each is for, newest first."""
    if not stem:
        return ()
    paths = (rules_folder() / "operators").glob(f"{stem}_*.txt")
    found = [(path, _versions(path)) for path in paths]
    return tuple(sorted(found, key=lambda one: _numbers(one[1][0]), reverse=True))


def _versions(path: Path) -> tuple[str, ...]:
    header, _ = _sections(path)
    return tuple(header["versions"][0].split())


def _choose(lists: Iterable[tuple[Path, tuple[str, ...]]], version: str | None) -> Path:
    lists = list(lists)
    if version is None:
        return lists[0][0]
    wanted = _numbers(version)
    for path, versions in lists:
        if any(_numbers(one)[: len(wanted)] <= wanted for one in versions):
            return path
    return lists[-1][0]


def _numbers(version: str) -> tuple[int, ...]:
    match = _VERSION.match(version)
    if match is None:
        raise UserError(f"{version!r} is no version of an adapter; write it as 2.7 or 2.7.1")
    return tuple(map(int, match[1].split(".")))


@cache
def _read(path: Path, name: str, card: str) -> Operators:
    header, sections = _sections(path)
    forced = sections.get("fallback", []) + sections.get(f"fallback {card}", [])
    return Operators(
        device=name,
        versions=tuple(header["versions"][0].split()),
        sources=tuple(header["source"]),
        notes=tuple(header.get("note", ())),
        absent=State(header["absent"][0]),
        kernels=frozenset(sections["kernel"]),
        vendor=frozenset(sections.get("vendor", ())),
        fallbacks=frozenset(forced),
        reference=_reference(header["reference"][0]),
    )


@cache
def _reference(version: str) -> Reference:
    _, sections = _sections(rules_folder() / "operators" / f"reference_{version}.txt")
    delegates = dict(line.split() for line in sections["structured"])
    return Reference(
        torch=version,
        composite=frozenset(name for section in _COMPOSITE for name in sections[section]),
        needs_kernel=frozenset(sections["needs a kernel"]) | frozenset(delegates),
        delegates=MappingProxyType(delegates),
    )


def _sections(path: Path) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The header of a list, ``# key: value`` a line, and its lines by section."""
    header: dict[str, list[str]] = {}
    sections: dict[str, list[str]] = {}
    rows: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            key, _, value = line[2:].partition(": ")
            header.setdefault(key, []).append(value)
        elif line.startswith("["):
            rows = sections.setdefault(line.strip("[]"), [])
        elif line:
            rows.append(line)
    return header, sections


def _dispatcher_name(overload: str) -> str:
    if "::" not in overload:
        overload = overload.replace(".", "::", 1)
    return overload.removesuffix(".default")
