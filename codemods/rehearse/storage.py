"""Storages that say that they are on the virtual device; ``torch.save`` and ``torch.load`` go by that."""

from __future__ import annotations

from typing import Any

import torch

from codemods.rehearse.machine import machine
from codemods.rehearse.sites import doing

_new_storage: Any = torch.UntypedStorage


class DeviceStorage(torch.UntypedStorage):
    """A storage in memory of the host that answers as one of the device."""

    place: torch.device

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """The device, with its index."""
        return self.place

    def get_device(self) -> int:
        """The index of the device."""
        return int(self.place.index)

    def cpu(self) -> torch.UntypedStorage:
        """A copy on the CPU."""
        with doing("cpu"):
            copied: torch.UntypedStorage = _new_storage(self.nbytes()).copy_(self, False)
            return copied

    def clone(self) -> torch.UntypedStorage:
        """A copy on the same device."""
        return as_device_storage(self.cpu(), self.place)

    def __reduce__(self) -> Any:
        values: Any = self.cpu()
        return _rebuilt, (bytes(values.tolist()), str(self.place))

    def is_pinned(self, device: Any = "cuda") -> bool:
        """False: it is not memory of the host."""
        return False


def _rebuilt(values: bytes, place: str) -> DeviceStorage:
    return as_device_storage(_new_storage(values), torch.device(place))


def as_device_storage(storage: torch.UntypedStorage, place: torch.device) -> DeviceStorage:
    """The same storage, which says from now on that it is on the device."""
    storage.__class__ = DeviceStorage
    storage.place = place  # type: ignore[attr-defined]
    return storage  # type: ignore[return-value]


def storage_to_device(self: torch.UntypedStorage, device: Any = None, non_blocking: bool = False) -> DeviceStorage:
    """``UntypedStorage.npu()`` and the like: a copy on the device, or the storage itself where it is there already."""
    place = machine().device(device)
    if isinstance(self, DeviceStorage) and self.place == place:
        return self
    return as_device_storage(_new_storage(self.nbytes()).copy_(self, non_blocking), place)
