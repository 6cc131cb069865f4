"""Runs a script that is hard-wired to CUDA on a machine that has none: its CUDA calls land on the CPU.

    python tests/cuda_on_cpu.py SCRIPT ARGS...          (or: python -m tests.cuda_on_cpu SCRIPT ARGS...)
    torchrun --nproc-per-node 2 tests/cuda_on_cpu.py SCRIPT ARGS...

The losses of an original script under this harness are the baseline for the converted script under ``AI_DEVICE=cpu``,
so each mapping below is what the helper ``ai_device`` does on the CPU. The patches replace attributes of torch in this
process and in the processes that it spawns. No ``TorchFunctionMode`` is used: an active mode turns off fast paths of
torch and so changes numbers.

Presence      ``torch.cuda.is_available()`` is True, ``device_count()`` 1, ``current_device()`` 0; the name is 'cpu',
              the capability (0, 0), bf16 supported. ``torch.version.cuda`` and ``CUDA_HOME`` stay None: nothing is
              compiled.
Devices       'cuda', 'cuda:1', ``torch.device("cuda", 1)`` and bare integers mean the CPU in ``torch.device``,
              ``torch.Generator``, factories, ``.to()``, ``new_*()``, ``map_location`` and ``set_default_device``. A
              string is mapped where torch takes it: ``"cuda" in device`` still holds, but ``torch.device("cuda").type``
              is 'cpu'.
Moves         ``.cuda()`` and ``.pin_memory()`` return the tensor itself. ``.is_cuda`` stays False: no kernel takes CPU
              data.
Tensor types  ``torch.cuda.FloatTensor`` is ``torch.FloatTensor`` and so on, as a class and as a string.
Randomness    ``manual_seed`` and ``get/set_rng_state`` act on the CPU generator; ``get_rng_state_all()`` is [] and
              ``set_rng_state_all()`` does nothing; ``fork_rng`` forks the CPU generator alone.
Autocast      ``torch.cuda.amp.autocast(...)`` is disabled, whatever its arguments. ``torch.autocast("cuda")`` is
              disabled without a dtype, and ``torch.autocast("cpu", dtype=...)`` with one. ``custom_fwd``,
              ``custom_bwd``, ``is_autocast_enabled()`` and the like speak of CPU autocast. ``GradScaler`` is disabled.
Waiting       ``synchronize()``, streams and ``record_stream()`` do nothing; events take the wall clock.
Memory        every amount is 0, every reset and ``empty_cache()`` does nothing; nvtx and ``cuda.profiler`` are silent.
Distributed   'nccl' is gloo, ``device_id`` is dropped, DDP gets no ``device_ids``, ``DataParallel`` calls its module.
              ``convert_sync_batchnorm`` returns the module as it is, for DDP on the CPU refuses SyncBatchNorm.
Untouched     what runs on the CPU anyway: cudnn and tf32 flags, ``fused=True`` optimizers.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing.spawn
import os
import runpy
import sys
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SCRIPT_VARIABLE = "CUDA_ON_CPU_SCRIPT"  # tells a spawned child which script its functions come from

# fmt: off
FACTORIES = (
    "arange", "as_tensor", "asarray", "bartlett_window", "blackman_window", "empty", "empty_like", "empty_permuted",
    "empty_strided", "eye", "full", "full_like", "hamming_window", "hann_window", "kaiser_window", "linspace",
    "logspace", "normal", "ones", "ones_like", "rand", "rand_like", "randint", "randint_like", "randn",
    "randn_like", "randperm", "range", "scalar_tensor", "sparse_coo_tensor", "sparse_csr_tensor", "tensor",
    "tril_indices", "triu_indices", "zeros", "zeros_like",
)
NEW_METHODS = (
    "new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros",
)
ELEMENT_TYPES = (
    "BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short",
)
NOTHING_TO_DO = (
    "empty_cache", "init", "ipc_collect", "reset_accumulated_memory_stats", "reset_max_memory_allocated",
    "reset_max_memory_cached", "reset_peak_memory_stats", "set_device", "set_per_process_memory_fraction",
    "set_rng_state_all", "set_stream", "synchronize",
)
AMOUNTS = (
    "clock_rate", "max_memory_allocated", "max_memory_cached", "max_memory_reserved", "memory_allocated",
    "memory_cached", "memory_reserved", "memory_usage", "power_draw", "temperature", "utilization",
)
NVTX = (
    "mark", "range_end", "range_pop", "range_push", "range_start",
)
# fmt: on


def on_cpu(place: Any) -> Any:
    """Give the CPU for any way to name a CUDA device; every other value comes back as it is."""
    import torch

    if isinstance(place, str):
        return "cpu" if place.split(":")[0] == "cuda" else place
    if isinstance(place, int) and not isinstance(place, bool):
        return "cpu"
    if isinstance(place, torch.device):
        return torch.device("cpu") if place.type == "cuda" else place
    return place


def returning(value: Any) -> Callable[..., Any]:
    """Make a function that ignores its arguments."""
    return lambda *args, **kwargs: value


def replace(owner: Any, **attributes: Any) -> None:
    """Set attributes; every one must exist, so that a name that torch drops is noticed."""
    for name, value in attributes.items():
        if not hasattr(owner, name):
            raise AttributeError(f"{owner!r} has no {name!r} to replace: torch has changed, adapt tests/cuda_on_cpu.py")
        setattr(owner, name, value)


def with_device_keyword(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function whose ``device`` is a keyword."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if "device" in kwargs:
            kwargs["device"] = on_cpu(kwargs["device"])
        return function(*args, **kwargs)

    return call


def with_device_first(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method whose first argument may be a device, as in ``Tensor.to``."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "device" in kwargs:
            kwargs["device"] = on_cpu(kwargs["device"])
        return method(self, *map(on_cpu, args[:1]), *args[1:], **kwargs)

    return call


def stand_in(original: type, name: str) -> type:
    """Make a class that cannot be subclassed build its instances on the CPU; ``isinstance`` still works with it."""

    class Meta(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, original)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, original)

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            place = args[0] if args else kwargs.get("type", kwargs.get("device"))
            if on_cpu(place) is not place:
                return original("cpu")
            return original(*args, **kwargs)

    # Module and name of the original, because pickle looks an instance's class up by them.
    return Meta(name, (), {"__module__": "torch", "__qualname__": name})


def patch_devices() -> None:
    """torch.device, torch.Generator, factories, the default device and torch.load."""
    import torch

    replace(torch, device=stand_in(torch.device, "device"), Generator=stand_in(torch.Generator, "Generator"))
    replace(torch, **{name: with_device_keyword(getattr(torch, name)) for name in FACTORIES})
    set_default_device, load = torch.set_default_device, torch.load

    @functools.wraps(load)
    def load_on_cpu(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(map_location, dict):
            map_location = {key: on_cpu(value) for key, value in map_location.items()}
        return load(f, on_cpu(map_location), *args, **kwargs)

    replace(torch, load=load_on_cpu, set_default_device=lambda device: set_default_device(on_cpu(device)))


def patch_tensors() -> None:
    """Moves of tensors, storages and modules, and the legacy tensor types."""
    import torch

    tensor, storages = torch.Tensor, (torch.UntypedStorage, torch.TypedStorage)
    as_type, set_default_type = tensor.type, torch.set_default_tensor_type

    def cuda(self: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Any:
        return self if memory_format is None else self.contiguous(memory_format=memory_format)

    def without_cuda(name: Any) -> Any:
        return name.replace("torch.cuda.", "torch.") if isinstance(name, str) else name

    def to_type(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
        return as_type(self) if dtype is None else as_type(self, without_cuda(dtype), non_blocking)

    def itself(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self

    replace(tensor, cuda=cuda, to=with_device_first(tensor.to), type=to_type)
    replace(tensor, pin_memory=itself, record_stream=returning(None))
    replace(tensor, **{name: with_device_keyword(getattr(tensor, name)) for name in NEW_METHODS})
    for storage in storages:
        replace(storage, cuda=itself, pin_memory=itself)
    replace(torch.nn.Module, to=with_device_first(torch.nn.Module.to))
    for kind in (f"{name}{suffix}" for name in ELEMENT_TYPES for suffix in ("Tensor", "Storage")):
        replace(torch.cuda, **{kind: getattr(torch, kind)})
    replace(torch, set_default_tensor_type=lambda kind: set_default_type(without_cuda(kind)))


class Stream:
    """A stream on the CPU: work is done when the call returns, so there is nothing to wait for."""

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        self.priority = priority

    def wait_stream(self, stream: Any) -> None:
        pass

    def wait_event(self, event: Any) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def query(self) -> bool:
        return True

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class Event:
    """An event on the CPU: it happens when it is recorded."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self.moment = 0.0

    def record(self, stream: Any = None) -> None:
        self.moment = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def query(self) -> bool:
        return True

    def elapsed_time(self, end_event: Event) -> float:
        return (end_event.moment - self.moment) * 1000


