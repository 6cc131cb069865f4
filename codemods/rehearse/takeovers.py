"""Where torch asks its C++ about a device, and a device written in Python has to answer instead."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from codemods.rehearse import streams
from codemods.rehearse.machine import machine
from codemods.rehearse.rng import make_generator
from codemods.rehearse.sites import current_site
from codemods.rehearse.storage import DeviceStorage, storage_to_device
from codemods.rehearse.tensor import DeviceTensor, adopt

_data: Any = torch._C.TensorBase.data
_AUTOGRAD = torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView).add(
    getattr(torch._C.DispatchKey, "AutogradPrivateUse1")  # noqa: B009 - torch's types lack it
)
_OWN_STATE = ("host", "_allocation", "_is_param")


def take_over() -> None:
    """Puts the virtual device's answers in place."""
    _data_of_tensors()
    _backward()
    _pinning()
    _generators()
    _storages()
    _accelerator()
    _compile()


def _data_of_tensors() -> None:
    """``tensor.data = other`` between host and device, which ``module.to()`` does as well."""
    compatible = torch._has_compatible_shallow_copy_type

    def has_compatible(input: torch.Tensor, from_: torch.Tensor) -> bool:  # torch checks the names of its arguments
        return isinstance(input, DeviceTensor) or isinstance(from_, DeviceTensor) or compatible(input, from_)

    torch._has_compatible_shallow_copy_type = has_compatible
    torch.Tensor.data = property(_data.__get__, _set_data)  # type: ignore[assignment]


def _set_data(self: torch.Tensor, value: torch.Tensor) -> None:
    if not isinstance(self, DeviceTensor) and not isinstance(value, DeviceTensor):
        _data.__set__(self, value)
    elif (
        isinstance(self, DeviceTensor)
        and isinstance(value, DeviceTensor)
        and self.dtype is value.dtype
        and self.device == value.device
    ):
        version = self._version
        with torch._C._ExcludeDispatchKeyGuard(_AUTOGRAD):
            adopt(self, value.host)
        torch._C._autograd._unsafe_set_version_counter((self,), (version,))
    else:
        _become(self, value)


def _become(self: torch.Tensor, value: torch.Tensor) -> None:
    """Makes a tensor the same object with another kind inside."""
    own = {key: one for key, one in self.__dict__.items() if key not in _OWN_STATE}
    is_parameter = isinstance(self, torch.nn.Parameter)
    new: Any = value.detach()
    if is_parameter:
        new = torch.nn.Parameter(new, requires_grad=self.requires_grad)
    elif self.requires_grad:
        new.requires_grad_(True)
    grad, self.grad = self.grad, None
    swap: Any = torch.utils.swap_tensors
    swap(self, new)
    self.__dict__.update(own)
    if grad is not None and grad.device == self.device and grad.dtype == self.dtype:
        self.grad = grad
    elif grad is not None:
        self.grad = grad.detach().to(device=self.device, dtype=self.dtype)


def _backward() -> None:
    """Backward runs in the thread that asks for it: torch has a thread of its own for the first device only."""
    import torch.autograd.graph

    run = torch.autograd.graph._engine_run_backward

    def engine_run_backward(*args: Any, **kwargs: Any) -> Any:
        with torch.autograd.set_multithreading_enabled(False):
            return run(*args, **kwargs)

    torch.autograd.graph._engine_run_backward = engine_run_backward
    torch.autograd._engine_run_backward = engine_run_backward  # type: ignore[attr-defined]


def _pinning() -> None:
    """Pinned memory is memory of the host with a mark: the copy that ``pin_memory`` makes."""

    def pin_memory(self: torch.Tensor, device: Any = None) -> torch.Tensor:
        if is_pinned(self):
            return self
        pinned = self.detach().clone(memory_format=torch.preserve_format).requires_grad_(self.requires_grad)
        pinned._rehearsed_pin = True  # type: ignore[attr-defined]
        return pinned

    def is_pinned(self: torch.Tensor, device: Any = None) -> bool:
        return getattr(self, "_rehearsed_pin", False)

    torch.Tensor.pin_memory = pin_memory  # type: ignore[method-assign, assignment]
    torch.Tensor.is_pinned = is_pinned  # type: ignore[method-assign, assignment]


class _GeneratorType(type(torch.Generator)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.__mro__[1])

    def __call__(cls, device: Any = "cpu") -> Any:
        place = torch.device(device)
        return make_generator(place) if machine().is_mine(place) else cls.__mro__[1](device)


def _generators() -> None:
    original = torch.Generator
    torch.Generator = _GeneratorType(  # type: ignore[misc]
        "Generator", (original,), {"__module__": "torch", "__doc__": original.__doc__}
    )


def _storages() -> None:
    """``storage.to()`` and ``storage.npu()``; torch.load goes by them."""
    to = torch.storage._StorageBase.to

    def storage_to(self: Any, *, device: Any, non_blocking: bool = False) -> Any:
        place = torch.device(device)
        if machine().is_mine(place):
            return storage_to_device(self, place, non_blocking)
        if isinstance(self, DeviceStorage):
            return self.cpu()
        return to(self, device=device, non_blocking=non_blocking)

    torch.storage._StorageBase.to = storage_to  # type: ignore[method-assign]
    setattr(torch.storage._StorageBase, machine().kind, storage_to_device)


def _accelerator() -> None:
    """``torch.accelerator``, as far as it asks C++."""
    accelerator: Any = torch.accelerator
    here = machine()

    def set_device_index(device: Any, /) -> None:
        here.current = here.index_of(device)

    def synchronize(device: Any = None, /) -> None:
        here.index_of(device)
        streams.record_wait("synchronize")

    accelerator.device_count = lambda: here.count
    accelerator.current_device_index = accelerator.current_device_idx = lambda: here.current
    accelerator.set_device_index = accelerator.set_device_idx = set_device_index
    accelerator.current_stream = lambda device=None, /: streams.current_stream(device)
    accelerator.set_stream = streams.set_stream
    accelerator.synchronize = synchronize
    accelerator.device_index = DeviceContext
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_stats"):
        own = getattr(getattr(torch, here.kind), name, None)
        if own is not None:
            setattr(accelerator, name, own)
    accelerator.empty_cache = lambda: here.memories[here.current].empty_cache()
    accelerator.reset_peak_memory_stats = lambda device=None, /: here.memories[here.index_of(device)].reset_peaks()


class DeviceContext:
    """Makes a device current in a block; a negative index or None changes nothing."""

    def __init__(self, device: Any) -> None:
        nowhere = device is None or (isinstance(device, int) and device < 0)
        self.idx = -1 if nowhere else machine().index_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = machine().current
        if self.idx >= 0:
            machine().current = self.idx

    def __exit__(self, *_: Any) -> None:
        machine().current = self.prev_idx


def _compile() -> None:
    """``torch.compile`` gives what it is given, with a remark."""

    def not_compiled(model: Any = None, **options: Any) -> Any:
        text = "torch.compile is not rehearsed: the function runs as it is"
        if not any(remark.text == text for remark in machine().recording.remarks.values()):
            warnings.warn(text, stacklevel=2)
        machine().recording.add_remark("not rehearsed", text, current_site())
        return (lambda wrapped: wrapped) if model is None else model

    def compile_in_place(self: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
        not_compiled(self)

    torch.compile = not_compiled
    torch.nn.Module.compile = compile_in_place  # type: ignore[method-assign]
