"""Runs an operator for tensors of the device: unwraps them, checks what hardware checks, and wraps the results."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

from codemods.rehearse.machine import machine
from codemods.rehearse.operation import Operation, operation
from codemods.rehearse.rng import check_generator
from codemods.rehearse.sites import asked_for, current_site
from codemods.rehearse.tensor import DeviceTensor, adopt, share_storage, wrap

_special: dict[int, Callable[..., Any]] = {}  # by identity: hashing an overload runs Python


def run_in_own_way(functions: dict[Any, Callable[..., Any]]) -> None:
    """Lets a function run each of these overloads; it is given the arguments as they are."""
    _special.update({id(overload): function for overload, function in functions.items()})


def call(overload: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Runs an operator with tensors of the device among its arguments, or with the device as an argument."""
    machine().touch()
    special = _special.get(id(overload))
    if special is not None:
        return special(*args, **kwargs)
    known = operation(overload)
    unwrapping = Unwrapping(known)
    inner_args = [unwrapping.of(one) for one in args]
    inner_kwargs = {key: unwrapping.of(one) for key, one in kwargs.items()}
    device = unwrapping.device
    if known.device_at is not None:
        wanted = kwargs.get("device") if len(args) <= known.device_at else args[known.device_at]
        if wanted is not None:
            device = machine().device(wanted) if machine().is_mine(wanted) else wanted
        if len(args) <= known.device_at:
            inner_kwargs["device"] = "cpu" if machine().is_mine(device) else device
        else:
            inner_args[known.device_at] = "cpu" if machine().is_mine(device) else device
        inner_kwargs.pop("pin_memory", None)
    unwrapping.check()
    if known.waits:
        machine().recording.add_traffic("synchronisation", asked_for(known.waits), current_site())
    result = known.run(known.kernel, inner_args, inner_kwargs)
    return _results(known, args, kwargs, result, device)


class Unwrapping:
    """Takes tensors out of the arguments of an operator, and sees whether they belong together."""

    def __init__(self, known: Operation) -> None:
        self.known = known
        self.device: Any = None
        self.stranger: torch.device | None = None
        """The device of a tensor that is not where the others are."""
        self.has_float64 = False

    def of(self, value: Any) -> Any:
        """The argument with the tensors inside."""
        kind = type(value)
        if kind is DeviceTensor:
            device = value.device
            if self.device is None:
                self.device = device
            elif device != self.device:
                self.stranger = device
            if value.dtype in _WIDE:
                self.has_float64 = True
            return value.host
        if kind is list or kind is tuple:
            return kind([self.of(one) for one in value])
        if isinstance(value, torch.Tensor):
            if value.dim() > 0 or value.device.type != "cpu":
                self.stranger = value.device
        elif isinstance(value, torch._C.Generator):
            check_generator(value)
        return value

    def check(self) -> None:
        """Raises for what the device would not take."""
        stranger = self.stranger
        if stranger is not None and self.device is not None and not self.known.takes_host_arguments:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{self.device} and {stranger}! (when running {self.known.name})"
            )
        if self.has_float64 and self.known.is_matrix_product and machine().float64 == "matmul":
            raise RuntimeError(f"{self.known.name} is not implemented for float64 on {machine().kind}; use float32")


_WIDE = (torch.float64, torch.complex128)
_NARROW = {torch.float64: torch.float32, torch.complex128: torch.complex64}


def as_on_chip(inner: torch.Tensor) -> torch.Tensor:
    """The tensor with the values that the chip can hold: float64 is rounded where the device lacks it."""
    if inner.dtype not in _WIDE or machine().float64 != "converts":
        return inner
    text = f"{machine().kind} computes float64 as float32"
    if not any(remark.text == text for remark in machine().recording.remarks.values()):
        warnings.warn(text, stacklevel=2)
    machine().recording.add_remark("dtype", text, current_site())
    with torch.no_grad():
        rounded = inner.to(_NARROW[inner.dtype])
        return inner.copy_(rounded) if inner.is_contiguous() else rounded.to(inner.dtype)


def _results(known: Operation, args: Any, kwargs: dict[str, Any], result: Any, device: Any) -> Any:
    marks = known.written
    if isinstance(result, tuple) and len(marks) == len(result):
        return tuple(
            _wrapped(known, one, args, kwargs, device) if mark is None else _written(known, mark, args, kwargs)
            for mark, one in zip(marks, result, strict=True)
        )
    if marks and marks[0] is not None:
        return _written(known, marks[0], args, kwargs)
    return _wrapped(known, result, args, kwargs, device)


def _wrapped(known: Operation, value: Any, args: Any, kwargs: dict[str, Any], device: Any) -> Any:
    if isinstance(value, torch.Tensor):
        if device is None or not machine().is_mine(device):
            return value
        if known.viewed is None:
            return wrap(as_on_chip(value), device)
        base = _taken(known.viewed, args, kwargs)
        return _view(value, base, device) if isinstance(base, DeviceTensor) else wrap(value, device)
    if isinstance(value, list):
        return [_wrapped(known, one, args, kwargs, device) for one in value]
    return value


def _view(value: torch.Tensor, base: DeviceTensor, device: torch.device) -> DeviceTensor:
    """The tensor of the device for a view of another; in inference mode too, one of a usual tensor is a usual one."""
    if torch.is_inference_mode_enabled() and not base.is_inference():
        with torch.inference_mode(False):
            return _view(value, base, device)
    outer = wrap(value, device)
    share_storage(outer, base)
    return outer


def _taken(place: tuple[int, str], args: Any, kwargs: dict[str, Any]) -> Any:
    position, name = place
    return args[position] if position < len(args) else kwargs.get(name)


def _written(known: Operation, place: tuple[int, str], args: Any, kwargs: dict[str, Any]) -> Any:
    """The argument that an operator wrote to, which is its result."""
    outer = _taken(place, args, kwargs)
    if isinstance(outer, DeviceTensor):
        inner = outer.host
        as_on_chip(inner)
        if known.reshapes and (
            outer.shape != inner.shape
            or outer.stride() != inner.stride()
            or outer.storage_offset() != inner.storage_offset()
        ):
            adopt(outer, inner)
    return outer


DeviceTensor.run_operator = staticmethod(call)
