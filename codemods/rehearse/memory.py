"""Counts the memory of the virtual devices: what tensors hold, the peak, and what a caching allocator would keep."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

import torch

_BLOCK = 512  # allocators of accelerators hand out multiples of this
_SEGMENT = 2 * 2**20  # and take memory from the device in multiples of this


@dataclass
class Memory:
    """Bytes of one device."""

    total: int
    index: int = 0
    highest: dict[int, int] = field(default_factory=dict)
    """The most that was ever allocated at once, by device index; never reset by the script."""
    allocated: int = 0
    peak_allocated: int = 0
    reserved: int = 0
    peak_reserved: int = 0
    allocations: int = 0
    """How many allocations there were."""
    frees: int = 0
    ever_allocated: int = 0

    def take(self, size: int) -> None:
        """Counts an allocation; raises torch.OutOfMemoryError where the device is full."""
        if self.allocated + size > self.total:
            raise torch.OutOfMemoryError(
                f"the virtual device is out of memory: {self.allocated} of {self.total} bytes are allocated, "
                f"{size} more were asked for"
            )
        self.allocated += size
        self.ever_allocated += size
        self.allocations += 1
        self.peak_allocated = max(self.peak_allocated, self.allocated)
        self.highest[self.index] = max(self.highest.get(self.index, 0), self.allocated)
        if self.allocated > self.reserved:
            self.reserved = _rounded(self.allocated, _SEGMENT)
            self.peak_reserved = max(self.peak_reserved, self.reserved)

    def give_back(self, size: int) -> None:
        """Counts the end of an allocation."""
        self.allocated -= size
        self.frees += 1

    def empty_cache(self) -> None:
        """Returns what no tensor holds."""
        self.reserved = _rounded(self.allocated, _SEGMENT)

    def reset_peaks(self) -> None:
        """Starts the peaks again from what is held now."""
        self.peak_allocated, self.peak_reserved = self.allocated, self.reserved

    def stats(self) -> dict[str, int]:
        """The counters under the names that torch gives them."""
        values = {
            "allocated_bytes": (self.allocated, self.peak_allocated, self.ever_allocated),
            "active_bytes": (self.allocated, self.peak_allocated, self.ever_allocated),
            "reserved_bytes": (self.reserved, self.peak_reserved, self.peak_reserved),
        }
        stats = {"num_alloc_retries": 0, "num_ooms": 0, "allocation.all.current": self.allocations - self.frees}
        for name, (current, peak, ever) in values.items():
            stats[f"{name}.all.current"] = current
            stats[f"{name}.all.peak"] = peak
            stats[f"{name}.all.allocated"] = ever
            stats[f"{name}.all.freed"] = ever - current if name != "reserved_bytes" else 0
        return dict(sorted(stats.items()))


class Allocation:
    """The storage of one or more tensors; counted until the last of them is gone."""

    __slots__ = ("__weakref__", "memory", "size")

    def __init__(self, memory: Memory, size: int) -> None:
        self.memory, self.size = memory, size
        memory.take(size)

    def __del__(self) -> None:
        self.memory.give_back(self.size)


_by_storage: weakref.WeakValueDictionary[int, Allocation] = weakref.WeakValueDictionary()


def allocation_of(inner: torch.Tensor, memory: Memory) -> Allocation:
    """The allocation of a tensor's storage, shared with the tensors that share the storage."""
    storage = inner.untyped_storage()
    key = storage._cdata
    size = _rounded(storage.nbytes(), _BLOCK)
    known = _by_storage.get(key)
    if known is None or known.memory is not memory or known.size != size:
        known = _by_storage[key] = Allocation(memory, size)
    return known


def _rounded(size: int, unit: int) -> int:
    return -(-size // unit) * unit
