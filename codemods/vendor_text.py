"""What the vendors have in place of something of CUDA, in words for a report: all of it from the device table."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from codemods.cuda_api import Package
from codemods.devices import Device, load_devices

MASK = "CUDA_VISIBLE_DEVICES"


def visible_devices() -> str:
    """Which variable chooses the devices: ``npu ASCEND_RT_VISIBLE_DEVICES, ...`` for those that do not read CUDA's.

    Last come those to which the helper does not pass on CUDA's.
    """
    others = [device for device in load_devices() if device.visible_devices and MASK not in device.visible_devices]
    alone = [device for device in others if not device.mask_variable]
    own = _listed((device, "visible_devices", device.visible_devices[0]) for device in alone)
    mapped = _listed((device, f"env.{MASK}", device.mask_variable) for device in others)
    return f"{mapped}; by no other than its own variable: {own}" if own else mapped


def counterparts(variable: str) -> str:
    """The counterparts of an environment variable of CUDA or NCCL, as far as they are known; empty if none is."""
    return _listed((device, f"env.{variable}", device.env.get(variable, "")) for device in load_devices())


def types() -> str:
    """The types of the devices that are not CUDA's: ``npu, mlu, ...``"""
    return ", ".join(dict.fromkeys(device.type for device in load_devices() if device.type != "cuda"))


def backends() -> str:
    """The backends of torch.distributed where they are not NCCL: ``npu hccl, mlu cncl, ...``"""
    others = (device for device in load_devices() if device.type != "cuda")
    return _listed((device, "backend", device.backend) for device in others)


def monitors() -> str:
    """The commands that show the devices of a machine: ``npu npu-smi, ...``"""
    return _listed((device, "monitor", device.monitor) for device in _not_nvidia())


def installs() -> str:
    """What to install for each device in place of a CUDA build of torch."""
    return _listed(((device, "install", device.install) for device in _not_nvidia()), "; ", _title)


def packages_instead(package: Package) -> str:
    """What there is in place of a package that needs CUDA: on every device, or from single vendors."""
    offers = [f"{one.vendor}: {one.use}{'' if not one.unverified else ' (unverified)'}" for one in package.instead]
    generic = [f"on every device: {package.generic}"] if package.generic else []
    return "; ".join([*generic, *offers])


def _not_nvidia() -> list[Device]:
    return [device for device in load_devices() if device.name != "nvidia"]


def _type(device: Device) -> str:
    # Several vendors have the device type `cuda`.
    return device.name if device.type == "cuda" else device.type


def _title(device: Device) -> str:
    return f"{device.title}:"


def _listed(
    known: Iterable[tuple[Device, str, str]], between: str = ", ", named: Callable[[Device], str] = _type
) -> str:
    """``npu ONE, mlu TWO (unverified)`` of devices, keys and their values; empty values are left out."""
    return between.join(
        f"{named(device)} {value}{'' if device.is_verified(key) else ' (unverified)'}"
        for device, key, value in known
        if value
    )