def patch_cuda_namespace() -> None:
    """The functions and classes of torch.cuda."""
    import torch

    cuda, random, the_stream, fork_cpu_rng = torch.cuda, torch.default_generator, Stream(), torch.random.fork_rng

    @contextlib.contextmanager
    def scope(*args: Any, **kwargs: Any) -> Iterator[None]:
        yield

    def fork_rng(devices: Any = None, enabled: bool = True, **kwargs: Any) -> Any:
        return fork_cpu_rng([], enabled, device_type="cpu")

    def get_rng_state(device: Any = "cuda") -> Any:
        return torch.get_rng_state()

    def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
        torch.set_rng_state(new_state)

    def properties(device: Any = None) -> types.SimpleNamespace:
        return types.SimpleNamespace(name="cpu", total_memory=0, major=0, minor=0, multi_processor_count=os.cpu_count())

    replace(cuda, is_available=returning(True), is_initialized=returning(True), is_bf16_supported=returning(True))
    replace(cuda, device_count=returning(1), current_device=returning(0), can_device_access_peer=returning(False))
    replace(cuda, get_device_name=returning("cpu"), get_device_capability=returning((0, 0)))
    replace(cuda, get_device_properties=properties, memory_stats=returning({}), memory_summary=returning(""))
    replace(cuda, mem_get_info=returning((0, 0)))
    replace(cuda, **{name: returning(None) for name in NOTHING_TO_DO}, **{name: returning(0) for name in AMOUNTS})
    replace(cuda, manual_seed=random.manual_seed, manual_seed_all=random.manual_seed, initial_seed=random.initial_seed)
    replace(cuda, seed=random.seed, seed_all=random.seed)
    replace(cuda, get_rng_state=get_rng_state, set_rng_state=set_rng_state, get_rng_state_all=lambda: [])
    replace(torch.random, fork_rng=fork_rng)
    replace(cuda, Stream=Stream, Event=Event, stream=scope, device=scope, device_of=scope)
    replace(cuda, current_stream=returning(the_stream), default_stream=returning(the_stream))
    replace(cuda.nvtx, range=scope, **{name: returning(0) for name in NVTX})
    replace(cuda.profiler, start=returning(None), stop=returning(None), profile=scope)


