"""Tensors of the virtual device: each runs its operators on a CPU tensor inside and answers as one of the device."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, ClassVar

import torch

from codemods.rehearse.errors import NotRehearsedError
from codemods.rehearse.machine import machine
from codemods.rehearse.memory import allocation_of
from codemods.rehearse.sites import current_site, doing
from codemods.rehearse.storage import as_device_storage

aten = torch.ops.aten
_typed: Any = torch.TypedStorage
_make = torch.Tensor._make_wrapper_subclass
_storage = torch._C.TensorBase.untyped_storage


class DeviceTensor(torch.Tensor):
    """A tensor of the virtual device, as far as torch and the user's code can tell."""

    host: torch.Tensor
    """The CPU tensor inside."""
    _allocation: Any
    run_operator: ClassVar[Callable[[Any, Any, dict[str, Any]], Any]]
    """Runs an operator on the tensors inside its arguments; set by ``dispatch``."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        """Runs any operator of torch."""
        return cls.run_operator(func, args, kwargs or {})

    def item(self) -> Any:
        """The value of a tensor with one element; the host waits for it."""
        with doing("item"):
            return super().item()

    def tolist(self) -> Any:
        """The values as nested lists; the host waits for them."""
        with doing("tolist"):
            return self.detach().to("cpu").tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """Raises as on hardware, unless forced."""
        if not force:
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
                "memory first."
            )
        with doing("numpy"):
            return self.detach().to("cpu").resolve_conj().resolve_neg().numpy()

    def __array__(self, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def cpu(self, memory_format: torch.memory_format = torch.preserve_format) -> torch.Tensor:
        """A copy on the CPU; the host waits for it."""
        with doing("cpu"):
            return super().cpu(memory_format=memory_format)

    def __bool__(self) -> bool:
        with doing("bool"):
            return super().__bool__()

    def __int__(self) -> int:
        with doing("int"):
            return super().__int__()

    def __float__(self) -> float:
        with doing("float"):
            return super().__float__()

    def __index__(self) -> int:
        with doing("index"):
            return super().__index__()

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        with doing("print"):
            shown = self.detach().to("cpu")
        text = repr(shown.requires_grad_(False))
        tail = f", device='{self.device}'"
        if self.grad_fn is not None:
            tail += f", grad_fn=<{type(self.grad_fn).__name__}>"
        elif self.requires_grad:
            tail += ", requires_grad=True"
        text = f"{text[:-1]}{tail})"
        return f"Parameter containing:\n{text}" if getattr(self, "_is_param", False) else text

    def __format__(self, spec: str) -> str:
        if self.dim() == 0:
            with doing("format"):
                return format(self.item(), spec)
        return object.__format__(self, spec)

    def data_ptr(self) -> int:
        """The address of the tensor inside: distinct tensors have distinct ones."""
        return self.host.data_ptr()

    def untyped_storage(self) -> torch.UntypedStorage:
        """The storage, which says that it is on the device."""
        return as_device_storage(self.host.untyped_storage(), self.device)

    def storage(self) -> torch.TypedStorage:
        """The typed storage."""
        storage: torch.TypedStorage = _typed(wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True)
        return storage

    def _typed_storage(self) -> torch.TypedStorage:
        return self.storage()

    def share_memory_(self) -> DeviceTensor:
        """Nothing, as for any tensor of a device."""
        return self

    def is_shared(self) -> bool:
        """True, as for any tensor of a device."""
        return True

    def is_pinned(self, device: Any = None) -> bool:
        """False: only memory of the host is pinned."""
        return False

    def pin_memory(self, device: Any = None) -> torch.Tensor:
        """Raises as on hardware."""
        raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")

    def __reduce_ex__(self, protocol: Any) -> Any:
        storage = self.storage()
        hooks: Any = OrderedDict()
        if getattr(self, "_is_param", False):
            state = {key: value for key, value in self.__dict__.items() if key not in _OWN}
            if state:
                rebuild = torch._utils._rebuild_parameter_with_state
                return rebuild, (self.detach(), self.requires_grad, hooks, state)
            return torch._utils._rebuild_parameter, (self.detach(), self.requires_grad, hooks)
        place = (storage, self.storage_offset(), tuple(self.size()), self.stride(), self.requires_grad, hooks)
        return torch._utils._rebuild_tensor_v2, place

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user support the deepcopy protocol at the moment."
            )
        with torch.no_grad():
            new = self.detach().clone(memory_format=torch.preserve_format)
        new.requires_grad_(self.requires_grad)
        memo[id(self)] = new
        new.__dict__.update({k: copy.deepcopy(v, memo) for k, v in self.__dict__.items() if k not in _OWN_DATA})
        if self.grad is not None:
            new.grad = copy.deepcopy(self.grad, memo)
        return new


_OWN_DATA = ("host", "_allocation")
_OWN = (*_OWN_DATA, "_is_param")


def wrap(inner: torch.Tensor, device: torch.device) -> DeviceTensor:
    """The tensor of the device that has this one inside; the device must have an index."""
    here = machine()
    here.touch()
    if inner.layout is not torch.strided or inner.is_quantized:
        raise NotRehearsedError(f"tensors of the layout {inner.layout} are not rehearsed ({current_site()})")
    one: Any = _make(
        DeviceTensor, inner.shape, inner.stride(), inner.storage_offset(), dtype=inner.dtype, device=device
    )
    if inner.is_conj() or inner.is_neg():
        torch._C._set_conj(one, inner.is_conj())
        torch._C._set_neg(one, inner.is_neg())
    one.host = inner
    one._allocation = allocation_of(inner, here.memories[device.index])
    wrapped: DeviceTensor = one
    return wrapped


def share_storage(one: torch.Tensor, other: torch.Tensor) -> None:
    """Makes torch see that two tensors of the device share their storage."""
    _set_in_place(one, other, one.size(), one.stride(), one.storage_offset())


def adopt(outer: DeviceTensor, inner: torch.Tensor) -> None:
    """Puts another tensor inside, of whatever shape; the tensor stays the same object."""
    fresh = wrap(inner, outer.device)
    _set_in_place(outer, fresh, inner.size(), inner.stride(), inner.storage_offset())
    outer.host, outer._allocation = inner, fresh._allocation


def _set_in_place(outer: torch.Tensor, owner: torch.Tensor, size: Any, stride: Any, offset: Any) -> None:
    before = torch._C._meta_in_tls_dispatch_include()
    with torch._C._DisableTorchDispatch():
        torch._C._set_meta_in_tls_dispatch_include(True)
        try:
            aten.set_.source_Storage_storage_offset(outer, _storage(owner), offset, size, stride)
        finally:
            torch._C._set_meta_in_tls_dispatch_include(before)
