"""The virtual machine: one kind of device, several of them, and which one is current."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch

from codemods.devices import Device
from codemods.rehearse.memory import Memory
from codemods.rehearse.recording import Recording

TOTAL_MEMORY = 64 * 2**30
"""Bytes of memory that each virtual device says it has."""

OperatorState: TypeAlias = Callable[[Any], str]


@dataclass
class Machine:
    """The devices of this process; there is at most one such machine."""

    known: Device
    """What the device table says."""
    count: int
    strict: bool
    operator_state: OperatorState
    float64: str
    """``matmul``: it raises in matrix products. ``converts``: values are rounded to float32."""
    recording: Recording
    memories: list[Memory] = field(default_factory=list)
    initialized: bool = False
    """Whether a device was touched; after that, a forked child cannot use it."""
    forked: bool = False
    _local: threading.local = field(default_factory=threading.local)

    def __post_init__(self) -> None:
        self.memories = [Memory(TOTAL_MEMORY, index, self.recording.peak_memory) for index in range(self.count)]
        os.register_at_fork(after_in_child=self._after_fork)

    @property
    def kind(self) -> str:
        """The device type, e.g. ``npu``."""
        return self.known.type

    @property
    def current(self) -> int:
        """The index of this thread's current device."""
        return getattr(self._local, "current", 0)

    @current.setter
    def current(self, index: int) -> None:
        self._local.current = index

    def index_of(self, place: Any) -> int:
        """The index that a device, a name, a number or None means; raises where there is no such device."""
        if place is None:
            return self.current
        if isinstance(place, str):
            place = torch.device(place)
        if isinstance(place, torch.device):
            if place.type != self.kind:
                raise ValueError(f"Expected a {self.kind} device, but got: {place}")
            index = self.current if place.index is None else place.index
        else:
            index = int(place)
        if not 0 <= index < self.count:
            raise RuntimeError(
                f"{self.kind.upper()} error: invalid device ordinal: {self.kind}:{index} was asked for, and there are "
                f"{self.count} devices, counted from 0"
            )
        return index

    def device(self, place: Any = None) -> torch.device:
        """The device that a place means, with its index."""
        return torch.device(self.kind, self.index_of(place))

    def is_mine(self, device: Any) -> bool:
        """Whether a ``torch.device`` is one of this machine's."""
        return isinstance(device, torch.device) and device.type == self.kind

    def touch(self) -> None:
        """Notes that a device is used; raises in a process that was forked after a device was used."""
        if self.forked:
            name = self.kind.upper()
            raise RuntimeError(
                f"Cannot re-initialize {name} in a forked subprocess. To use {name} with multiprocessing, you must use "
                "the 'spawn' start method"
            )
        self.initialized = True

    def _after_fork(self) -> None:
        self.forked = self.initialized


_machines: list[Machine] = []


def set_up(machine: Machine) -> Machine:
    """Makes this the machine of the process."""
    _machines.append(machine)
    return machine


def is_set_up() -> bool:
    """Whether the process has a machine."""
    return bool(_machines)


def machine() -> Machine:
    """The machine of the process."""
    return _machines[0]