def patch_amp() -> None:
    """Autocast and gradient scaling, by their old and their new names."""
    import torch

    amp, cuda_amp = torch.amp, torch.cuda.amp
    new_autocast, new_scaler = amp.autocast_mode.autocast, amp.grad_scaler.GradScaler
    is_enabled, get_dtype = torch.is_autocast_enabled, torch.get_autocast_dtype

    class Autocast(new_autocast):  # type: ignore[misc, valid-type]
        def __init__(self, device_type: str, dtype: Any = None, enabled: bool = True, **kwargs: Any) -> None:
            place = on_cpu(device_type)
            enabled = enabled and (place == device_type or dtype is not None)
            super().__init__(place, dtype=dtype, enabled=enabled, **kwargs)

    class CudaAutocast(Autocast):
        def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
            super().__init__("cpu", enabled=False, cache_enabled=cache_enabled)

    class GradScaler(new_scaler):  # type: ignore[misc, valid-type]
        def __init__(self, device: str = "cuda", *args: Any, **kwargs: Any) -> None:
            if on_cpu(device) != device:
                kwargs["enabled"] = False
                args = args[:4]
            super().__init__(on_cpu(device), *args, **kwargs)

    class CudaGradScaler(GradScaler):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__("cuda", *args, **kwargs)

    custom_fwd = with_device_type(amp.autocast_mode.custom_fwd)
    custom_bwd = with_device_type(amp.autocast_mode.custom_bwd)
    for owner in (amp, amp.autocast_mode):
        replace(owner, autocast=Autocast, custom_fwd=custom_fwd, custom_bwd=custom_bwd)
    for owner in (amp, amp.grad_scaler, torch):
        replace(owner, GradScaler=GradScaler)
    for owner in (cuda_amp, cuda_amp.autocast_mode):
        replace(owner, autocast=CudaAutocast)
        replace(owner, custom_fwd=functools.partial(custom_fwd, device_type="cuda"))
        replace(owner, custom_bwd=functools.partial(custom_bwd, device_type="cuda"))
    for owner in (cuda_amp, cuda_amp.grad_scaler):
        replace(owner, GradScaler=CudaGradScaler)
    replace(torch, autocast=Autocast, is_autocast_enabled=lambda device_type="cuda": is_enabled(on_cpu(device_type)))
    replace(torch, get_autocast_dtype=lambda device_type: get_dtype(on_cpu(device_type)))
    replace(torch, get_autocast_gpu_dtype=lambda: get_dtype("cpu"))


