"""Sets up a virtual accelerator in this process."""

from __future__ import annotations

from typing import Any

from torch.utils import backend_registration

from codemods.devices import Device, load_devices
from codemods.errors import UserError
from codemods.rehearse import (
    autocast,
    composites,
    cuda_absence,
    distributed,
    factories,
    legacy_types,
    namespace,
    takeovers,
)
from codemods.rehearse.listing import is_listed, read_listing
from codemods.rehearse.machine import Machine, OperatorState, is_set_up, machine, set_up
from codemods.rehearse.recording import Recording
from codemods.rehearse.sites import current_site


def install(
    device: str,
    *,
    adapter_version: str | None = None,
    count: int = 2,
    strict: bool = False,
    operator_state: OperatorState | None = None,
) -> Recording:
    """Makes a virtual accelerator known to torch, once a process and before a script imports anything.

    Args:
        device: a device type or a name of ``rules/devices``, e.g. ``npu`` or ``ascend``
        adapter_version: the version of the adapter whose names ``torch.<type>`` offers; the newest known by default
        count: how many devices there are
        strict: an operator that the target runs on the CPU is an error
        operator_state: tells of an operator overload whether the target has a ``kernel`` for it, ``decomposes`` it,
            runs it on the CPU (``fallback``, with one warning an operator) or lacks it (``missing``, which raises)

    Raises:
        UserError: there is no such device, it is not one that can be rehearsed, or another one is set up already
    """
    known = _playable(device)
    if is_set_up():
        if machine().kind != known.type:
            raise UserError(f"this process rehearses {machine().kind} already; start a new one for {known.type}")
        return machine().recording
    listing = read_listing(known.type, adapter_version)
    recording = Recording(known.type, f"{listing.adapter} {listing.version}" if listing.version else "")
    state = operator_state or _unknown
    here = set_up(Machine(known, count, strict, state, listing.float64, recording))
    module = namespace.build(listing)
    backend_registration._setup_privateuseone_for_python_backend(known.type, backend_module=module)
    factories.register()
    composites.register()
    autocast.register()
    takeovers.take_over()
    legacy_types.take_over()
    distributed.register(here)
    cuda_absence.watch()
    if not listing.version:
        text = f"the names that {listing.adapter} offers are not known: torch.{known.type} has all that can be played"
        recording.add_remark("namespace", text, current_site())
    return recording


def _unknown(overload: Any) -> str:
    return "unknown"


def _playable(word: str) -> Device:
    fitting = [one for one in load_devices() if word.lower() in one.aliases or word.lower() == one.type]
    if not fitting:
        raise UserError(f"there is no device {word!r}; rehearsed are {_playable_types()}")
    known = fitting[0]
    if known.cuda_compatible or known.type == "cuda":
        raise UserError(
            f"there is nothing to rehearse for {known.title}: torch.cuda itself works there, so CUDA code runs as it is"
        )
    if known.dispatch_key != "PrivateUse1" or not is_listed(known.type):
        raise UserError(
            f"{known.title} cannot be rehearsed: torch knows {known.type} under a key of its own, which no Python "
            f"code can play; rehearsed are {_playable_types()}"
        )
    return known


def _playable_types() -> str:
    return ", ".join(one.type for one in load_devices() if one.dispatch_key == "PrivateUse1")
