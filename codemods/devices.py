"""The device table: what is known of each vendor's devices, one TOML file a vendor in ``rules/devices``."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_type_hints

from codemods.toml import rules_folder

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_VERSION = re.compile(r"\d+\.\d+")
_VERSIONS = ("plugin_until", "autoload_since", "backend_since", "autocast_since", "grad_scaler_since", "compile_since")
_CHOICES = {
    "grad_scaler": ("torch", "vendor", "none"),
    "float64": ("yes", "partial", "no", "unknown"),
    "cpu_fallback": ("on", "off", "none", "unknown"),
    "torchscript": ("yes", "no", "unknown"),
    "confidence": ("high", "medium", "low"),
}


class DeviceError(Exception):
    """A file of ``rules/devices`` is wrong; the message names the file, the key and what is expected."""


@dataclass(frozen=True)
class Device:
    """The devices of one vendor.

    Versions are of torch, as ``"2.5"``; an empty version means always. ``unverified`` names the keys whose values were
    not seen in a source; a key of ``env`` or ``libraries`` is written ``env.NAME``.
    """

    name: str
    title: str
    type: str
    """The device type in torch, e.g. ``npu``."""
    aliases: tuple[str, ...]
    """What users may call it, lower case; no two vendors share one."""
    dispatch_key: str
    cuda_compatible: bool
    """Whether torch.cuda itself works on it."""
    namespace: str
    """The module with the functions of torch.cuda."""
    install: str
    autoload: bool
    """Whether ``import torch`` makes the device known; see ``autoload_since``."""
    backend: str
    """The backend of torch.distributed."""
    visible_devices: tuple[str, ...]
    """Environment variables that choose the visible devices, in their precedence."""
    autocast_dtypes: tuple[str, ...]
    autocast_default: str
    grad_scaler: str
    """``torch`` for torch.amp.GradScaler, ``vendor`` for the vendor's own, ``none`` where gradients are not scaled."""
    float64: str
    pin_memory: bool
    legacy_tensors: bool
    """Whether the namespace has FloatTensor and the like."""
    graph: str
    profiler_activity: str
    """The member of torch.profiler.ProfilerActivity."""
    compile_backends: tuple[str, ...]
    triton: str
    cpu_fallback: str
    """What happens to an operator without a kernel."""
    confidence: str
    sources: tuple[str, ...]
    ambiguous: tuple[str, ...] = ()
    """Words that may mean this vendor and also another one, so that they alone name neither."""
    plugin: str = ""
    """The package to import."""
    plugin_until: str = ""
    autoload_since: str = ""
    monitor: str = ""
    """The command that shows the devices of a machine."""
    single_device: bool = False
    """Whether there is only one device, without an index."""
    host_memory: bool = False
    """Whether the memory of the device is that of the machine."""
    auto: bool = True
    """Whether ``AI_DEVICE=auto`` may choose it."""
    backend_library: str = ""
    backend_import: str = ""
    """The module that registers the backend."""
    backend_since: str = ""
    older_backend: str = ""
    older_backend_import: str = ""
    autocast_since: str = ""
    grad_scaler_since: str = ""
    cpu_fallback_switch: str = ""
    compile_backend: str = ""
    """The one of ``compile_backends`` that ``torch.compile`` trains with; empty where none is known."""
    compile_since: str = ""
    torchscript: str = "unknown"
    """Whether ``torch.jit.script`` and ``torch.jit.trace`` work."""
    unverified: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The counterpart of each environment variable of CUDA and NCCL; empty where the vendor says that there is none."""
    libraries: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """What replaces each library that is for CUDA only; empty where nothing does."""

    @property
    def mask_variable(self) -> str:
        """The variable that takes the indices of ``CUDA_VISIBLE_DEVICES``.

        Empty where the device reads that itself, has no indices, or none is known for sure.
        """
        name = "CUDA_VISIBLE_DEVICES"
        is_needed = name not in self.visible_devices and not self.single_device
        return self.env.get(name, "") if is_needed and self.is_verified(f"env.{name}") else ""

    def is_verified(self, key: str) -> bool:
        """Whether the value of a key, or of ``env.NAME``, was seen in a source."""
        return key not in self.unverified


@cache
def load_devices() -> tuple[Device, ...]:
    """All devices in the order of their names; raises DeviceError for a wrong file."""
    return read_devices(rules_folder() / "devices")


def read_devices(folder: Path) -> tuple[Device, ...]:
    """The devices of a folder with one TOML file each; raises DeviceError for a wrong file."""
    devices = tuple(_read(path) for path in sorted(folder.glob("*.toml")))
    _check_aliases(devices)
    return devices


def find_devices(word: str) -> tuple[Device, ...]:
    """All devices that a word may mean: by an alias, a backend, or an ambiguous word. Case does not matter."""
    word = word.lower()
    return tuple(
        device for device in load_devices() if word in (*device.aliases, *device.ambiguous) or word == device.backend
    )


def _read(path: Path) -> Device:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DeviceError(f"{path}: not valid TOML: {error}") from error
    fields = {one.name: one for one in dataclasses.fields(Device)}
    hints = get_type_hints(Device)
    for key in data:
        if key not in fields:
            raise DeviceError(f"{path}: unknown key {key!r}; known are {', '.join(fields)}")
    for key, one in fields.items():
        required = one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
        if required and key not in data:
            raise DeviceError(f"{path}: the key {key!r} is missing")
    device = Device(**{key: _converted(path, key, value, hints[key]) for key, value in data.items()})
    _check(path, device, data)
    return device


def _converted(path: Path, key: str, value: Any, hint: Any) -> Any:
    if hint is str and isinstance(value, str):
        return value
    if hint is bool and isinstance(value, bool):
        return value
    if hint == tuple[str, ...] and _is_strings(value):
        return tuple(value)
    if hint == Mapping[str, str] and isinstance(value, dict) and _is_strings(list(value.values())):
        return MappingProxyType(value)
    if hint == Mapping[str, tuple[str, ...]] and isinstance(value, dict) and all(map(_is_strings, value.values())):
        return MappingProxyType({library: tuple(names) for library, names in value.items()})
    expected = {
        str: "a string",
        bool: "true or false",
        tuple[str, ...]: "a list of strings",
        Mapping[str, str]: "a table of strings",
    }
    raise DeviceError(f"{path}: {key} must be {expected.get(hint, 'a table of lists of strings')}, not {value!r}")


def _is_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _check(path: Path, device: Device, data: Mapping[str, Any]) -> None:
    if device.name != path.stem:
        raise DeviceError(f"{path}: name must be that of the file, {path.stem!r}, not {device.name!r}")
    for key, choices in _CHOICES.items():
        value = getattr(device, key)
        if value not in choices:
            raise DeviceError(f"{path}: {key} must be one of {', '.join(choices)}, not {value!r}")
    if device.compile_backend and device.compile_backend not in device.compile_backends:
        raise DeviceError(f"{path}: compile_backend must be one of compile_backends, not {device.compile_backend!r}")
    for key in _VERSIONS:
        if data.get(key) and not _VERSION.fullmatch(data[key]):
            raise DeviceError(f"{path}: {key} must be a version of torch such as '2.5', not {data[key]!r}")
    for key in device.unverified:
        table, _, name = key.rpartition(".")
        if name not in (data.get(table, {}) if table else data):
            raise DeviceError(f"{path}: unverified names {key!r}, which the file does not have")
    for alias in (*device.aliases, *device.ambiguous):
        if alias != alias.lower() or alias.isdigit() or not re.fullmatch(r"[^\s:]+", alias):
            raise DeviceError(
                f"{path}: the alias {alias!r} must be lower case, without blanks and colons, and no bare number, "
                "which would read as an index"
            )
    if device.type not in device.aliases and not device.cuda_compatible:
        raise DeviceError(f"{path}: aliases must hold the type {device.type!r}")


def _check_aliases(devices: tuple[Device, ...]) -> None:
    owners = {"auto": "AI_DEVICE itself", "cpu": "AI_DEVICE itself"}
    for device in devices:
        for alias in device.aliases:
            if alias in owners:
                raise DeviceError(f"the alias {alias!r} is claimed by {owners[alias]} and by {device.name}")
            owners[alias] = device.name
