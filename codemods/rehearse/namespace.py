"""The functions and classes of ``torch.<type>``, and the adapter's package around them.

What the adapter is known to offer is there, and nothing else. A name that it offers and a rehearsal cannot play is
there as well: settings (``set_compile_mode`` and the like) do nothing, anything else raises ``NotRehearsedError``.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import torch

from codemods.rehearse import rng, streams
from codemods.rehearse.errors import NotRehearsedError
from codemods.rehearse.legacy_types import legacy_types
from codemods.rehearse.listing import Listing
from codemods.rehearse.machine import Machine, machine
from codemods.rehearse.sites import current_site
from codemods.rehearse.takeovers import DeviceContext

_SETTINGS = ("set_", "enable_", "disable_", "init_dump", "finalize_dump", "npu_config", "register_", "mark", "range")


class AdapterModule(types.ModuleType):
    """A module of the adapter, with the names that it offers there."""

    def __init__(self, name: str, names: dict[str, str], played: dict[str, Any]) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__names = names
        for one in names:
            if one in played:
                setattr(self, one, played[one])

    def __getattr__(self, name: str) -> Any:
        kind = self.__names.get(name)
        if kind is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value: Any
        if kind == "modules":
            value = AdapterModule(f"{self.__name__}.{name}", {}, {})
        else:
            value = _unplayed_class(self.__name__, name) if kind == "classes" else _unplayed(self.__name__, name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted(self.__names)


def _unplayed(module: str, name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        _not_played(module, name, is_harmless=name.startswith(_SETTINGS))

    call.__name__ = call.__qualname__ = name
    return call


def _unplayed_class(module: str, name: str) -> type:
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        _not_played(module, name, is_harmless=False)

    return type(name, (), {"__init__": init, "__module__": module})


def _not_played(module: str, name: str, is_harmless: bool) -> None:
    site = current_site()
    machine().recording.add_remark("not rehearsed", f"{module}.{name}", site)
    if not is_harmless:
        raise NotRehearsedError(f"{module}.{name} exists on {machine().kind}, but a rehearsal cannot play it ({site})")


def build(listing: Listing) -> types.ModuleType:
    """Makes the adapter's package importable; returns the module that is ``torch.<type>``."""
    here = machine()
    played = functions(here)
    by_module = {
        "amp": amp(here),
        "random": played,
        "memory": played,
        "streams": played,
        "utils": played,
        "stream": played,
        "device": played,
    }
    modules: dict[str, types.ModuleType] = {}
    for name, names in (listing.modules or {listing.namespace: _everything(played)}).items():
        own = played if name == listing.namespace else by_module.get(name.rpartition(".")[2], {})
        modules[name] = AdapterModule(name, dict(names), own)
    namespace = modules[listing.namespace]
    if not listing.modules:
        name = f"{listing.namespace}.amp"
        modules[name] = AdapterModule(name, _everything(amp(here)), amp(here))
    for name, value in internals(here).items():
        setattr(namespace, name, value)
    _make_importable(modules, listing)
    return namespace


def _everything(played: dict[str, Any]) -> dict[str, str]:
    return {name: "classes" if isinstance(value, type) else "functions" for name, value in played.items()}


def _make_importable(modules: dict[str, types.ModuleType], listing: Listing) -> None:
    for name in list(modules):
        while "." in name:
            name = name.rpartition(".")[0]
            if name not in modules:
                modules[name] = AdapterModule(name, {}, {})
    _join_by_name(modules, listing)
    for name, module in modules.items():
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(modules[parent], last, module)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        sys.modules[name] = module
    root: Any = modules[listing.adapter]
    root.__version__ = listing.version
    sys.meta_path.insert(0, _Missing(listing.adapter))


def _join_by_name(modules: dict[str, types.ModuleType], listing: Listing) -> None:
    """Puts a module that the namespace takes from elsewhere there as well, as ``torch_musa.amp`` from its core."""
    namespace = listing.namespace
    for name, kind in listing.modules.get(namespace, {}).items():
        elsewhere = [module for path, module in modules.items() if path.endswith(f".{name}")]
        if kind == "modules" and f"{namespace}.{name}" not in modules and elsewhere:
            modules[f"{namespace}.{name}"] = elsewhere[0]