def with_device_type(decorator: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap custom_fwd or custom_bwd, whose ``device_type`` is a keyword."""

    def call(function: Any = None, *, device_type: str, **kwargs: Any) -> Any:
        return decorator(function, device_type=on_cpu(device_type), **kwargs)

    return call


def patch_data_and_parallel() -> None:
    """Pinned memory of loaders, process groups, DDP and DataParallel."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DataParallel, DistributedDataParallel
    from torch.utils.data import DataLoader

    load_data, wrap_in_ddp = DataLoader.__init__, DistributedDataParallel.__init__

    @functools.wraps(load_data)
    def without_pinning(self: Any, *args: Any, **kwargs: Any) -> None:
        load_data(self, *args, **{**kwargs, "pin_memory": False, "pin_memory_device": ""})

    @functools.wraps(wrap_in_ddp)
    def without_ids(self: Any, module: Any, device_ids: Any = None, output_device: Any = None, **kwargs: Any) -> None:
        wrap_in_ddp(self, module, **kwargs)

    def pass_through(self: Any, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        torch.nn.Module.__init__(self)
        self.module, self.device_ids, self.output_device, self.dim = module, [], None, dim

    replace(DataLoader, __init__=without_pinning)
    replace(DistributedDataParallel, __init__=without_ids)
    replace(DataParallel, __init__=pass_through)
    replace(torch.nn.SyncBatchNorm, convert_sync_batchnorm=lambda module, process_group=None: module)
    if dist.is_available():
        c10d = dist.distributed_c10d
        start, new_group = with_gloo(c10d.init_process_group), with_gloo(c10d.new_group)
        for owner in (dist, c10d):
            replace(owner, init_process_group=start, new_group=new_group, is_nccl_available=returning(True))


def with_gloo(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function that makes a process group."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("device_id", None)
        if "nccl" in str(kwargs.get("backend")):
            kwargs["backend"] = "gloo"
        return function(*("gloo" if isinstance(arg, str) and "nccl" in arg else arg for arg in args), **kwargs)

    return call


def patch_spawning() -> None:
    """Let spawned children run this file before they import the script."""
    prepare = multiprocessing.spawn.get_preparation_data

    def preparation_data(name: str) -> dict[str, Any]:
        return {**prepare(name), "init_main_from_path": __file__}

    replace(multiprocessing.spawn, get_preparation_data=preparation_data)


def install() -> None:
    """Patch torch in this process, once and for all."""
    patch_devices()
    patch_tensors()
    patch_cuda_namespace()
    patch_amp()
    patch_data_and_parallel()
    patch_spawning()


def main() -> None:
    """Run the script that the command line names as if Python had been started with it."""
    if len(sys.argv) < 2:
        sys.exit("usage: cuda_on_cpu.py SCRIPT ARGS...")
    del sys.argv[0]
    script = sys.argv[0]
    os.environ[SCRIPT_VARIABLE] = str(Path(script).resolve())
    sys.path[0] = str(Path(script).resolve().parent)
    install()
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
elif __name__ == "__mp_main__":
    install()
    globals().update(runpy.run_path(os.environ[SCRIPT_VARIABLE], run_name="__mp_main__"))
