"""Streams and events that are there and change nothing: on the virtual device everything runs in order."""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any

import torch

from codemods.rehearse.machine import machine
from codemods.rehearse.sites import current_site

_numbers = itertools.count(1)
_local = threading.local()  # .streams: the current stream by device index


def record_wait(via: str) -> None:
    """Records that the host waits for the device."""
    machine().recording.add_traffic("synchronisation", via, current_site())


class Stream(torch.Stream):
    """A stream of a virtual device."""

    number: int

    def __new__(cls, device: Any = None, priority: int = 0, **kwargs: Any) -> Stream:
        """A new stream of a device, the current one unless told."""
        made: Stream = super().__new__(cls, device=machine().device(device), priority=priority)
        made.number = next(_numbers)
        return made

    def query(self) -> bool:
        """True: all work is done."""
        return True

    def synchronize(self) -> None:
        """Waits, which takes no time."""
        record_wait("stream.synchronize")

    def wait_event(self, event: Any) -> None:
        """Nothing: everything runs in order."""

    def wait_stream(self, stream: Any) -> None:
        """Nothing: everything runs in order."""

    def record_event(self, event: Any = None) -> Any:
        """Records an event, a new one unless given."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.number == other.number

    def __ne__(self, other: object) -> bool:  # torch's own compares what is the same for all virtual streams
        return not self == other

    def __hash__(self) -> int:
        return hash(self.number)

    def __repr__(self) -> str:
        return f"<torch.{machine().kind}.Stream device={self.device} number={self.number}>"


class Event(torch.Event):
    """An event of a virtual device; it takes the wall clock."""

    _time: float | None

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Event:
        """A new event."""
        made: Event = super().__new__(cls, device=machine().device(), enable_timing=enable_timing)
        made._time = None
        return made

    def record(self, stream: Any = None) -> None:
        """Takes the time."""
        self._time = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        """Nothing: everything runs in order."""

    def query(self) -> bool:
        """True: all work is done."""
        return True

    def synchronize(self) -> None:
        """Waits, which takes no time."""
        record_wait("event.synchronize")

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds from this event to the other."""
        if self._time is None or end_event._time is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return float(end_event._time - self._time) * 1000.0


def default_stream(device: Any = None) -> Stream:
    """The stream that each device has from the start."""
    return _default(machine().index_of(device))


_defaults: dict[int, Stream] = {}


def _default(index: int) -> Stream:
    if index not in _defaults:
        _defaults[index] = Stream(index)
    return _defaults[index]


def current_stream(device: Any = None) -> Stream:
    """The stream that is current in this thread for a device."""
    index = machine().index_of(device)
    return _streams().get(index) or _default(index)


def set_stream(stream: Stream | None) -> None:
    """Makes a stream current."""
    if stream is not None:
        machine().current = stream.device.index
        _streams()[stream.device.index] = stream


def _streams() -> dict[int, Stream]:
    if not hasattr(_local, "streams"):
        _local.streams = {}
    streams: dict[int, Stream] = _local.streams
    return streams


class StreamContext:
    """Makes a stream and its device current in a block; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self._device, self._before = machine().current, current_stream(self.stream.device)
            set_stream(self.stream)

    def __exit__(self, *_: Any) -> None:
        if self.stream is not None:
            set_stream(self._before)
            machine().current = self._device


def stream(stream: Stream | None) -> StreamContext:
    """Makes a stream current in a block."""
    return StreamContext(stream)
