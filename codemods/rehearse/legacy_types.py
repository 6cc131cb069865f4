"""``torch.npu.FloatTensor`` and the like, and where torch takes the names of such types."""

from __future__ import annotations

from typing import Any

import torch

from codemods.rehearse.machine import machine

DTYPES = {
    "Float": torch.float32,
    "Double": torch.float64,
    "Half": torch.float16,
    "BFloat16": torch.bfloat16,
    "Byte": torch.uint8,
    "Char": torch.int8,
    "Short": torch.int16,
    "Int": torch.int32,
    "Long": torch.int64,
    "Bool": torch.bool,
}


class _LegacyType(type):
    dtype: torch.dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, torch.Tensor) and machine().is_mine(instance.device) and instance.dtype is cls.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> torch.Tensor:
        """A tensor of sizes, of values, or empty."""
        made = torch.Tensor(*args, **kwargs) if args or kwargs else torch.empty(0)
        return made.to(device=machine().device(), dtype=cls.dtype)


def legacy_types() -> dict[str, Any]:
    """``FloatTensor`` and the like of the virtual device."""
    module = f"torch.{machine().kind}"
    return {
        f"{prefix}Tensor": _LegacyType(f"{prefix}Tensor", (), {"dtype": dtype, "__module__": module})
        for prefix, dtype in DTYPES.items()
    }


def dtype_of(name: Any) -> torch.dtype | None:
    """The dtype of a legacy type of the virtual device, given as class or by name; None for anything else."""
    if isinstance(name, _LegacyType):
        return name.dtype
    prefix, dot, last = name.rpartition(".") if isinstance(name, str) else ("", "", "")
    if dot and prefix == f"torch.{machine().kind}" and last.endswith("Tensor"):
        return DTYPES.get(last[: -len("Tensor")])
    return None


def take_over() -> None:
    """Lets ``Tensor.type`` and ``torch.set_default_tensor_type`` take the types of the virtual device."""
    set_in_torch, type_in_torch = torch.set_default_tensor_type, torch.Tensor.type

    def set_default_tensor_type(t: Any, /) -> None:
        dtype = dtype_of(t)
        if dtype is None:
            torch.set_default_device(None)
            set_in_torch(t)
        else:
            torch.set_default_dtype(dtype)
            torch.set_default_device(machine().kind)

    def as_type(self: torch.Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        own = dtype_of(dtype)
        if own is not None:
            place = self.device if machine().is_mine(self.device) else machine().device()
            return self.to(device=place, dtype=own, non_blocking=non_blocking)
        return type_in_torch(self) if dtype is None else type_in_torch(self, dtype, non_blocking, **kwargs)

    torch.set_default_tensor_type = set_default_tensor_type
    torch.Tensor.type = as_type  # type: ignore[method-assign, assignment]