class _Missing(importlib.abc.MetaPathFinder):
    """Says of the adapter's other modules that a rehearsal does not have them."""

    def __init__(self, adapter: str) -> None:
        self.adapter = adapter

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> None:
        """Raises for a module of the adapter that was not made."""
        if fullname.startswith(f"{self.adapter}."):
            machine().recording.add_remark("not rehearsed", fullname, current_site())
            raise ModuleNotFoundError(f"No module named {fullname!r} in a rehearsal of {self.adapter}", name=fullname)


def functions(here: Machine) -> dict[str, Any]:
    """All names of the namespace that a rehearsal can play."""
    return {
        **_devices(here),
        **_memory(here),
        **_random(),
        **_streams(here),
        **_precision(here),
        **legacy_types(),
        "OutOfMemoryError": torch.OutOfMemoryError,
    }


def _devices(here: Machine) -> dict[str, Any]:
    def set_device(device: Any) -> None:
        """Makes a device current; a negative index changes nothing."""
        if not (isinstance(device, int) and device < 0):
            here.touch()
            here.current = here.index_of(device)

    def synchronize(device: Any = None) -> None:
        """Waits for a device, which takes no time."""
        here.index_of(device)
        streams.record_wait("synchronize")

    def current_device() -> int:
        here.touch()
        return here.current

    def get_device_name(device: Any = None) -> str:
        here.index_of(device)
        return f"{here.known.title} (rehearsed)"

    def get_device_properties(device: Any = None) -> Any:
        index = here.index_of(device)
        return types.SimpleNamespace(name=get_device_name(index), total_memory=here.memories[index].total)

    class device_of(DeviceContext):  # noqa: N801 - torch.cuda's name
        """Makes the device of a tensor current in a block; nothing for a tensor of the CPU."""

        def __init__(self, obj: Any) -> None:
            super().__init__(obj.device if here.is_mine(obj.device) else None)

    return {
        "device": type("device", (DeviceContext,), {"__doc__": DeviceContext.__doc__}),
        "device_of": device_of,
        "is_available": lambda: not here.forked and here.count > 0,
        "is_initialized": lambda: here.initialized and not here.forked,
        "init": here.touch,
        "device_count": lambda: here.count,
        "current_device": current_device,
        "set_device": set_device,
        "synchronize": synchronize,
        "get_device_name": get_device_name,
        "get_device_properties": get_device_properties,
        "get_device_capability": lambda device=None: (0, 0),
        "can_device_access_peer": lambda device, peer: here.index_of(device) != here.index_of(peer),
        "ipc_collect": lambda: None,
        "utilization": lambda device=None: 0,
        "current_blas_handle": lambda: 0,
        "get_sync_debug_mode": lambda: 0,
        "get_arch_list": list,
        "version": "rehearsed",
    }


def _memory(here: Machine) -> dict[str, Any]:
    def of(device: Any) -> Any:
        return here.memories[here.index_of(device)]

    def memory_stats(device: Any = None) -> dict[str, int]:
        return dict(of(device).stats())

    def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
        nested: dict[str, Any] = {}
        for name, value in memory_stats(device).items():
            *outer, last = name.split(".")
            level = nested
            for part in outer:
                level = level.setdefault(part, {})
            level[last] = value
        return nested

    def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
        return "\n".join(f"{name:40} {value:>16}" for name, value in memory_stats(device).items())

    def mem_get_info(device: Any = None) -> tuple[int, int]:
        memory = of(device)
        return memory.total - memory.reserved, memory.total

    def reset_peaks(device: Any = None) -> None:
        of(device).reset_peaks()

    def empty_cache() -> None:
        for memory in here.memories:
            memory.empty_cache()

    def allocated(device: Any = None) -> int:
        return int(of(device).allocated)

    def peak_allocated(device: Any = None) -> int:
        return int(of(device).peak_allocated)

    def reserved(device: Any = None) -> int:
        return int(of(device).reserved)

    def peak_reserved(device: Any = None) -> int:
        return int(of(device).peak_reserved)

    return {
        "empty_cache": empty_cache,
        "memory_allocated": allocated,
        "max_memory_allocated": peak_allocated,
        "memory_reserved": reserved,
        "max_memory_reserved": peak_reserved,
        "memory_cached": reserved,
        "max_memory_cached": peak_reserved,
        "memory_stats": memory_stats,
        "memory_stats_as_nested_dict": memory_stats_as_nested_dict,
        "memory_summary": memory_summary,
        "memory_snapshot": list,
        "mem_get_info": mem_get_info,
        "reset_peak_memory_stats": reset_peaks,
        "reset_accumulated_memory_stats": reset_peaks,
        "reset_max_memory_allocated": reset_peaks,
        "reset_max_memory_cached": reset_peaks,
        "set_per_process_memory_fraction": lambda fraction, device=None: None,
        "get_allocator_backend": lambda: "native",
    }


