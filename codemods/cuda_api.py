"""What is known of every ``torch.cuda`` name and of the CUDA-only packages, as typed tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, TypeVar, get_args

from codemods.toml import read_rules

Action = Literal["helper", "rule", "keep", "report"]
Tier = Literal["safe", "review"]

_NAMES_FILE = "torch_cuda.toml"
_PACKAGES_FILE = "packages.toml"
_ACTIONS = get_args(Action)
_TIERS = get_args(Tier)
_Entry = TypeVar("_Entry")


class TableError(ValueError):
    """A table in the ``rules`` folder is missing or malformed; the message names the file and the entry."""


@dataclass(frozen=True)
class CudaName:
    """What becomes of one name of ``torch.cuda``, or of a name elsewhere in torch that is bound to CUDA."""

    name: str
    """The full dotted name, e.g. ``torch.cuda.memory_allocated``."""
    action: Action
    """``helper``: call ``helper`` of ``ai_device`` instead; ``rule``: a rule of its own decides by the place;
    ``keep``: harmless on every device; ``report``: nothing to rewrite to."""
    helper: str = ""
    """The name in ``ai_device``, dotted for ``nvtx.range_push``; for ``rule`` what the rule puts in, if it does."""
    tier: Tier = "safe"
    """How sure the rewrite is; says nothing about names that are kept or reported."""
    reason: str = ""
    """One sentence for the user; never empty for ``keep``, ``report`` and tier ``review``."""
    form: str = ""
    """How the name is used where only that use is bound to CUDA, e.g. ``torch.device("cuda")``; else empty."""
    equivalent: str = ""
    """The nearest form in torch itself, where ``dev`` is a ``torch.device``; empty if there is none."""
    since: str = ""
    """The torch release, e.g. ``2.6``, from which ``equivalent`` exists; empty without one."""
    backends: tuple[str, ...] = ()
    """Device types that have the name in a namespace of their own; not told for names outside ``torch.cuda``
    and ``torch.backends``, which are torch's own."""
    unverified: tuple[str, ...] = ()
    """Device types of which it is not known whether they have the name."""
    renamed: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What the name is called on device types that have it under another name, e.g. ``{"npu": "NPUGraph"}``."""


@dataclass(frozen=True)
class Alternative:
    """What a vendor offers in place of a CUDA-only package."""

    vendor: str
    device: str
    """The device type of the vendor's hardware, e.g. ``npu``; ``cuda`` for CUDA-compatible vendors."""
    use: str
    unverified: bool = False
    """Whether the vendor's offer, or its name, was not seen first-hand."""


@dataclass(frozen=True)
class Package:
    """A package that needs CUDA, or that is mostly used for its CUDA kernels."""

    name: str
    """The import name that the entry stands under, e.g. ``flash_attn`` or ``numba.cuda``."""
    title: str
    reason: str
    """Why it is bound to CUDA: one sentence for the user."""
    imports: tuple[str, ...] = ()
    """Further import names of the same package."""
    distributions: tuple[str, ...] = ()
    """What requirement files call it."""
    has_cpu: bool = False
    """Whether there are builds that also run without CUDA, so that importing it is no obstacle by itself."""
    generic: str = ""
    """What does the same on every device; empty if nothing does."""
    members: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The same for single members, by their full dotted names."""
    instead: tuple[Alternative, ...] = ()
    missing: tuple[str, ...] = ()
    """Vendors that are known to offer nothing in its place."""


@cache
def load_cuda_api() -> Mapping[str, CudaName]:
    """Every name of ``rules/torch_cuda.toml`` by its full dotted name. Raises TableError if the table is malformed."""
    data = _read(_NAMES_FILE)
    reasons = data.get("reasons", {})
    entries = data.get("names", {})
    first = {name: _cuda_name(name, entry, reasons) for name, entry in entries.items() if "same_as" not in entry}
    second = {name: _second_name(name, entry, first) for name, entry in entries.items() if "same_as" in entry}
    return MappingProxyType(first | second)


@cache
def load_packages() -> Mapping[str, Package]:
    """Every package of ``rules/packages.toml`` by each of its import names. Raises TableError if it is malformed."""
    packages: dict[str, Package] = {}
    for name, entry in _read(_PACKAGES_FILE).items():
        package = _package(name, entry)
        for imported in (name, *package.imports):
            if imported in packages:
                raise TableError(f"{_PACKAGES_FILE}: {imported} stands in {packages[imported].name} and in {name}")
            packages[imported] = package
    return MappingProxyType(packages)


def find_package(module: str) -> Package | None:
    """The package that a dotted module or member belongs to, e.g. ``flash_attn.bert_padding``; None for any other."""
    packages = load_packages()
    while module:
        if module in packages:
            return packages[module]
        module = module.rpartition(".")[0]
    return None


def _read(file: str) -> dict[str, Any]:
    try:
        return read_rules(file)
    except (OSError, ValueError) as error:
        raise TableError(f"{file}: {error}. It is a part of uncuda: install uncuda again.") from error


def _cuda_name(name: str, entry: dict[str, Any], reasons: Mapping[str, str]) -> CudaName:
    fields = dict(entry)
    reason = fields.pop("reason", None)
    if reason is not None and reason not in reasons:
        raise TableError(f"{_NAMES_FILE}: {name}: [reasons] has no {reason!r}")
    for listed in ("backends", "unverified"):
        fields[listed] = tuple(fields.get(listed, ()))
    if fields.get("action") == "helper":
        fields.setdefault("helper", name.rpartition(".")[2])
    fields["reason"] = reasons[reason] if reason else ""
    known = _build(CudaName, f"{_NAMES_FILE}: {name}", fields | {"name": name})
    _check_cuda_name(known)
    return known


def _check_cuda_name(known: CudaName) -> None:
    where = f"{_NAMES_FILE}: {known.name}"
    if known.action not in _ACTIONS:
        raise TableError(f"{where}: action is {known.action!r}, not one of {', '.join(_ACTIONS)}")
    if known.tier not in _TIERS:
        raise TableError(f"{where}: tier is {known.tier!r}, not one of {', '.join(_TIERS)}")
    if not known.reason and (known.action in ("keep", "report") or known.tier == "review"):
        raise TableError(f"{where}: it needs a reason that the user can read")


def _second_name(name: str, entry: dict[str, Any], names: Mapping[str, CudaName]) -> CudaName:
    other = names.get(entry["same_as"])
    if other is None or len(entry) > 1:
        raise TableError(f"{_NAMES_FILE}: {name}: same_as stands alone and names an entry that is not itself same_as")
    return replace(other, name=name)


def _package(name: str, entry: dict[str, Any]) -> Package:
    fields = dict(entry)
    for listed in ("imports", "distributions", "missing"):
        fields[listed] = tuple(fields.get(listed, ()))
    where = f"{_PACKAGES_FILE}: {name}"
    fields["instead"] = tuple(_build(Alternative, where, offer) for offer in fields.get("instead", ()))
    return _build(Package, where, fields | {"name": name})


def _build(kind: type[_Entry], where: str, fields: dict[str, Any]) -> _Entry:
    try:
        return kind(**fields)
    except TypeError as error:
        raise TableError(f"{where}: {error}") from error
