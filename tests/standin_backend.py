"""A stand-in for a vendor's torch plugin: a device named ``npu`` or ``mlu`` with two devices that compute nothing.

``write_plugin(folder, "npu")`` makes a package ``torch_npu`` there. Importing it registers a Python module as the
PrivateUse1 backend of torch, once a process, as the real plugin does in C++. The module has most functions of
torch.cuda, records in ``calls`` what is called, and leaves out what the tests need to be missing.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils import backend_registration

COUNT = 2


def write_plugin(folder: Path, kind: str, before: str = "") -> Path:
    """Makes the package ``torch_<kind>`` in a folder, with some source ``before`` the registration; the folder."""
    package = folder / f"torch_{kind}"
    package.mkdir(parents=True)
    source = f"{before}\nimport standin_backend\n\nstandin_backend.register({kind!r})\n"
    (package / "__init__.py").write_text(source, encoding="utf-8")
    return folder


def register(kind: str) -> types.ModuleType:
    """Makes the stand-in the backend of this process; its module, which is ``torch.<kind>`` from then on."""
    module = backend_module(kind)
    backend_registration._setup_privateuseone_for_python_backend(kind, backend_module=module)
    return module


def backend_module(kind: str) -> types.ModuleType:
    """The module with the functions of the backend; its state is in ``calls``, ``current`` and ``states``."""
    module: Any = types.ModuleType(f"torch.{kind}")
    module.calls = []
    module.current = 0
    module.states = [torch.full((4,), index, dtype=torch.uint8) for index in range(COUNT)]

    def index_of(device: Any) -> int:
        if device is None or device == kind:
            return int(module.current)
        if isinstance(device, int):
            return device
        device = torch.device(device)
        assert device.type == kind, f"the backend {kind} was given {device}"
        return int(module.current) if device.index is None else int(device.index)

    def record(name: str, *values: Any) -> None:
        module.calls.append((name, *values))

    def on_device(name: str, result: Any) -> Any:
        def function(device: Any = None) -> Any:
            record(name, index_of(device))
            return result

        return function

    def plain(name: str, result: Any = None) -> Any:
        def function(*args: Any) -> Any:
            record(name, *args)
            return result

        return function

    def set_device(device: Any) -> None:
        record("set_device", index_of(device))
        module.current = index_of(device)

    def get_rng_state(device: Any = kind) -> torch.Tensor:
        state: torch.Tensor = module.states[index_of(device)]
        return state.clone()

    def set_rng_state(new_state: torch.Tensor, device: Any = kind) -> None:
        module.states[index_of(device)] = new_state.clone()

    def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
        for index, state in enumerate(new_states):
            set_rng_state(state, index)

    @contextlib.contextmanager
    def device_context(device: Any) -> Iterator[None]:
        before, module.current = module.current, index_of(device)
        try:
            yield
        finally:
            module.current = before

    @contextlib.contextmanager
    def stream_context(stream: Any) -> Iterator[None]:
        record("stream", stream)
        yield

    class Stream:
        def __init__(self, device: Any = None, priority: int = 0) -> None:
            self.device_index = index_of(device)

    class Event:
        def __init__(self, enable_timing: bool = False) -> None:
            self.enable_timing = enable_timing

    class GradScaler(torch.amp.GradScaler):
        """Has one argument more than torch's, before ``enabled``, as torch_npu's has."""

        def __init__(
            self,
            init_scale: float = 2.0**16,
            growth_factor: float = 2.0,
            backoff_factor: float = 0.5,
            growth_interval: int = 2000,
            dynamic: bool = True,
            enabled: bool = True,
        ) -> None:
            super().__init__(kind, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
            self.dynamic = dynamic

    functions = {
        "is_available": lambda: True,
        "is_initialized": lambda: False,
        "_is_in_bad_fork": lambda: False,
        "device_count": lambda: COUNT,
        "current_device": lambda: module.current,
        "set_device": set_device,
        "device": device_context,
        "synchronize": on_device("synchronize", None),
        "empty_cache": plain("empty_cache"),
        "manual_seed": plain("manual_seed"),
        "manual_seed_all": plain("manual_seed_all"),
        "seed": plain("seed"),
        "seed_all": plain("seed_all"),
        "initial_seed": plain("initial_seed", 7),
        "get_rng_state": get_rng_state,
        "set_rng_state": set_rng_state,
        "get_rng_state_all": lambda: [get_rng_state(index) for index in range(COUNT)],
        "set_rng_state_all": set_rng_state_all,
        "memory_allocated": on_device("memory_allocated", 512),
        "memory_reserved": on_device("memory_reserved", 1024),
        "mem_get_info": on_device("mem_get_info", (3, 4)),
        "reset_peak_memory_stats": on_device("reset_peak_memory_stats", None),
        "get_device_name": on_device("get_device_name", f"Stand-in {kind}"),
        "get_device_properties": on_device("get_device_properties", types.SimpleNamespace(total_memory=4)),
        "get_device_capability": on_device("get_device_capability", (9, 9)),
        "is_bf16_supported": lambda: True,
        "current_stream": lambda device=None: Stream(device),
        "stream": stream_context,
        "set_stream": plain("set_stream"),
        "get_amp_supported_dtype": lambda: [torch.float16, torch.bfloat16],
    }
    for name, function in functions.items():
        setattr(module, name, function)
    module.Stream, module.Event = Stream, Event
    module.FloatTensor = type("FloatTensor", (), {})
    module.amp = types.SimpleNamespace(GradScaler=GradScaler)
    return module  # type: ignore[no-any-return]
