"""What the devices offer for graph mode, as one line of text each, from ``rules/devices``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from codemods.devices import Device, load_devices


@cache
def compilers() -> str:
    """Which backend of ``torch.compile`` each device has."""
    return "; ".join(_by_value("compile_backend", lambda device: device.compile_backend or "none known"))


@cache
def graph_backends() -> str:
    """Which devices have a backend of ``torch.compile`` that captures graphs."""
    found = [f"{name} on {d.type}" for d in _others() for name in d.compile_backends if "graph" in name]
    return "backends that capture graphs elsewhere: " + ", ".join(found)


@cache
def graphs() -> str:
    """Which devices have graphs that are captured and replayed."""
    return "graphs: " + "; ".join(_by_value("graph", lambda device: "yes" if device.graph else "none"))


@cache
def torchscript() -> str:
    """On which devices TorchScript works."""
    words = {"yes": "works", "no": "does not work", "unknown": "not known"}
    return "; ".join(_by_value("torchscript", lambda device: words[device.torchscript]))


def _by_value(key: str, value_of: Callable[[Device], str]) -> Iterable[str]:
    """``inductor on xpu, npu (from torch 2.7); none known on mlu (unverified)``"""
    found: dict[str, list[str]] = {}
    for device in _others():
        since = f" (from torch {device.compile_since})" if key == "compile_backend" and device.compile_since else ""
        is_said = device.is_verified(key) or value_of(device) == "not known"
        found.setdefault(value_of(device), []).append(device.type + since + ("" if is_said else " (unverified)"))
    return (f"{value} on {', '.join(sorted(names))}" for value, names in found.items())


def _others() -> list[Device]:
    """The devices on which torch.cuda itself does not work."""
    return [device for device in load_devices() if not device.cuda_compatible]
