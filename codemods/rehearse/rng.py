"""Random numbers of the virtual devices: those of the CPU's generator, so that a seed gives what it gives on the CPU.

On hardware each device has a generator of its own. Here all of them draw from the default generator of the CPU, and
their state is its state: a script's losses are then those of its run on the CPU, to the last bit.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import torch

from codemods.rehearse.machine import machine

_made: weakref.WeakValueDictionary[int, DeviceGenerator] = weakref.WeakValueDictionary()  # by the address inside


class DeviceGenerator(torch.Generator):
    """A generator that says that it is of a virtual device."""

    place: torch.device

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """The device that it was made for."""
        return self.place

    def __reduce__(self) -> Any:
        return _rebuilt, (str(self.place), self.get_state())


def make_generator(place: torch.device) -> DeviceGenerator:
    """A new generator for a virtual device."""
    generator = DeviceGenerator()
    generator.place = machine().device(place)
    _made[generator._cdata] = generator  # type: ignore[attr-defined]
    return generator


def check_generator(generator: Any) -> None:
    """Raises for a generator of the CPU; operators are given another object for the same generator."""
    if generator._cdata not in _made:
        raise RuntimeError(
            f"Expected a '{machine().kind}' device type for generator but found '{generator.device.type}'"
        )


def _rebuilt(place: str, state: torch.Tensor) -> DeviceGenerator:
    generator = make_generator(torch.device(place))
    generator.set_state(state)
    return generator


def manual_seed(seed: int) -> None:
    """Seeds the current device."""
    torch.default_generator.manual_seed(int(seed))


def seed() -> int:
    """Seeds with a number of chance."""
    return torch.default_generator.seed()


def initial_seed() -> int:
    """The last seed."""
    return torch.default_generator.initial_seed()


def get_rng_state(device: Any = None) -> torch.Tensor:
    """The state of a device, a tensor of bytes."""
    machine().index_of(device)
    return torch.default_generator.get_state()


def set_rng_state(new_state: torch.Tensor, device: Any = None) -> None:
    """Sets the state of a device."""
    machine().index_of(device)
    torch.default_generator.set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all devices."""
    return [get_rng_state(index) for index in range(machine().count)]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Sets the states of all devices."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
