"""Operators that the virtual device runs in a way of its own: copies, values for the host, storages, dropout."""

from __future__ import annotations

from typing import Any

import torch

from codemods.rehearse.dispatch import as_on_chip, run_in_own_way
from codemods.rehearse.machine import machine
from codemods.rehearse.operation import operation
from codemods.rehearse.sites import asked_for, current_site
from codemods.rehearse.tensor import DeviceTensor, adopt, wrap

aten = torch.ops.aten


def _copy(target: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    known = operation(aten.copy_.default)
    _record_copy(source, target, "copy_", non_blocking)
    inner = [one.host if isinstance(one, DeviceTensor) else one for one in (target, source)]
    known.run(aten.copy_.default, inner, {})
    if isinstance(target, DeviceTensor):
        as_on_chip(target.host)
    return target


def _record_copy(source: torch.Tensor, target: torch.Tensor, via: str, non_blocking: bool = False) -> None:
    """Records a copy that crosses between host and device, or between devices."""
    if source.device == target.device:
        return
    here, there = (one.device.type == machine().kind for one in (source, target))
    kind = "device to device" if here and there else "device to host" if here else "host to device"
    nbytes = source.numel() * source.element_size()
    machine().recording.add_traffic(kind, asked_for(via), current_site(), nbytes)


def _copy_from(source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    return _copy(target, source, non_blocking)


def _to_copy(
    source: torch.Tensor,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> torch.Tensor:
    known = operation(aten._to_copy.default)
    goal = source.device if device is None else device
    options = {"dtype": dtype, "layout": layout, "memory_format": memory_format}
    if isinstance(source, DeviceTensor):
        inner = known.run(aten._to_copy.default, (source.host,), options)
    else:
        inner = known.run(aten._to_copy.default, (source,), options)
    if not machine().is_mine(goal):
        result: torch.Tensor = inner if goal.type == "cpu" else inner.to(goal)
    else:
        result = wrap(as_on_chip(inner), machine().device(goal))
    _record_copy(source, result, "to", non_blocking)
    return result


def _local_scalar(source: DeviceTensor) -> Any:
    known = operation(aten._local_scalar_dense.default)
    machine().recording.add_traffic("synchronisation", asked_for("item"), current_site(), source.element_size())
    return known.run(aten._local_scalar_dense.default, (source.host,), {})


def _set(target: torch.Tensor, *source: Any, **kwargs: Any) -> Any:
    """``Tensor.set_`` in each of its forms."""
    if not isinstance(target, DeviceTensor):
        raise RuntimeError(
            f'Attempted to set the storage of a tensor on device "{target.device}" to a storage on device '
            f'"{machine().kind}". This is no longer allowed; the devices must match.'
        )
    inner_source = [one.host if isinstance(one, DeviceTensor) else one for one in source]
    inner: Any = target.host.detach()
    with torch.no_grad():
        inner.set_(*inner_source, **kwargs)
    adopt(target, inner)
    return target


def _resize(target: DeviceTensor, size: Any, *, memory_format: Any = None) -> DeviceTensor:
    operation(aten.resize_.default).run(aten.resize_.default, (target.host, size), {"memory_format": memory_format})
    adopt(target, target.host)
    return target


def _native_dropout(source: DeviceTensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    """The numbers of the CPU's dropout, which takes another operator than devices do."""
    known = operation(aten.native_dropout.default)
    if train is False or source.numel() == 0:
        ones = torch.ones_like(source.host, dtype=torch.bool)
        return wrap(source.host.clone(), source.device), wrap(ones, source.device)

    def drop() -> tuple[torch.Tensor, torch.Tensor]:
        noise = torch.empty_like(source.host).bernoulli_(1 - p)
        kept = noise != 0
        return source.host * (noise.div_(1 - p) if p < 1 else noise), kept

    result, kept = known.run(drop, (), {})
    return wrap(result, source.device), wrap(kept, source.device)


def _native_dropout_backward(grad: DeviceTensor, mask: DeviceTensor, scale: float) -> torch.Tensor:
    known = operation(aten.native_dropout_backward.default)

    def back() -> torch.Tensor:
        noise = mask.host.to(grad.dtype)
        return grad.host * (noise.div_(1 / scale) if scale else noise.zero_())

    return wrap(known.run(back, (), {}), grad.device)


def _record_stream(source: DeviceTensor, stream: Any) -> None:
    operation(aten.record_stream.default).count()


SPECIAL: dict[Any, Any] = {
    aten.copy_.default: _copy,
    aten._copy_from.default: _copy_from,
    aten._to_copy.default: _to_copy,
    aten._local_scalar_dense.default: _local_scalar,
    aten.resize_.default: _resize,
    aten.native_dropout.default: _native_dropout,
    aten.native_dropout_backward.default: _native_dropout_backward,
    aten.record_stream.default: _record_stream,
    aten.set_.default: _set,
    aten.set_.source_Storage: _set,
    aten.set_.source_Storage_storage_offset: _set,
    aten.set_.source_Tensor: _set,
    aten.set_.source_Tensor_storage_offset: _set,
}

run_in_own_way(SPECIAL)
