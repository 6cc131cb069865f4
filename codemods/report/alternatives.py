"""What there is in place of what is CUDA's own, as far as it is known: for whom, and what."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from codemods.cuda_api import Package
from codemods.devices import load_devices

_EXTENSIONS = "cpp_extension"
"""The entry of ``libraries`` in the device table for what builds extensions."""
_UNVERIFIED = " (unverified)"


def offers(package: Package) -> Iterator[tuple[str, str]]:
    """What takes the place of a package: what runs everywhere first, then what the vendors have."""
    titles = _titles()
    if package.generic:
        yield "every device", package.generic
    for member, use in package.members.items():
        yield f"{member}, on every device", use
    for offer in package.instead:
        yield titles[offer.vendor], offer.use + (_UNVERIFIED if offer.unverified else "")
    for vendor in package.missing:
        yield titles[vendor], "known to offer nothing"


def extension_builders() -> Iterator[tuple[str, str]]:
    """What builds extensions of ported CUDA sources."""
    for device in load_devices():
        tools = device.libraries.get(_EXTENSIONS, ())
        if tools:
            doubt = "" if device.is_verified(f"libraries.{_EXTENSIONS}") else _UNVERIFIED
            yield _titles()[device.name], ", ".join(tools) + doubt


@cache
def _titles() -> dict[str, str]:
    """``Huawei Ascend NPU (npu)`` by the vendor's name."""
    return {device.name: f"{device.title} ({device.type})" for device in load_devices()}