def _random() -> dict[str, Any]:
    return {
        "manual_seed": rng.manual_seed,
        "manual_seed_all": rng.manual_seed,
        "seed": rng.seed,
        "seed_all": rng.seed,
        "initial_seed": rng.initial_seed,
        "get_rng_state": rng.get_rng_state,
        "set_rng_state": rng.set_rng_state,
        "get_rng_state_all": rng.get_rng_state_all,
        "set_rng_state_all": rng.set_rng_state_all,
        "fork_rng": torch.random.fork_rng,
    }


def _streams(here: Machine) -> dict[str, Any]:
    return {
        "Stream": streams.Stream,
        "Event": streams.Event,
        "StreamContext": streams.StreamContext,
        "stream": streams.stream,
        "set_stream": streams.set_stream,
        "current_stream": streams.current_stream,
        "default_stream": streams.default_stream,
        "is_current_stream_capturing": lambda: False,
    }


def _precision(here: Machine) -> dict[str, Any]:
    dtypes = [getattr(torch, name) for name in here.known.autocast_dtypes]

    def set_autocast_enabled(enabled: bool) -> None:
        torch.set_autocast_enabled(here.kind, enabled)

    def set_autocast_dtype(dtype: torch.dtype) -> None:
        torch.set_autocast_dtype(here.kind, dtype)

    return {
        "get_amp_supported_dtype": lambda: list(dtypes),
        "is_bf16_supported": lambda *args, **kwargs: torch.bfloat16 in dtypes,
        "is_autocast_enabled": lambda: torch.is_autocast_enabled(here.kind),
        "get_autocast_dtype": lambda: torch.get_autocast_dtype(here.kind),
        "set_autocast_enabled": set_autocast_enabled,
        "set_autocast_dtype": set_autocast_dtype,
        "is_support_inf_nan": lambda: True,
        "amp_definitely_not_available": lambda: False,
    }


def amp(here: Machine) -> dict[str, Any]:
    """The names of ``torch.<type>.amp``."""
    default = getattr(torch, here.known.autocast_default)

    class autocast(torch.autocast):  # noqa: N801 - torch.cuda.amp's name
        """``torch.autocast`` for the device."""

        def __init__(self, enabled: bool = True, dtype: Any = default, cache_enabled: bool = True) -> None:
            super().__init__(here.kind, enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)

    class GradScaler(torch.amp.GradScaler):
        """``torch.amp.GradScaler`` for the device."""

        def __init__(
            self,
            init_scale: float = 2.0**16,
            growth_factor: float = 2.0,
            backoff_factor: float = 0.5,
            growth_interval: int = 2000,
            *arguments: bool,
            **options: bool,
        ) -> None:
            # torch_npu has an argument `dynamic` before `enabled`
            names = ("dynamic", "enabled") if here.kind == "npu" else ("enabled",)
            told = {**dict(zip(names, arguments, strict=False)), **options}
            super().__init__(
                here.kind, init_scale, growth_factor, backoff_factor, growth_interval, told.get("enabled", True)
            )

    def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
        return torch.amp.custom_fwd(fwd, device_type=here.kind, cast_inputs=cast_inputs)

    def custom_bwd(bwd: Any) -> Any:
        return torch.amp.custom_bwd(bwd, device_type=here.kind)

    return {
        "autocast": autocast,
        "GradScaler": GradScaler,
        "custom_fwd": custom_fwd,
        "custom_bwd": custom_bwd,
        "amp_definitely_not_available": lambda: False,
    }


def internals(here: Machine) -> dict[str, Any]:
    """What torch itself asks of a device's module, whether its list names it or not."""
    played = functions(here)
    names = ("is_available", "is_initialized", "device_count", "current_device", "get_amp_supported_dtype")
    return {
        **{name: played[name] for name in names},
        "_is_in_bad_fork": lambda: here.forked,
        "_lazy_init": here.touch,
        "_device_constructor": torch.device,
    }
